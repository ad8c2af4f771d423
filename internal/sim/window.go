package sim

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// window is how far processes go one after the other. What one sends at a time arrives no earlier than the link's
// shortest delay later, so a process may go on, ahead of others, to where something might arrive that they have not sent
// yet (its horizon). It does the same as if all went on at once, instant by instant, because nothing else is shared: that
// is the conservative way of simulating in parallel.
type window struct {
	base   clock.Time // when the run began
	floor  clock.Time // nothing happens any more before that, anywhere
	begin  clock.Time
	end    clock.Time    // nobody goes further before all have got there
	latest clock.Time    // when something happened last
	stray  time.Duration // the shortest delay of links that do not exist yet
	stack  []*process    // which may be able to go on; the last first

	together []*process // what is at the same instant
}

const (
	// far is a delay longer than all.
	far = time.Duration(1) << 60
	// deep is how often the shortest delay fits into a window. So often a process may have its turns before all others
	// have had theirs, if those that it depends on do the same. With 16 and 64 hops take as long (BenchmarkHops).
	deep = 32
	// few is how many links a process looks at to find its horizon. One with more goes as far as if all processes
	// had got to the floor only.
	few = 16
)

// feed is a link as its receiver sees it.
type feed struct {
	from  *process
	ahead time.Duration // its shortest delay
}

// feeds makes the process at a link's end follow the one at its beginning.
func (l *Link) feeds() {
	from, to := l.lane.from.process, l.lane.to.process
	if from == to {
		return
	}
	l.feed = len(to.feeds)
	to.feeds = append(to.feeds, feed{from, far})
	if len(from.readers) <= few && !slices.Contains(from.readers, to) {
		from.readers = append(from.readers, to)
	}
}

// ahead notes the link's shortest delay.
func (l *Link) ahead(d time.Duration) {
	to := l.lane.to.process
	if l.lane.from.process == to {
		return
	}
	before := to.feeds[l.feed].ahead
	to.feeds[l.feed].ahead = d
	if d > to.shortest && before == to.shortest {
		to.shortest = far
		for i := range to.feeds {
			to.shortest = min(to.shortest, to.feeds[i].ahead)
		}
	}
	to.shortest = min(to.shortest, d)
}

// open begins a run, and returns how wide windows are; 0: an instant. They are instants if somebody looks on who would see
// another order, if a port's time for what arrives depends on who sends first, or if packets may arrive at once.
func (n *Network) open(done func() bool) time.Duration {
	w := &n.window
	w.base, w.floor, w.begin, w.end, w.latest, w.stray = n.now, n.now, n.now, n.now, n.now, far
	if !n.Closed {
		w.stray = n.Default.Shortest()
	}
	shortest := w.stray
	for _, p := range n.processes {
		p.now, p.done = n.now, n.now
		shortest = min(shortest, p.shortest)
	}
	serves := slices.ContainsFunc(n.ports, func(p *Port) bool { return p.Service > 0 })
	if len(n.processes) == 1 || done != nil || n.Filter != nil || n.Tap != nil || serves {
		return 0
	}
	return deep * min(shortest, far/deep)
}

// proceed lets the process that is next go on, as far as it may; with a width of 0 all go on by one step of an instant.
// It returns false when nothing is left to do before limit.
func (n *Network) proceed(limit clock.Time, width time.Duration) bool {
	w := &n.window
	p := w.pop()
	if p == nil {
		number, at := n.agenda.first()
		if at == clock.Never || at > limit {
			return false
		}
		if width == 0 {
			n.instant(max(n.now, at))
			return true
		}
		p = n.processes[number]
		if w.floor = max(at, w.base); w.floor >= w.end {
			w.begin, w.end = w.floor, w.floor.Add(width)
		}
	}
	until := min(w.horizon(p), w.end, limit.Add(1))
	if until <= p.done {
		return true
	}
	for p.next = 0; p.first() < until; {
		p.step()
	}
	p.plan(p.first())
	p.done = until
	w.latest = max(w.latest, p.now)
	w.push(p.readers)
	return true
}

// instant is one step of all processes that have something to do now: turns; or all that is due, and then what arrives,
// which may have been sent by what was due.
func (n *Network) instant(now clock.Time) {
	w := &n.window
	n.now, w.latest = now, now
	n.gather(0)
	if slices.ContainsFunc(w.together, func(p *process) bool { return p.woken.count > 0 }) {
		for _, p := range w.together {
			p.turns()
		}
	} else {
		n.gather(now)
		for _, p := range w.together {
			p.advance()
		}
		n.gather(now)
		for _, p := range w.together {
			p.deliver()
		}
	}
	for _, p := range w.together {
		p.plan(p.first())
	}
	w.together = w.together[:0]
}

// gather takes up all processes that have something to do by a time.
func (n *Network) gather(by clock.Time) {
	w := &n.window
	for number := n.agenda.due(by); number >= 0; number = n.agenda.due(by) {
		p := n.processes[number]
		p.next, p.now = 0, n.now
		w.together = append(w.together, p)
	}
	slices.SortFunc(w.together, func(a, b *process) int { return a.number - b.number })
}

// horizon returns from when on something may arrive that has not been sent yet.
func (w *window) horizon(p *process) clock.Time {
	stray := w.floor.Add(w.stray)
	if len(p.feeds) > few {
		return min(stray, w.floor.Add(p.shortest))
	}
	at := stray
	for i := range p.feeds {
		f := &p.feeds[i]
		at = min(at, w.promise(f.from).Add(f.ahead))
	}
	return at
}

// promise returns from when on a process may send something.
func (w *window) promise(p *process) clock.Time {
	return max(p.done, min(p.next, w.floor.Add(min(p.shortest, w.stray))))
}

// push notes processes that may be able to go on: those first that have gone on in this window, since they are in the
// caches.
func (w *window) push(all []*process) {
	if len(all) > few {
		return
	}
	for _, warm := range [...]bool{false, true} {
		for _, p := range all {
			if p.done > w.begin == warm && !p.queued && p.next < w.end && p.done < w.end {
				p.queued = true
				w.stack = append(w.stack, p)
			}
		}
	}
}

func (w *window) pop() *process {
	last := len(w.stack) - 1
	if last < 0 {
		return nil
	}
	p := w.stack[last]
	w.stack, p.queued = w.stack[:last], false
	return p
}
