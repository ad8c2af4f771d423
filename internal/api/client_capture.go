package api

import (
	"context"
	"io"
	"net/url"
	"strconv"
)

// CaptureHeader is the header of the answer that names a capture, to stop it by.
const CaptureHeader = "Softvpi-Capture"

// CaptureRequest says what to capture.
type CaptureRequest struct {
	Adapter string // by name
	Snap    int    // bytes kept of each packet; 0: all
	Ring    int    // bytes of memory between the data path and the reader; 0: capture.DefaultRing
}

// StartCapture begins a capture of a running driver and returns its id and the stream, which the caller closes.
// It goes on until StopCapture, after which the stream ends with the statistics.
func (c *Client) StartCapture(ctx context.Context, q CaptureRequest) (id string, stream io.ReadCloser, err error) {
	v := url.Values{"adapter": {q.Adapter}, "snap": {strconv.Itoa(q.Snap)}, "ring": {strconv.Itoa(q.Ring)}}
	header, stream, err := c.Stream(ctx, "/capture", v)
	return header.Get(CaptureHeader), stream, err
}

// StopCapture ends a capture of a running driver.
func (c *Client) StopCapture(ctx context.Context, id string) error {
	return c.call(ctx, "DELETE", "/capture/"+url.PathEscape(id), nil, nil, nil)
}
