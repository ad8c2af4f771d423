package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/clock/due"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/internal/transport"
)

// host is what is at a station.
type host interface {
	// begin starts a flow of the host, which has a turn then.
	begin(now clock.Time, f *flow)
	// take takes a frame that has arrived, which is the host's from now on. It has a turn then.
	take(now clock.Time, r ethernet.Ref)
	// room says that the station has room again at some priorities. The host has a turn then.
	room(priorities uint8)
	// turn does what is due and sends what may be sent.
	turn(now clock.Time)
	// deadline is when the host wants its next turn.
	deadline() clock.Time
}

// Run is a simulation that runs.
type Run struct {
	s       *scenario.Scenario
	n       *network
	now     clock.Time
	flows   []flow
	starts  heap[start]
	open    int // flows with an end that are not complete
	endless bool
	hosts   []host // by number
	due     due.Times
	touched []int32
	waiting []bool // by number: it is among those that were touched

	lent      [][]byte           // payloads of frames, by their Ref
	out       [waiting]frame.Out // what all engines send with, so that it stays in the caches
	completed [16]transport.Completion
	samples   samples
	deadlocks []Deadlock

	ask   func() error // whether to go on; it shows progress
	beats int          // turns since it was asked last
	err   error        // the run cannot go on
}

// New prepares the run of a scenario. The error is a *scenario.Error.
func New(s *scenario.Scenario) (*Run, error) {
	n, err := newNetwork(s)
	if err != nil {
		return nil, err
	}
	r := &Run{s: s, n: n, flows: make([]flow, len(s.Flows.All)), due: due.New(len(s.Graph.Hosts)),
		waiting: make([]bool, len(s.Graph.Hosts)), touched: make([]int32, 0, len(s.Graph.Hosts))}
	for i := range r.flows {
		f := &r.flows[i]
		f.Flow, f.number, f.waits = &s.Flows.All[i], int32(i), s.Flows.All[i].Waits
		f.began, f.ended = clock.Never, clock.Never
		if f.Bytes == 0 {
			r.endless = true
		} else {
			r.open++
		}
		if f.waits == 0 {
			r.starts.push(start{f.Start, int32(i)})
		}
	}
	n.Deliver = func(now clock.Time, at ethernet.End, f ethernet.Ref) {
		h := s.Graph.Nodes[at.Node].Number
		r.hosts[h].take(now, f)
		r.touch(int32(h))
	}
	for _, node := range s.Graph.Hosts {
		if s.Lean {
			r.hosts = append(r.hosts, newLeanHost(r, node))
			continue
		}
		h, err := newRCHost(r, node)
		if err != nil {
			return nil, &scenario.Error{File: s.File, Field: s.Graph.Nodes[node].Name, Value: err.Error()}
		}
		r.hosts = append(r.hosts, h)
	}
	n.Watch(0, max(s.Sample, 100*time.Microsecond), r.deadlock)
	r.samples.init(r)
	return r, nil
}

func (r *Run) touch(h int32) {
	if !r.waiting[h] {
		r.waiting[h] = true
		r.touched = append(r.touched, h)
	}
}

// Progress is how far a run is.
type Progress struct {
	Now, Of time.Duration // of virtual time
	Packets uint64        // with a payload that have been sent
}

const (
	// slice is how much virtual time passes before somebody who waits is asked, and beat how many starts and turns of hosts.
	slice = time.Millisecond
	beat  = 4096
)

// Run lets the scenario happen. It asks progress, if that is not nil, again and again. The error is the context's.
func (r *Run) Run(ctx context.Context, progress func(Progress)) (*Result, error) {
	r.ask = func() error {
		if progress != nil {
			progress(Progress{time.Duration(r.now), r.s.Duration, r.packets()})
		}
		return ctx.Err()
	}
	end := clock.Time(r.s.Duration)
	for next := clock.Time(r.s.Sample); r.now < end; next = next.Add(r.s.Sample) {
		next = clock.Min(next, end)
		for r.now < next {
			r.pass(clock.Min(next, r.now.Add(slice)))
			r.breathe(beat)
			if r.err != nil {
				return nil, r.err
			}
		}
		r.samples.take(r)
		if r.open == 0 && !r.endless {
			break
		}
	}
	return r.result(), nil
}

// breathe asks now and then whether to go on.
func (r *Run) breathe(turns int) {
	if r.beats += turns; r.beats < beat || r.ask == nil || r.err != nil {
		return
	}
	r.beats = 0
	r.err = r.ask()
}

// refused ends the run: an engine has not taken what a host asked of it, which no scenario should make happen.
func (r *Run) refused(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("simulate: at %v: %w", time.Duration(r.now), err)
	}
}

func (r *Run) packets() (n uint64) {
	for i := range r.flows {
		n += r.flows[i].packets
	}
	return n
}

// pass lets everything happen until a time.
func (r *Run) pass(until clock.Time) {
	for r.err == nil {
		at := clock.Min(r.n.Deadline(), r.due.First())
		if len(r.starts) > 0 {
			at = clock.Min(at, r.starts[0].at)
		}
		if at > until {
			r.now = until
			return
		}
		r.now = max(r.now, at)
		r.step()
	}
}

// step does what is due now.
func (r *Run) step() {
	now := r.now
	for len(r.starts) > 0 && r.starts[0].at <= now && r.err == nil {
		r.breathe(1)
		f := &r.flows[r.starts.pop().flow]
		f.began = now
		r.hosts[f.From].begin(now, f)
		r.touch(f.From)
	}
	r.n.Advance(now)
	for r.due.First() <= now {
		h := r.due.Next()
		r.due.Set(h, clock.Never)
		r.touch(int32(h))
	}
	for node, priorities, ok := r.n.Room(); ok; node, priorities, ok = r.n.Room() {
		h := r.s.Graph.Nodes[node].Number
		r.hosts[h].room(priorities)
		r.touch(int32(h))
	}
	for i := 0; i < len(r.touched); i++ { // turns touch others
		r.breathe(1)
		h := r.touched[i]
		r.waiting[h] = false
		r.hosts[h].turn(now)
		r.due.Set(int(h), r.hosts[h].deadline())
	}
	r.touched = r.touched[:0]
}

// arrived counts bytes of a flow that have arrived in order.
func (r *Run) arrived(now clock.Time, f *flow, bytes int) {
	f.got += int64(bytes)
	if f.Bytes == 0 || f.got < f.Bytes || f.ended != clock.Never {
		return
	}
	f.ended = now
	r.open--
	for _, i := range r.s.Flows.After(int(f.number)) {
		x := &r.flows[i]
		if x.waits--; x.waits == 0 {
			r.starts.push(start{max(x.Start, now), i})
		}
	}
}

// deadlock notes queues that wait for each other.
func (r *Run) deadlock(now clock.Time, cycle []ethernet.Waiting) {
	const most = 64
	if len(r.deadlocks) < most {
		r.deadlocks = append(r.deadlocks, Deadlock{now, append([]ethernet.Waiting(nil), cycle...)})
	}
}

// Deadlock is queues of ports each of which is paused until the next moves, since a time.
type Deadlock struct {
	At    clock.Time
	Cycle []ethernet.Waiting
}
