package simulate

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
)

// Run is a simulation that runs.
type Run struct {
	s       *scenario.Scenario
	n       *network
	now     clock.Time
	flows   []flow
	ends    int          // flows that have an end
	endless bool         // there are others
	next    []clock.Time // by shard: when something happens there next
	fed     []bool       // by shard: it has to collect what others have sent
	active  []*shard     // in this window
	turns   [2]int       // by side: of hosts in its window before
	crew    *crew        // nil: there is one processor

	samples   samples
	deadlocks []Deadlock
	faults    []change // that are still to come

	mu      sync.Mutex // of ask
	ask     func(Progress) error
	packets atomic.Uint64
	reached atomic.Int64 // the time before which everything has happened
	broken  atomic.Pointer[error]
}

// New prepares the run of a scenario. The error is a *scenario.Error.
func New(s *scenario.Scenario) (*Run, error) {
	n, err := newNetwork(s)
	if err != nil {
		return nil, err
	}
	r := &Run{s: s, n: n, next: make([]clock.Time, len(n.shards)), fed: make([]bool, len(n.shards)),
		active: make([]*shard, 0, len(n.shards))}
	for i := range s.Flows.All {
		if s.Flows.All[i].Bytes == 0 {
			r.endless = true
		} else {
			r.ends++
		}
	}
	for _, node := range s.Graph.Hosts {
		h := n.shardOf(node)
		h.r = r
		x, err := newHost(h, node)
		if err != nil {
			return nil, &scenario.Error{File: s.File, Field: s.NICs[node].Path, Value: err.Error(), Allowed: "what an adapter can do"}
		}
		h.hosts, h.macs = append(h.hosts, x), append(h.macs, mac(node))
	}
	for i := range n.shards {
		n.shards[i].r = r
		n.shards[i].settle()
		n.shards[i].part(n)
	}
	r.halve()
	r.prepareFaults()
	r.samples.init(r)
	return r, nil
}

func newHost(h *shard, node int) (host, error) {
	if h.r.s.Lean {
		return newLeanHost(h, node), nil
	}
	return newRCHost(h, node)
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
	// leastWatch is the time from one look for deadlocks to the next, at least.
	leastWatch = 100 * time.Microsecond
)

// Run lets the scenario happen, on so many processors, of which the result does not depend. It asks progress, if that is not nil, again
// and again, one call at a time. The error is the context's.
func (r *Run) Run(ctx context.Context, processors int, progress func(Progress)) (*Result, error) {
	r.ask = func(p Progress) error {
		if progress != nil {
			progress(p)
		}
		return ctx.Err()
	}
	if n := min(processors, len(r.n.shards)); n > 1 {
		c := newCrew(n)
		defer c.dismiss()
		r.crew = c
	}
	end, every := clock.Time(r.s.Duration), max(r.s.Sample, leastWatch)
	sample, look := clock.Time(0).Add(r.s.Sample), clock.Time(0).Add(every)
	for r.now < end {
		until := clock.Min(clock.Min(sample, look), clock.Min(end, r.now.Add(slice)))
		if len(r.faults) > 0 {
			until = clock.Min(until, r.faults[0].at)
		}
		r.pass(until)
		r.change()
		if !r.breathe() {
			return nil, *r.broken.Load()
		}
		if r.now >= look {
			r.look()
			look = look.Add(every)
		}
		if r.now >= clock.Min(sample, end) {
			sample = sample.Add(r.s.Sample)
			r.samples.take(r)
			if r.complete() == r.ends && !r.endless {
				break
			}
		}
	}
	return r.result(), nil
}

// complete returns how many flows are.
func (r *Run) complete() (n int) {
	for i := range r.n.shards {
		n += r.n.shards[i].complete
	}
	return n
}

// breathe asks whether to go on, of whichever goroutine.
func (r *Run) breathe() bool {
	if r.ask != nil && r.broken.Load() == nil && r.mu.TryLock() { // otherwise another is at it
		if err := r.ask(Progress{time.Duration(r.reached.Load()), r.s.Duration, r.packets.Load()}); err != nil {
			r.stop(err)
		}
		r.mu.Unlock()
	}
	return r.broken.Load() == nil
}

// stop ends the run with an error.
func (r *Run) stop(err error) { r.broken.CompareAndSwap(nil, &err) }

// refused ends the run: an engine has not taken what a host asked of it, which no scenario should make happen.
func (r *Run) refused(now clock.Time, err error) {
	r.stop(fmt.Errorf("simulate: at %v: %w", time.Duration(now), err))
}

// pass lets everything happen until a time, window by window: no shard gets further ahead of another than a frame takes from one to the
// other.
func (r *Run) pass(until clock.Time) {
	for i := range r.n.shards {
		first := r.n.shards[i].first() // which somebody may have changed
		if r.fed[i] {
			first = clock.Min(first, r.next[i])
		}
		r.next[i] = max(first, r.now)
	}
	for r.broken.Load() == nil {
		first := r.first()
		side := 0
		if first[1] < first[0] {
			side = 1
		}
		if first[side] > until {
			break
		}
		r.window(side, clock.Min(r.end(side, first), until))
	}
	r.now = until
	r.reached.Store(int64(until))
}

// first returns when something happens next on each side.
func (r *Run) first() [2]clock.Time {
	first := [2]clock.Time{clock.Never, clock.Never}
	for i, at := range r.next {
		side := &first[r.n.side(&r.n.shards[i])]
		*side = clock.Min(*side, at)
	}
	return first
}

// end returns until when a side may go on. Where the network has two, nothing comes to its shards but from the other, so that they get
// twice as far at a time as a frame takes over a link: until the first of what the other does next may arrive, or the first answer to
// what they do themselves.
func (r *Run) end(side int, first [2]clock.Time) clock.Time {
	if !r.n.sided {
		return first[side].Add(r.n.lookahead - 1)
	}
	return clock.Min(first[1-side].Add(r.n.lookahead-1), first[side].Add(2*r.n.lookahead-1))
}

// window lets the shards of a side pass a window, and hands on what they have for each other.
func (r *Run) window(side int, end clock.Time) {
	r.active = r.active[:0]
	for i := range r.next {
		if h := &r.n.shards[i]; r.n.side(h) == side && (r.next[i] <= end || r.fed[i]) {
			r.active = append(r.active, h)
			r.fed[i] = false
		}
	}
	if r.crew != nil && len(r.active) > 1 && r.turns[0]+r.turns[1] >= worth {
		r.crew.run(r.active, end)
	} else {
		for _, h := range r.active {
			h.pass(end)
		}
	}
	r.turns[side] = 0
	packets := uint64(0)
	for _, h := range r.active {
		r.next[h.number] = h.first()
		r.turns[side] += h.turns
		packets += h.packets
		h.packets = 0
	}
	r.packets.Add(packets)
	r.reached.Store(max(r.reached.Load(), int64(end)))
	for _, h := range r.active {
		r.exchange(h)
	}
}

// exchange hands on what a shard has for others.
func (r *Run) exchange(h *shard) {
	for _, x := range h.boxes {
		if x.post() {
			r.next[x.to.number] = clock.Min(r.next[x.to.number], x.before.first)
			r.fed[x.to.number] = true
		}
	}
	for _, x := range h.notes {
		to := r.flows[x.flow].receiving.shard
		x.at = x.at.Add(r.n.lookahead)
		if r.n.apart && to.side == h.side { // they have no link
			x.at = x.at.Add(r.n.lookahead)
		}
		to.heard.push(x)
		r.next[to.number] = clock.Min(r.next[to.number], x.at)
	}
	h.notes = h.notes[:0]
}

// look notes queues that wait for each other.
func (r *Run) look() {
	const most = 64
	if cycle := r.n.watch.Look(r.now); cycle != nil && len(r.deadlocks) < most {
		r.deadlocks = append(r.deadlocks, Deadlock{r.now, cycle})
	}
}

// Deadlock is queues of ports each of which is paused until the next moves, since a time.
type Deadlock struct {
	At    clock.Time
	Cycle []ethernet.Waiting
}
