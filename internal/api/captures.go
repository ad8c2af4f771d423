package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// captures is what of a driver captures what passes the ports of adapters. A Driver that has it serves it.
type captures interface {
	// OpenCapture begins a capture that its caller reads.
	OpenCapture(CaptureRequest) (Capture, error)
	// CaptureToFile starts a capture that the driver writes to a file. The path must be absolute; an
	// existing file is overwritten.
	CaptureToFile(q CaptureRequest, path string) (CaptureStatus, error)
	// Captures returns the running captures, and those to files that ended by themselves, until somebody
	// ends them.
	Captures() []CaptureStatus
	// EndCapture ends a capture. If it is written to a file, that is then complete.
	EndCapture(ctx context.Context, id string) (CaptureStatus, error)
}

// Capture is a capture to be read.
type Capture interface {
	ID() string
	// Copy writes the capture as pcapng until the capture or ctx ends. It calls flush after each batch.
	Copy(ctx context.Context, w io.Writer, flush func() error) error
}

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

// captureStall is how long a reader of a capture may take nothing before it is considered gone.
const captureStall = 30 * time.Second

// captureRoutes serve captures.
func (s *Server) captureRoutes(d captures) {
	read := operation("GET", "/capture", "read-capture", "A capture as pcapng, until it is ended. The header "+CaptureHeader+" names it")
	read.Parameters = s.parameters(CaptureRequest{})
	s.raw(read, "application/x-pcapng", func(w http.ResponseWriter, r *http.Request) { serveCapture(d, w, r) })
	register(s, operation("DELETE", "/capture/{id}", "end-capture", "End a capture. A file that the driver writes is complete then"),
		func(ctx context.Context, in *struct {
			ID string `path:"id"`
		}) (*one[CaptureStatus], error) {
			status, err := d.EndCapture(ctx, in.ID)
			return body(status), err
		})
	register(s, operation("GET", "/captures", "captures", "The captures that run, and those to files until somebody ends them"),
		func(context.Context, *struct{}) (*one[[]CaptureStatus], error) { return body(d.Captures()), nil })
	register(s, operation("POST", "/captures", "capture-to-file",
		"Begin a capture that the driver writes to a file; on the unix socket only"),
		func(ctx context.Context, in *struct{ Body CaptureFileRequest }) (*one[CaptureStatus], error) {
			if isRemote(ctx) { // a token opens the interface, and not the machine's files to whatever the driver may write
				return nil, &FieldError{"file", strconv.Quote(in.Body.File),
					"over TCP none; GET /capture sends the packets, and on the unix socket a file may be named"}
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
	w.Header().Set(CaptureHeader, c.ID())
	control := http.NewResponseController(w)
	_ = c.Copy(r.Context(), w, func() error {
		_ = control.SetWriteDeadline(time.Now().Add(captureStall)) // not every writer supports deadlines
		return control.Flush()
	})
}

func captureRequest(v url.Values) (q CaptureRequest, err error) {
	q.Adapter = v.Get("adapter")
	for _, f := range []struct {
		name string
		to   *int
	}{{"snap", &q.Snap}, {"ring", &q.Ring}} {
		if text := v.Get(f.name); text != "" {
			if *f.to, err = strconv.Atoi(text); err != nil {
				return q, &FieldError{f.name, strconv.Quote(text), "a number of bytes"}
			}
		}
	}
	if text := v.Get("qp"); text != "" {
		n, err := strconv.ParseUint(text, 10, 24)
		if err != nil {
			return q, &FieldError{"qp", strconv.Quote(text), "the number of a queue pair, 1 to 16777215"}
		}
		q.QP = uint32(n)
	}
	if text := v.Get("comments"); text != "" {
		if q.Comments, err = strconv.ParseBool(text); err != nil {
			return q, &FieldError{"comments", strconv.Quote(text), "true or false"}
		}
	}
	return q, nil
}
