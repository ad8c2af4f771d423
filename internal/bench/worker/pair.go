package worker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/verbs"
)

// PairArgs request a measurement between two adapters of this process that are connected by the wire, both
// driven by one thread, like test/rxebench with two devices of the kernel's Soft-RoCE.
type PairArgs struct {
	A, B    netip.Addr
	Op      string  // one of PairOps
	MTU     int     // maximum payload of a packet
	Bytes   int     // per message
	Seconds float64 // bandwidth: at least; until something has completed
	Depth   int     // requests in flight on each queue pair
	QPs     int
	UDPPort uint16 // 0: the standard port of RoCE v2
	// Loss is the share of all packets that the system loses, at random, where they arrive (Linux 6.6,
	// root); only between adapters of one process.
	Loss float64
}

// PairOps are the operations: bandwidth or, with -lat, latency.
var PairOps = []string{"write", "send", "read", "write-lat", "send-lat", "read-lat"}

// PairResult is the result: Gbps for bandwidth, otherwise the latency.
type PairResult struct {
	Gbps float64 `json:"gbps,omitempty"` // 2^30 bits of payload a second
	Latency
	All     uint64  `json:"all,omitempty"`     // messages, if they were counted
	Seconds float64 `json:"seconds,omitempty"` // that they took
	// Counters of the requester.
	Counters map[string]uint64 `json:"counters"`
}

// joined is both ends.
type joined struct {
	ctx  context.Context
	args PairArgs
	a, b half
	// patience is how long a message may take.
	patience time.Duration
	wcs      [64]verbs.WC
	at       int // where in the memory the next message is
	// The request being posted, kept here so that messages create no garbage.
	sge  [1]verbs.SGE
	send verbs.SendWR
	recv verbs.RecvWR
}

// half is one end, with the completions taken but not used yet.
type half struct {
	*endpoint
	arrived, sent int
}

const pairMemory = 16 << 20

// pollsPerLook is how many empty polls there are between looks at the clock, which cost a part of what is measured.
const pollsPerLook = 4096

// Pair measures.
func Pair(ctx context.Context, args PairArgs) (r PairResult, err error) {
	config := verbs.Config{}
	for _, addr := range []netip.Addr{args.A, args.B} {
		config.Adapters = append(config.Adapters, verbs.AdapterConfig{Addr: addr, MaxFrameSize: args.MTU, Wire: true,
			UDPPort: args.UDPPort})
	}
	host, err := verbs.Embed(config)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	if args.Loss > 0 {
		stop, err := lose(args.Loss, args.A, args.B)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	c := &joined{ctx: ctx, args: args, patience: setupTime}
	w := &worker{ctx: ctx, host: host}
	if c.b.endpoint, err = w.end(args.B, args); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.b.drop()) }()
	if c.a.endpoint, err = w.end(args.A, args); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.a.drop()) }()
	at, err := c.b.listen(ctx)
	if err != nil {
		return r, err
	}
	w.peer = c.a.endpoint
	if _, err := w.connect(at); err != nil {
		return r, err
	}
	if err := <-c.b.done; err != nil {
		return r, err
	}
	if err := c.measure(&r); err != nil {
		return r, err
	}
	w.dev = c.a.dev
	r.Counters, err = w.counters()
	return r, err
}

func (w *worker) end(addr netip.Addr, args PairArgs) (*endpoint, error) {
	dev, err := w.host.DeviceByAddr(addr)
	if err != nil {
		return nil, err
	}
	return newEndpoint(dev, EndpointArgs{QPs: args.QPs, Depth: 2 * args.Depth, Memory: pairMemory})
}

func (c *joined) measure(r *PairResult) error {
	switch c.args.Op {
	case "write":
		return c.bandwidth(verbs.OpWrite, r)
	case "send":
		return c.bandwidth(verbs.OpSend, r)
	case "read":
		return c.bandwidth(verbs.OpRead, r)
	case "write-lat":
		return c.latency(verbs.OpWrite, r)
	case "send-lat":
		return c.latency(verbs.OpSend, r)
	case "read-lat":
		return c.latency(verbs.OpRead, r)
	}
	return fmt.Errorf("no operation %q", c.args.Op)
}

// place returns where the next message is.
func (c *joined) place() int {
	at := c.at
	if c.at += (c.args.Bytes + 63) &^ 63; c.at+c.args.Bytes > pairMemory {
		c.at = 0
	}
	return at
}

func (c *joined) receive(e *half, n int) error {
	c.sge[0] = e.mr.SGE(c.place(), c.args.Bytes)
	c.recv = verbs.RecvWR{SGE: c.sge[:]}
	return e.conns[n].qp.PostRecv(&c.recv)
}

func (c *joined) post(e *half, n, at int, op verbs.Opcode) error {
	k := e.conns[n]
	c.send = verbs.SendWR{Op: op, Flags: verbs.Signaled, RemoteAddr: k.addr + uint64(at), RKey: k.rkey}
	wr := &c.send
	if op != verbs.OpRead && c.args.Bytes <= pingBytes {
		wr.Inline = e.mr.Bytes()[at : at+c.args.Bytes]
	} else {
		c.sge[0] = e.mr.SGE(at, c.args.Bytes)
		wr.SGE = c.sge[:]
	}
	return k.qp.PostSend(wr)
}

// take takes completions and, if again is not nil, calls it with the number of the connection of each.
func (c *joined) take(e *half, again func(n int) error) (int, error) {
	k, err := e.cq.Poll(c.wcs[:])
	if err != nil {
		return 0, err
	}
	for i := range c.wcs[:k] {
		wc := &c.wcs[i]
		if err := wc.Status.Err(); err != nil {
			return 0, err
		}
		if wc.Flags&verbs.ReceiveSide != 0 {
			e.arrived++
		} else {
			e.sent++
		}
		if again != nil {
			if err := again(int(wc.Context)); err != nil {
				return 0, err
			}
		}
	}
	return k, nil
}

func (c *joined) bandwidth(op verbs.Opcode, r *PairResult) error {
	if op == verbs.OpSend {
		for n := range c.args.QPs {
			for range 2 * c.args.Depth {
				if err := c.receive(&c.b, n); err != nil {
					return err
				}
			}
		}
	}
	for n := range c.args.QPs {
		for range c.args.Depth {
			if err := c.post(&c.a, n, c.place(), op); err != nil {
				return err
			}
		}
	}
	start := time.Now()
	warm := start.Add(time.Duration(c.args.Seconds / 4 * float64(time.Second)))
	var began time.Time
	var done int
	again := func(n int) error { return c.post(&c.a, n, c.place(), op) }
	refill := func(n int) error { return c.receive(&c.b, n) }
	for progress := start; ; {
		k, err := c.take(&c.a, again)
		if err != nil {
			return err
		}
		if op == verbs.OpSend {
			if _, err := c.take(&c.b, refill); err != nil {
				return err
			}
		}
		now := time.Now()
		if k > 0 {
			progress = now
		} else if now.Sub(progress) > c.patience {
			return fmt.Errorf("nothing has completed for %v", c.patience)
		}
		done += k
		r.All += uint64(k)
		if began.IsZero() && now.After(warm) {
			began, done = now, 0
		}
		if elapsed := now.Sub(began).Seconds(); done > 0 && !began.IsZero() && elapsed > c.args.Seconds { // none says nothing of the rate
			r.Gbps = float64(done) * float64(c.args.Bytes) * 8 / (1 << 30) / elapsed
			r.Seconds = now.Sub(start).Seconds()
			return nil
		}
	}
}

func (c *joined) latency(op verbs.Opcode, r *PairResult) error {
	if op == verbs.OpSend {
		for _, e := range []*half{&c.a, &c.b} {
			for range c.args.Depth {
				if err := c.receive(e, 0); err != nil {
					return err
				}
			}
		}
	}
	trips := make([]time.Duration, 0, maxTrips)
	start := time.Now()
	for mark := byte(1); len(trips) < maxTrips; mark++ {
		before := time.Now()
		if before.Sub(start).Seconds() > c.args.Seconds {
			break
		}
		if err := c.trip(op, mark); err != nil {
			return err
		}
		took := time.Since(before)
		if op == verbs.OpRead {
			took *= 2 // latencyOf halves it
		}
		trips = append(trips, took)
		for _, e := range []*half{&c.a, &c.b} {
			if err := c.until(e, func() bool { return e.sent > 0 || op == verbs.OpRead }); err != nil {
				return err
			}
			e.sent = 0
		}
	}
	r.Latency = latencyOf(slices.Clone(trips[min(len(trips)/10, 200):]))
	return nil
}

// trip is a round trip of a message, or a read.
func (c *joined) trip(op verbs.Opcode, mark byte) error {
	if op == verbs.OpRead {
		if err := c.post(&c.a, 0, 0, op); err != nil {
			return err
		}
		return c.until(&c.a, func() bool { return c.a.sent > 0 })
	}
	if err := c.one(&c.a, &c.b, op, mark); err != nil {
		return err
	}
	return c.one(&c.b, &c.a, op, mark+101)
}

// one sends a message from e and waits until the peer has it.
func (c *joined) one(e, peer *half, op verbs.Opcode, mark byte) error {
	last := c.args.Bytes - 1
	e.mr.Bytes()[last] = mark
	if err := c.post(e, 0, 0, op); err != nil {
		return err
	}
	if op == verbs.OpWrite {
		word := (*uint32)(unsafe.Pointer(&peer.mr.Bytes()[last&^3]))
		return c.until(peer, func() bool { return byte(atomic.LoadUint32(word)>>(8*(last&3))) == mark })
	}
	if err := c.until(peer, func() bool { return peer.arrived > 0 }); err != nil {
		return err
	}
	peer.arrived--
	return c.receive(peer, 0)
}

// until polls the queue of e until done. It gives up after c.patience: what e waits for may have failed at the
// other end, whose queue is not looked at.
func (c *joined) until(e *half, done func() bool) error {
	var late time.Time
	for polls := 1; !done(); polls++ {
		if _, err := c.take(e, nil); err != nil {
			return err
		}
		if polls%pollsPerLook > 0 {
			continue
		}
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		if now := time.Now(); late.IsZero() {
			late = now.Add(c.patience)
		} else if now.After(late) {
			return fmt.Errorf("nothing has arrived for %v", c.patience)
		}
	}
	return nil
}
