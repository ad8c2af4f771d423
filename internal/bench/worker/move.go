package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/softvpi/softvpi/verbs"
)

// WriteArgs request RDMA writes of Size bytes on the first QPs connections, Depth outstanding on each, for
// some seconds and then until all have completed. The worker polls. Warm is how many of these seconds at
// the beginning do not count; if it is set, what completes after the end does not count either.
type WriteArgs struct {
	QPs, Size, Depth int
	Seconds, Warm    float64
}

// Written is the result.
type Written struct {
	Gbps        float64 // 2^30 bits of payload a second
	Seconds     float64
	Messages    uint64 // all of them, whether they count or not
	Least, Most uint64 // messages of the connection with the fewest and the most
}

func (w *worker) write(a WriteArgs) (Written, error) {
	e := w.peer
	counts := make([]uint64, a.QPs)
	var sge [1]verbs.SGE
	slots, next := max(e.mr.Len()/a.Size, 1), 0
	post := func(n int) error {
		at := next * a.Size
		if next++; next == slots {
			next = 0
		}
		sge[0] = e.mr.SGE(at, a.Size)
		c := e.conns[n]
		return c.qp.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: sge[:], RemoteAddr: c.addr + uint64(at),
			RKey: c.rkey})
	}
	start, outstanding := time.Now(), 0
	for range a.Depth {
		for n := range a.QPs {
			if err := post(n); err != nil {
				return Written{}, err
			}
			outstanding++
		}
	}
	total, m := uint64(0), newMeter(start, a)
	wcs := make([]verbs.WC, 64)
	for progress := start; outstanding > 0; {
		k, err := e.cq.Poll(wcs)
		if err != nil {
			return Written{}, err
		}
		now := time.Now()
		if k > 0 {
			progress = now
		} else if now.Sub(progress) > setupTime {
			return Written{}, fmt.Errorf("%d writes have not completed for %v", outstanding, setupTime)
		}
		for i := range wcs[:k] {
			if err := wcs[i].Status.Err(); err != nil {
				return Written{}, fmt.Errorf("connection %d: %w", wcs[i].Context, err)
			}
			outstanding--
			total++
			counts[wcs[i].Context]++
			if m.over(now) {
				continue
			}
			if err := post(int(wcs[i].Context)); err != nil {
				return Written{}, err
			}
			outstanding++
		}
	}
	return Written{Gbps: m.rate() * float64(a.Size) * 8 / (1 << 30), Seconds: m.last.Sub(start).Seconds(), Messages: total,
		Least: slices.Min(counts), Most: slices.Max(counts)}, nil
}

// meter counts the messages that complete between two moments.
type meter struct {
	from, to, last time.Time // last: when the latest message of all completed
	drain          bool      // those that complete after the end count
	counted        uint64
	until          time.Time // the latest that counts
}

func newMeter(start time.Time, a WriteArgs) *meter {
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	return &meter{from: at(a.Warm), to: at(a.Seconds), drain: a.Warm == 0}
}

// over handles a completed message and reports whether the time is over.
func (m *meter) over(now time.Time) bool {
	over := now.After(m.to)
	m.last = now
	if now.After(m.from) && (!over || m.drain) {
		m.counted++
		m.until = now
	}
	return over
}

// rate returns messages per second.
func (m *meter) rate() float64 {
	end := m.to
	if m.drain {
		end = m.until
	}
	if m.counted == 0 {
		return 0
	}
	return float64(m.counted) / end.Sub(m.from).Seconds()
}

// PingArgs request a ping-pong on the first connection, one message at a time. With Polling the worker
// polls for messages, otherwise it sleeps.
type PingArgs struct {
	Bytes   int
	Seconds float64
	Polling bool
}

// Latency is half of the round trip, in microseconds.
type Latency struct {
	Typical float64 `json:"typical_us"` // the median
	P99     float64 `json:"p99_us"`
}

// latencyOf summarizes round trips.
func latencyOf(trips []time.Duration) Latency {
	if len(trips) == 0 {
		return Latency{}
	}
	slices.Sort(trips)
	us := func(p float64) float64 { return float64(trips[int(p*float64(len(trips)-1))]) / 2000 }
	return Latency{us(0.5), us(0.99)}
}

// maxTrips limits what a run remembers.
const maxTrips = 1 << 20

// Meaning of the first byte of a ping.
const (
	pingGoOn byte = iota
	pingLast
)

func (w *worker) ping(a PingArgs) (Latency, error) {
	t := &table{e: w.peer, ctx: w.ctx, polling: a.Polling}
	out := make([]byte, a.Bytes)
	trips := make([]time.Duration, 0, maxTrips)
	start := time.Now()
	for before := start; ; {
		last := before.Sub(start).Seconds() >= a.Seconds || len(trips) == maxTrips
		if last {
			out[0] = pingLast
		}
		if err := t.play(out); err != nil {
			return Latency{}, err
		}
		now := time.Now()
		if last {
			return latencyOf(trips[min(len(trips)/10, 100):]), nil
		}
		trips = append(trips, now.Sub(before))
		before = now
	}
}

// play sends a message and waits for the answer.
func (t *table) play(out []byte) error {
	if err := t.send(out); err != nil {
		return err
	}
	return t.receive()
}

// pong returns every ping until the last.
func (w *worker) pong(a PingArgs) (struct{}, error) {
	t := &table{e: w.peer, ctx: w.ctx, polling: a.Polling}
	out := make([]byte, a.Bytes)
	for {
		if err := t.receive(); err != nil {
			return struct{}{}, err
		}
		out[0] = w.peer.mr.Bytes()[0]
		if err := t.send(out); err != nil || out[0] == pingLast {
			return struct{}{}, err
		}
	}
}

// table is one side of the ping-pong.
type table struct {
	e        *endpoint
	ctx      context.Context
	polling  bool
	arrived  int // messages received and not yet waited for
	inFlight int // sends that have not completed
	wcs      [16]verbs.WC
}

// send sends a message inline, when there is room for it.
func (t *table) send(b []byte) error {
	for t.inFlight == t.e.cfg.Depth {
		if err := t.look(); err != nil {
			return err
		}
	}
	t.inFlight++
	return t.e.conns[0].qp.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, Inline: b})
}

// receive waits for a message and posts its receive again.
func (t *table) receive() error {
	for t.arrived == 0 {
		if err := t.look(); err != nil {
			return err
		}
	}
	t.arrived--
	return t.e.conns[0].qp.PostRecv(t.e.receive())
}

func (t *table) look() error {
	var n int
	var err error
	if t.polling {
		n, err = t.e.cq.Poll(t.wcs[:])
	} else {
		n, err = t.e.cq.Next(t.ctx, t.wcs[:])
	}
	for i := range t.wcs[:n] {
		if err := t.wcs[i].Status.Err(); err != nil {
			return err
		}
		if t.wcs[i].Flags&verbs.ReceiveSide != 0 {
			t.arrived++
		} else {
			t.inFlight--
		}
	}
	return err
}
