package driver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/packetnotes"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/pcapng"
)

const (
	maxCaptureRing = 256 << 20   // memory of one capture
	captureFlush   = time.Second // a capture with little traffic is written at least this often
	captureBatch   = 512         // packets between flushes
	maxCaptures    = 64          // at a time, including those to files that have not been ended
)

// CaptureRequest says what to capture.
type CaptureRequest = api.CaptureRequest

// capturing is a capture of an adapter.
type capturing struct {
	driver  *Driver
	adapter string
	index   uint32
	id      string
	snap    int
	tap     *capture.Tap
	started time.Time
	// qp is the queue pair whose packets are wanted, to which notes puts what was noted of them, written if comments says so; 0 and
	// nil: those of all.
	qp       uint32
	notes    *packetnotes.Joiner
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

// captures are the running ones, and those to files until they are ended, by id.
type captures struct {
	mu     sync.Mutex
	byID   map[string]*capturing
	closed bool

	buffers packetBuffers
}

// OpenCapture begins to capture the packets of an adapter's port. The caller runs Copy, which ends the
// capture.
func (d *Driver) OpenCapture(q CaptureRequest) (api.Capture, error) { return d.capture(q, "") }

func (d *Driver) capture(q CaptureRequest, file string) (*capturing, error) {
	index, err := d.find(q.Adapter)
	if err != nil {
		return nil, err
	}
	if err := checkQP(q); err != nil {
		return nil, err
	}
	if err := d.noneToCapture(d.running[index].Name); err != nil {
		return nil, err
	}
	if q.Ring > maxCaptureRing {
		return nil, api.Wrong("ring", strconv.Itoa(q.Ring), fmt.Sprintf("at most %d bytes", maxCaptureRing))
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
		driver: d, adapter: q.Adapter, index: index, id: rand.Text(), snap: snap, tap: tap, started: time.Now(), end: make(chan struct{}),
		file: file, done: make(chan struct{}),
	}
	if c.qp = q.QP; c.qp != 0 {
		c.notes, c.comments = packetnotes.New(q.QP), q.Comments
	}
	d.captures.mu.Lock()
	defer d.captures.mu.Unlock()
	if err := d.captures.room(file); err != nil {
		return nil, err
	}
	if err := d.startCapture(c, c.qp); err != nil {
		return nil, err
	}
	d.captures.byID[c.id] = c
	return c, nil
}

// room returns an error if there is no room for one more.
func (s *captures) room(file string) error {
	switch {
	case s.closed:
		return errors.New("the driver is stopping")
	case len(s.byID) >= maxCaptures:
		return fmt.Errorf("%d captures are already running; end one of them first", maxCaptures)
	}
	for _, c := range s.byID {
		if file != "" && c.file == file {
			return api.Wrong("file", strconv.Quote(file), "one that no capture writes yet")
		}
	}
	if s.byID == nil {
		s.byID = map[string]*capturing{}
	}
	return nil
}

// EndCapture ends a capture: its Copy writes what is left, and the statistics. A file is complete
// afterwards.
func (d *Driver) EndCapture(ctx context.Context, id string) (api.CaptureStatus, error) {
	d.captures.mu.Lock()
	c := d.captures.byID[id]
	d.captures.mu.Unlock()
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

// noneToCapture says that packets travel at an adapter's wire that are another's; nil: they are its own.
func (d *Driver) noneToCapture(adapter string) error {
	if team, carrier, ok := d.Roster.CarriedBy(adapter); ok {
		return api.Wrong("adapter", fmt.Sprintf("%q, whose wire is in team %q", adapter, team), fmt.Sprintf("%q, which carries the team", carrier))
	}
	return nil
}

// endIdle ends the captures of adapters whose wires a team has now: nothing more would come, and whoever waits for it is to know.
func (d *Driver) endIdle(adapters []int) {
	d.captures.mu.Lock()
	defer d.captures.mu.Unlock()
	for _, c := range d.captures.byID {
		if !slices.Contains(adapters, int(c.index)) {
			continue
		}
		if err := d.noneToCapture(d.running[c.index].Name); err != nil {
			d.log.Warn("a capture ends", "capture", c.id, "adapter", c.adapter, "cause", err)
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
	for range captureBatch {
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
	_ = c.driver.host.StopCapture(c.index, c.tap) // fails if the adapter is gone
	c.driver.captures.mu.Lock()
	defer c.driver.captures.mu.Unlock()
	delete(c.driver.captures.byID, c.id)
}
