package api

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"time"
)

// CaptureRequest says what to capture.
type CaptureRequest struct {
	Adapter string `query:"adapter" json:"adapter" required:"true" doc:"By name."`
	Snap    int    `query:"snap" json:"snap,omitempty" doc:"Bytes that are kept of each packet; 0: all."`
	Ring    int    `query:"ring" json:"ring,omitempty" doc:"Bytes of memory between the data path and the reader; 0: 16 MiB."`
	QP      uint32 `query:"qp" json:"qp,omitempty" doc:"Only the packets of the queue pair with this number; 0: all packets."`
	// Comments needs a QP.
	Comments bool `query:"comments" json:"comments,omitempty" doc:"With qp, a comment of each packet: what the adapter did with it, or why it was sent, and how far the queue pair was."`
}

// CaptureFileRequest asks for a capture that the driver writes to a file.
type CaptureFileRequest struct {
	CaptureRequest
	File string `json:"file" doc:"Absolute path, on the driver's machine."`
}

// CaptureStatus describes a capture that runs or has ended.
type CaptureStatus struct {
	ID      string    `json:"id"`
	Adapter string    `json:"adapter"`
	QP      uint32    `json:"qp,omitempty" doc:"Whose packets alone are captured."`
	File    string    `json:"file,omitempty" doc:"Which the driver writes; absent: the capture goes to a reader."`
	Started time.Time `json:"started"`
	Running bool      `json:"running"`
	Packets uint64    `json:"packets" doc:"Captured."`
	Missed  uint64    `json:"missed" doc:"Packets that found no room."`
	Problem string    `json:"problem,omitempty" doc:"Why the capture ended by itself."`
}

// CaptureHeader is the header of the answer that names a capture, to end it by.
const CaptureHeader = "Softvpi-Capture"

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
