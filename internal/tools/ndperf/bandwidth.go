package ndperf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/nd"
)

// cycle iterates over the blocks of the data set.
type cycle struct{ block, slots, next int }

// newCycle returns the blocks for messages of that many bytes.
func (e *endpoint) newCycle(bytes int) cycle {
	block := (bytes + 63) &^ 63
	return cycle{block: block, slots: max(e.set/block, 1)}
}

func (c *cycle) offset() int {
	at := c.next * c.block
	if c.next++; c.next == c.slots {
		c.next = 0
	}
	return at
}

// flow is the state of one queue pair of a bandwidth run.
type flow struct {
	link      *link
	remaining int64 // left to post; counts down if the number of messages is fixed
	under     int   // posted and not known to have completed
	silent    int   // posted since the last signaled one
}

// bandwidthRun posts requests on all queue pairs as fast as they complete.
type bandwidthRun struct {
	e      *endpoint
	o      *options
	bytes  int
	remote *buffer
	flows  []flow
	at     cycle
	flags  nd.OpFlags
	sge    [1]nd.SGE

	done     int64
	stopping bool
}

// bandwidthClient runs one message size and returns this side's measurements.
func (e *endpoint) bandwidthClient(ctx context.Context, o *options, bytes int, remote *buffer, p *progress) (Row, error) {
	r := &bandwidthRun{e: e, o: o, bytes: bytes, remote: remote, at: e.newCycle(bytes), flows: make([]flow, len(e.data))}
	if bytes <= o.Inline {
		r.flags = nd.OpFlagInline
	}
	for i, l := range e.data {
		r.flows[i] = flow{link: l, remaining: o.Iterations}
	}
	cpu, start := ProcessorTime(), time.Now()
	for {
		if !r.stopping && (o.Duration > 0 && time.Since(start) >= o.Duration || e.stop.Err() != nil) {
			r.stopping = true
		}
		if err := r.post(); err != nil {
			return Row{}, err
		}
		if r.finished() {
			break
		}
		if err := r.collect(ctx); err != nil {
			return Row{}, err
		}
		p.bandwidth(bytes, r.done, start)
	}
	return newRow(len(e.data), bytes, r.done, time.Since(start), ProcessorTime()-cpu), nil
}

// collect takes results: at once, or after an event.
func (r *bandwidthRun) collect(ctx context.Context) error {
	if r.o.Events {
		return r.e.wait(ctx, r.completed)
	}
	_, err := r.e.poll(ctx, r.completed)
	return err
}

func (r *bandwidthRun) completed(x *nd.Result) error {
	kind, qp, count := splitContext(x.RequestContext)
	if kind != kindRequest || qp >= len(r.flows) {
		return fmt.Errorf("result of an unknown request %#x", x.RequestContext)
	}
	r.flows[qp].under -= count
	r.done += int64(count)
	return nil
}

func (r *bandwidthRun) finished() bool {
	for i := range r.flows {
		if f := &r.flows[i]; f.under > 0 || !r.stopping && f.more(r.o) {
			return false
		}
	}
	return true
}

// more reports whether the flow has something left to post.
func (f *flow) more(o *options) bool { return o.Duration > 0 || f.remaining > 0 }

// post fills the queues, a list at a time.
func (r *bandwidthRun) post() error {
	for i := range r.flows {
		f := &r.flows[i]
		if r.stopping {
			if f.silent > 0 { // one more, signaled request, so that the silent ones before it are known to have completed
				if err := r.one(i, f, true); err != nil {
					return err
				}
			}
			continue
		}
		for f.more(r.o) {
			n := r.o.List
			if r.o.Duration == 0 {
				n = int(min(int64(n), f.remaining))
			}
			if r.o.Depth-f.under < n {
				break
			}
			for range n {
				f.remaining--
				last := r.o.Duration == 0 && f.remaining == 0
				if err := r.one(i, f, last || f.silent+1 == r.o.Moderation); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *bandwidthRun) one(qp int, f *flow, result bool) error {
	flags := r.flags
	f.silent++
	f.under++
	id := requestContext(kindRequest, qp, f.silent)
	if result {
		f.silent = 0
	} else {
		flags |= nd.OpFlagSilentSuccess
	}
	at := r.at.offset()
	r.sge[0] = r.e.sge(at, r.bytes)
	return r.e.submit(f.link, id, r.sge[:], r.remote, at, flags)
}

// submit posts the test's operation.
func (e *endpoint) submit(l *link, id uint64, sge []nd.SGE, remote *buffer, at int, flags nd.OpFlags) error {
	switch e.test.Verb {
	case Write:
		return l.qp.Write(id, sge, remote.Address+uint64(at), remote.Token, flags)
	case Read:
		return l.qp.Read(id, sge, remote.Address+uint64(at), remote.Token, flags)
	}
	return l.qp.Send(id, sge, flags)
}

// receiver keeps receives posted on every queue pair.
type receiver struct {
	e      *endpoint
	at     cycle
	posted []int // by queue pair
	depth  int
	bytes  int
	count  int64
	first  time.Time
	last   time.Time
}

func newReceiver(e *endpoint, depth int) *receiver {
	return &receiver{e: e, depth: depth, posted: make([]int, len(e.data))}
}

// begin posts receives for messages of this size. They have room for the largest size, so that those left
// over serve the next size.
func (r *receiver) begin(bytes int) error {
	r.bytes, r.count, r.at = bytes, 0, r.e.newCycle(bytes)
	for i := range r.posted {
		for r.posted[i] < r.depth {
			if err := r.post(i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *receiver) post(qp int) error {
	at := 0
	if r.e.test.Measure == Bandwidth {
		at = r.at.offset()
	}
	sge := [1]nd.SGE{r.e.sge(at, r.e.maxSize)}
	if err := r.e.data[qp].qp.Receive(requestContext(kindRecv, qp, 1), sge[:]); err != nil {
		return err
	}
	r.posted[qp]++
	return nil
}

// came notes when messages arrived. Reading the clock for each message would cost as much as a small
// message.
func (r *receiver) came(first bool) {
	r.last = time.Now()
	if first {
		r.first = r.last
	}
}

// received counts a message and reposts its receive. It ignores results of requests.
func (r *receiver) received(x *nd.Result) error {
	kind, qp, _ := splitContext(x.RequestContext)
	if kind != kindRecv {
		return nil
	}
	if qp >= len(r.posted) {
		return errors.New("result of an unknown receive")
	}
	if int(x.BytesTransferred) != r.bytes {
		return fmt.Errorf("received a message of %d bytes; the test sends %d", x.BytesTransferred, r.bytes)
	}
	r.count++
	r.posted[qp]--
	return r.post(qp)
}

// bandwidthServer counts the messages of one size until the client says how many there were. It returns
// this side's measurements and the client's message.
func (e *endpoint) bandwidthServer(ctx context.Context, bytes int, r *receiver) (Row, *message, error) {
	cpu, start := ProcessorTime(), time.Now()
	if e.test.Verb != Send {
		m, err := e.hear(ctx, "end")
		if err != nil {
			return Row{}, nil, err
		}
		return newRow(len(e.data), bytes, m.Round.Iterations, time.Since(start), ProcessorTime()-cpu), m, nil
	}
	var end *message
	for end == nil || r.count < end.Round.Iterations {
		before := r.count
		if err := e.wait(ctx, r.received); err != nil {
			return Row{}, nil, err
		}
		if r.count > before {
			r.came(before == 0)
		}
		if end == nil && len(e.inbox) > 0 {
			var err error
			if end, err = e.take("end"); err != nil {
				return Row{}, nil, err
			}
		}
	}
	return newRow(len(e.data), bytes, r.count, r.last.Sub(r.first), ProcessorTime()-cpu), end, nil
}
