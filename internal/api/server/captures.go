package server

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/api"
)

// captures is what of a driver captures what passes the ports of adapters. A Driver that has it serves it.
type captures interface {
	// OpenCapture begins a capture that its caller reads.
	OpenCapture(api.CaptureRequest) (Capture, error)
	// CaptureToFile starts a capture that the driver writes to a file. The path must be absolute; an
	// existing file is overwritten.
	CaptureToFile(q api.CaptureRequest, path string) (api.CaptureStatus, error)
	// Captures returns the running captures, and those to files that ended by themselves, until somebody
	// ends them.
	Captures() []api.CaptureStatus
	// EndCapture ends a capture. If it is written to a file, that is then complete.
	EndCapture(ctx context.Context, id string) (api.CaptureStatus, error)
}

// Capture is a capture to be read.
type Capture interface {
	ID() string
	// Copy writes the capture as pcapng until the capture or ctx ends. It calls flush after each batch.
	Copy(ctx context.Context, w io.Writer, flush func() error) error
}

// captureStall is how long a reader of a capture may take nothing before it is considered gone.
const captureStall = 30 * time.Second

// captureRoutes serve captures.
func (s *Server) captureRoutes(d captures) {
	read := operation("GET", "/capture", "read-capture", "A capture as pcapng, until it is ended. The header "+api.CaptureHeader+" names it")
	read.Parameters = s.parameters(api.CaptureRequest{})
	s.raw(read, "application/x-pcapng", func(w http.ResponseWriter, r *http.Request) { serveCapture(d, w, r) })
	register(s, operation("DELETE", "/capture/{id}", "end-capture", "End a capture. A file that the driver writes is complete then"),
		func(ctx context.Context, in *struct {
			ID string `path:"id"`
		}) (*one[api.CaptureStatus], error) {
			status, err := d.EndCapture(ctx, in.ID)
			return body(status), err
		})
	register(s, operation("GET", "/captures", "captures", "The captures that run, and those to files until somebody ends them"),
		func(context.Context, *struct{}) (*one[[]api.CaptureStatus], error) { return body(d.Captures()), nil })
	register(s, operation("POST", "/captures", "capture-to-file",
		"Begin a capture that the driver writes to a file; on the unix socket only"),
		func(ctx context.Context, in *struct{ Body api.CaptureFileRequest }) (*one[api.CaptureStatus], error) {
			if isRemote(ctx) { // a token opens the interface, and not the machine's files to whatever the driver may write
				return nil, api.Wrong("file", strconv.Quote(in.Body.File),
					"over TCP none; GET /capture sends the packets, and on the unix socket a file may be named")
			}
			status, err := d.CaptureToFile(in.Body.CaptureRequest, in.Body.File)
			return body(status), err
		})
}

func serveCapture(d captures, w http.ResponseWriter, r *http.Request) {
	q, err := captureRequest(r.URL.Query())
	if err != nil {
		fail(w, err)
		return
	}
	c, err := d.OpenCapture(q)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-pcapng")
	w.Header().Set("Content-Disposition", `attachment; filename="capture.pcapng"`)
	w.Header().Set(api.CaptureHeader, c.ID())
	control := http.NewResponseController(w)
	_ = c.Copy(r.Context(), w, func() error {
		_ = control.SetWriteDeadline(time.Now().Add(captureStall)) // not every writer supports deadlines
		return control.Flush()
	})
}

func captureRequest(v url.Values) (q api.CaptureRequest, err error) {
	q.Adapter = v.Get("adapter")
	for _, f := range []struct {
		name string
		to   *int
	}{{"snap", &q.Snap}, {"ring", &q.Ring}} {
		if text := v.Get(f.name); text != "" {
			if *f.to, err = strconv.Atoi(text); err != nil {
				return q, api.Wrong(f.name, strconv.Quote(text), "a number of bytes")
			}
		}
	}
	if text := v.Get("qp"); text != "" {
		n, err := strconv.ParseUint(text, 10, 24)
		if err != nil {
			return q, api.Wrong("qp", strconv.Quote(text), "the number of a queue pair, 1 to 16777215")
		}
		q.QP = uint32(n)
	}
	if text := v.Get("comments"); text != "" {
		if q.Comments, err = strconv.ParseBool(text); err != nil {
			return q, api.Wrong("comments", strconv.Quote(text), "true or false")
		}
	}
	return q, nil
}
