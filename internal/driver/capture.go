package driver

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/pcapng"
)

const (
	maxCaptureRing = 256 << 20        // memory of one capture
	captureFlush   = time.Second      // a capture with little traffic is written at least so often
	captureBatch   = 512              // packets between flushes
	captureStall   = 30 * time.Second // a reader that takes nothing for so long is gone
)

// CaptureRequest says what to capture.
type CaptureRequest = api.CaptureRequest

// Capture is a running capture of an adapter.
type Capture struct {
	driver  *Driver
	adapter string
	index   uint32
	id      string
	snap    int
	tap     *capture.Tap
	started time.Time
	end     chan struct{}
	once    sync.Once
}

// captures are those that run, by their id.
type captures struct {
	mu   sync.Mutex
	byID map[string]*Capture
}

// Capture begins to capture what passes the port of an adapter. The caller runs Copy, which ends it.
func (d *Driver) Capture(q CaptureRequest) (*Capture, error) {
	index, err := d.find(q.Adapter)
	if err != nil {
		return nil, err
	}
	if q.Ring > maxCaptureRing {
		return nil, fieldError("ring", strconv.Itoa(q.Ring), fmt.Sprintf("at most %d bytes", maxCaptureRing))
	}
	tap, err := capture.NewTap(q.Snap, q.Ring)
	if err != nil {
		return nil, err
	}
	snap := q.Snap
	if snap == 0 {
		snap = capture.MaxSnap
	}
	c := &Capture{
		driver: d, adapter: q.Adapter, index: index, id: rand.Text(), snap: snap, tap: tap, started: time.Now(), end: make(chan struct{}),
	}
	if err := d.host.StartCapture(index, tap); err != nil {
		return nil, err
	}
	d.captures.mu.Lock()
	defer d.captures.mu.Unlock()
	if d.captures.byID == nil {
		d.captures.byID = map[string]*Capture{}
	}
	d.captures.byID[c.id] = c
	return c, nil
}

// StopCapture ends a capture: its Copy writes what is left, and the statistics.
func (d *Driver) StopCapture(id string) error {
	d.captures.mu.Lock()
	c := d.captures.byID[id]
	d.captures.mu.Unlock()
	if c == nil {
		return fieldError("capture", strconv.Quote(id), "the id of a capture that runs")
	}
	c.Stop()
	return nil
}

// ID names the capture.
func (c *Capture) ID() string { return c.id }

// Stop ends the capture.
func (c *Capture) Stop() { c.once.Do(func() { close(c.end) }) }

// Copy writes the capture as pcapng until Stop or the end of the context; in the end come the packets that were
// taken until then, and the statistics. flush is called after each batch.
func (c *Capture) Copy(ctx context.Context, w io.Writer, flush func() error) error {
	defer c.forget()
	out, err := pcapng.NewWriter(w, c.adapter, c.snap, c.started)
	if err != nil {
		return err
	}
	tick := time.NewTicker(captureFlush)
	defer tick.Stop()
	for running := true; running; {
		more, err := c.batch(out, flush)
		if err != nil {
			return err
		}
		wake := c.tap.Wake()
		if more {
			wake = ready
		}
		select {
		case <-c.end:
			running = false
		case <-ctx.Done():
			running = false
		case <-wake:
		case <-tick.C:
		}
	}
	if err := c.driver.host.StopCapture(c.index, c.tap); err != nil {
		return err
	}
	for more := true; more; {
		if more, err = c.batch(out, flush); err != nil {
			return err
		}
	}
	_, missed := c.tap.Counts()
	return out.Finish(missed, time.Now())
}

// ready never makes anybody wait.
var ready = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// batch writes some of what the tap holds and reports whether there is more.
func (c *Capture) batch(out *pcapng.Writer, flush func() error) (more bool, err error) {
	var p capture.Packet
	for range captureBatch {
		if more = c.tap.Next(&p); !more {
			break
		}
		if err := out.Packet(&p); err != nil {
			return false, err
		}
	}
	if err := out.Flush(); err != nil {
		return false, err
	}
	return more, flush()
}

func (c *Capture) forget() {
	_ = c.driver.host.StopCapture(c.index, c.tap) // an adapter that is gone has no taps
	c.driver.captures.mu.Lock()
	defer c.driver.captures.mu.Unlock()
	delete(c.driver.captures.byID, c.id)
}

// mountCaptures serves captures.
func (d *Driver) mountCaptures(mux *http.ServeMux) {
	mux.HandleFunc("GET /capture", d.serveCapture)
	mux.HandleFunc("DELETE /capture/{id}", func(w http.ResponseWriter, r *http.Request) {
		if err := d.StopCapture(r.PathValue("id")); err != nil {
			api.Fail(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// serveCapture streams a capture: GET /capture?adapter=NAME&snap=BYTES&ring=BYTES.
func (d *Driver) serveCapture(w http.ResponseWriter, r *http.Request) {
	q, err := captureRequest(r.URL.Query())
	if err != nil {
		api.Fail(w, err)
		return
	}
	c, err := d.Capture(q)
	if err != nil {
		api.Fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-pcapng")
	w.Header().Set("Content-Disposition", `attachment; filename="capture.pcapng"`)
	w.Header().Set(api.CaptureHeader, c.ID())
	control := http.NewResponseController(w)
	_ = c.Copy(r.Context(), w, func() error {
		_ = control.SetWriteDeadline(time.Now().Add(captureStall)) // not every writer has deadlines
		return control.Flush()
	})
}

func captureRequest(v url.Values) (q CaptureRequest, err error) {
	q.Adapter = v.Get("adapter")
	for _, f := range []struct {
		name string
		to   *int
	}{{"snap", &q.Snap}, {"ring", &q.Ring}} {
		if s := v.Get(f.name); s != "" {
			if *f.to, err = strconv.Atoi(s); err != nil {
				return q, fieldError(f.name, strconv.Quote(s), "a number of bytes")
			}
		}
	}
	return q, nil
}
