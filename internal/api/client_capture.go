package api

import (
	"context"
	"io"
	"net/url"
	"strconv"
)

// StartCapture starts a capture in a running driver and returns its id and the stream, which the caller
// must close. It runs until StopCapture, after which the stream ends with the statistics.
func (c *Client) StartCapture(ctx context.Context, q CaptureRequest) (id string, stream io.ReadCloser, err error) {
	v := url.Values{"adapter": {q.Adapter}, "snap": {strconv.Itoa(q.Snap)}, "ring": {strconv.Itoa(q.Ring)},
		"qp": {strconv.FormatUint(uint64(q.QP), 10)}, "comments": {strconv.FormatBool(q.Comments)}}
	header, stream, err := c.stream(ctx, "/capture", v)
	return header.Get(CaptureHeader), stream, err
}

// StopCapture ends a capture in a running driver.
func (c *Client) StopCapture(ctx context.Context, id string) error {
	_, err := c.EndCapture(ctx, id)
	return err
}

// CaptureToFile starts a capture that the driver writes to a file with an absolute path.
func (c *Client) CaptureToFile(ctx context.Context, q CaptureRequest, path string) (s CaptureStatus, err error) {
	err = c.call(ctx, "POST", "/captures", nil, CaptureFileRequest{q, path}, &s)
	return s, err
}

// Captures returns the running captures, and those to files that nobody has ended yet.
func (c *Client) Captures(ctx context.Context) (list []CaptureStatus, err error) {
	err = c.call(ctx, "GET", "/captures", nil, nil, &list)
	return list, err
}

// EndCapture ends a capture. If it is written to a file, that is then complete.
func (c *Client) EndCapture(ctx context.Context, id string) (s CaptureStatus, err error) {
	err = c.call(ctx, "DELETE", "/capture/"+url.PathEscape(id), nil, nil, &s)
	return s, err
}
