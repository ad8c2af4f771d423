// Package captures records what passes the ports of a driver's adapters: captures that are read or written to files, of all packets or of
// one queue pair's with notes, and packet buffers of the last that arrived (WinOF 5.50, 4.9.4.4).
package captures

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/captures/notes"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/pcapng"
)

const (
	// MaxRing is the memory of one capture at most, in bytes.
	MaxRing = 256 << 20

	flushEvery = time.Second // a capture with little traffic is written at least this often
	batchSize  = 512         // packets between flushes
	most       = 64          // at a time, including those to files that have not been ended
)

// Driver is what captures ask of the driver.
type Driver interface {
	// Find returns the index of an adapter. The error names those that there are.
	Find(name string) (uint32, error)
	// Elsewhere says why the packets at an adapter's wire are another's; nil: they are its own.
	Elsewhere(name string) error
	// MayBuffer says why an adapter may have no packet buffer; nil: it may.
	MayBuffer(name string) error
	// UDPPort returns that of RoCE v2 of an adapter.
	UDPPort(i uint32) uint16
}

// Recorder has the captures and the packet buffers of a driver. The nil Recorder, of a driver without adapters yet, can only be closed.
type Recorder struct {
	driver Driver
	host   *device.Host
	log    *slog.Logger

	mu     sync.Mutex
	byID   map[string]*capturing // those that run, and those to files until they are ended
	closed bool

	buffers packetBuffers
}

// New returns a Recorder of a host's adapters.
func New(driver Driver, host *device.Host, log *slog.Logger) *Recorder {
	return &Recorder{driver: driver, host: host, log: log, byID: map[string]*capturing{}}
}

// capturing is a capture of an adapter.
type capturing struct {
	of      *Recorder
	adapter string
	index   uint32
	id      string
	snap    int
	tap     *capture.Tap
	started time.Time
	// qp is the queue pair whose packets are wanted, to which notes puts what was noted of them, written if comments says so; 0 and
	// nil: those of all.
	qp       uint32
	notes    *notes.Joiner
	comments bool
	written  atomic.Uint64
	end      chan struct{}
	once     sync.Once

	file string        // written by the driver; "": the capture goes to a reader
	done chan struct{} // for a file: closed when it is complete, or has failed
	err  error         // for a file: valid after done
	// cause is why the driver has ended it; valid after end, nil: somebody asked for it.
	cause atomic.Pointer[error]
}

// OpenCapture begins to capture the packets of an adapter's port. The caller runs Copy, which ends the
// capture.
func (r *Recorder) OpenCapture(q api.CaptureRequest) (server.Capture, error) { return r.capture(q, "") }

func (r *Recorder) capture(q api.CaptureRequest, file string) (*capturing, error) {
	index, err := r.driver.Find(q.Adapter)
	if err != nil {
		return nil, err
	}
	if err := checkQP(q); err != nil {
		return nil, err
	}
	if err := r.driver.Elsewhere(q.Adapter); err != nil {
		return nil, err
	}
	if q.Ring > MaxRing {
		return nil, api.Wrong("ring", strconv.Itoa(q.Ring), fmt.Sprintf("at most %d bytes", MaxRing))
	}
	tap, err := capture.NewTap(q.Snap, q.Ring)
	if err != nil {
		return nil, err
	}
	snap := q.Snap
	if snap == 0 {
		snap = capture.MaxSnap
	}
	c := &capturing{
		of: r, adapter: q.Adapter, index: index, id: rand.Text(), snap: snap, tap: tap, started: time.Now(), end: make(chan struct{}),
		file: file, done: make(chan struct{}),
	}
	if c.qp = q.QP; c.qp != 0 {
		c.notes, c.comments = notes.New(q.QP), q.Comments
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.room(file); err != nil {
		return nil, err
	}
	if err := r.start(c); err != nil {
		return nil, err
	}
	r.byID[c.id] = c
	return c, nil
}

// room returns an error if there is no room for one more.
func (r *Recorder) room(file string) error {
	switch {
	case r.closed:
		return errors.New("the driver is stopping")
	case len(r.byID) >= most:
		return fmt.Errorf("%d captures are already running; end one of them first", most)
	}
	for _, c := range r.byID {
		if file != "" && c.file == file {
			return api.Wrong("file", strconv.Quote(file), "one that no capture writes yet")
		}
	}
	return nil
}

// EndCapture ends a capture: its Copy writes what is left, and the statistics. A file is complete
// afterwards.
func (r *Recorder) EndCapture(ctx context.Context, id string) (api.CaptureStatus, error) {
	r.mu.Lock()
	c := r.byID[id]
	r.mu.Unlock()
	if c == nil {
		return api.CaptureStatus{}, api.Wrong("capture", strconv.Quote(id), "the id of a capture that runs")
	}
	c.stop()
	if c.file != "" {
		select {
		case <-c.done:
			c.forget()
		case <-ctx.Done():
			return api.CaptureStatus{}, ctx.Err()
		}
	}
	return c.status(), nil
}

// ID returns the id of the capture.
func (c *capturing) ID() string { return c.id }

// stop ends the capture.
func (c *capturing) stop() { c.once.Do(func() { close(c.end) }) }

// Copy writes the capture as pcapng until Stop or the end of the context; then it writes the packets
// captured so far, and the statistics. flush is called after each batch.
func (c *capturing) Copy(ctx context.Context, w io.Writer, flush func() error) error {
	defer c.forget()
	return c.write(ctx, w, flush)
}

func (c *capturing) write(ctx context.Context, w io.Writer, flush func() error) error {
	out, err := pcapng.NewWriter(w, c.adapter, c.snap, c.started)
	if err != nil {
		return err
	}
	tick := time.NewTicker(flushEvery)
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
	if err := c.of.host.StopCapture(c.index, c.tap); err != nil {
		return err
	}
	for more := true; more; {
		if more, err = c.batch(out, flush); err != nil {
			return err
		}
	}
	if err := c.rest(out); err != nil {
		return err
	}
	_, missed := c.tap.Counts()
	err = out.Finish(missed, time.Now())
	if cause := c.cause.Load(); cause != nil {
		err = errors.Join(err, *cause)
	}
	return err
}

// EndElsewhere ends the captures of adapters whose wires a team has now: nothing more would come, and whoever waits for it is to know.
func (r *Recorder) EndElsewhere(adapters []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.byID {
		if !slices.Contains(adapters, int(c.index)) {
			continue
		}
		if err := r.driver.Elsewhere(c.adapter); err != nil {
			r.log.Warn("a capture ends", "capture", c.id, "adapter", c.adapter, "cause", err)
			c.cause.CompareAndSwap(nil, &err)
			c.stop()
		}
	}
}

// ready never blocks.
var ready = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// batch writes some of the captured packets and reports whether there are more.
func (c *capturing) batch(out *pcapng.Writer, flush func() error) (more bool, err error) {
	var p capture.Packet
	for range batchSize {
		if more = c.tap.Next(&p); !more {
			break
		}
		if err := c.put(out, &p); err != nil {
			return false, err
		}
	}
	if err := c.judged(out); err != nil {
		return false, err
	}
	if err := out.Flush(); err != nil {
		return false, err
	}
	return more, flush()
}

func (c *capturing) forget() {
	_ = c.of.host.StopCapture(c.index, c.tap) // fails if the adapter is gone
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.byID, c.id)
}
