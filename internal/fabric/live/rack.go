// Package live runs a fabric in real time: it owns its clock and lock, does what is due, and connects
// programs to its ports.
//
// There are two kinds of access to a port, side by side as with a real card. An adapter is plugged in for
// data (Plug), one per port. Management programs (subnet managers, diagnostics) send datagrams by Carry
// and receive them as Takers.
package live

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/lan"
	"github.com/softvpi/softvpi/internal/wait"
)

// Options configure a rack.
type Options struct {
	// Timing makes packets take the time of their links. Without it they travel as fast as the machine
	// permits; credits and queues are the same.
	Timing bool
	// Ethernet is the fabric's Ethernet network, which it takes over; nil: it has none.
	Ethernet *lan.Network
}

// Taker is a program that takes management datagrams, or several programs.
type Taker interface {
	// Take is called for a datagram that arrived at a port and that no agent of the fabric answers,
	// including traps. True: it is taken, and nobody else gets it. Take is called with the rack locked: it
	// must copy what it needs and return, and must not call the rack.
	Take(now clock.Time, at fabric.Place, p *fabric.Packet) bool
}

// Reporter is a Taker that has something to say of itself.
type Reporter interface {
	// Report returns a line about the programs of the taker. It is called with the rack locked, and must not call it.
	Report() string
}

// Rack is a running fabric.
type Rack struct {
	start time.Time
	id    [16]byte      // unique to this rack
	wake  chan struct{} // something is due earlier than before
	done  chan struct{}
	ended sync.WaitGroup

	mu     sync.Mutex
	fabric *fabric.Fabric
	lan    *lan.Network // nil: there is no Ethernet
	jacks  map[*lan.Jack]*jack
	noted  uint64 // the number of the last incident that the adapters know of
	takers []Taker
	// managers run in the rack; turning: whoever holds the lock works for them afterwards.
	managers []*manager
	turning  bool
	ports    map[fabric.Place]*Port
	packet   fabric.Packet // a trap
	due      clock.Time    // when the timer expires
	closed   bool
}

// New runs a fabric, which it takes over, until Close.
func New(f *fabric.Fabric, o Options) *Rack {
	if !o.Timing {
		f.Untimed()
	}
	r := &Rack{start: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{}), fabric: f, ports: map[fabric.Place]*Port{},
		due: clock.Never, lan: o.Ethernet, jacks: map[*lan.Jack]*jack{}}
	_, _ = rand.Read(r.id[:]) // never fails
	f.Claim(r.take)
	r.ended.Go(r.timer)
	return r
}

// Close ends the rack: its ports' links go down, and nothing is transferred any more.
func (r *Rack) Close() error {
	r.mu.Lock()
	was := r.closed
	r.closed = true
	for _, p := range r.ports {
		p.fall()
	}
	for _, j := range r.jacks {
		j.fall()
	}
	r.mu.Unlock()
	if !was {
		close(r.done)
	}
	r.ended.Wait()
	return nil
}

// Now returns the rack's time, which starts with the rack.
func (r *Rack) Now() clock.Time { return clock.Time(time.Since(r.start)) }

// Do runs do with the fabric locked, and then does what has become due.
func (r *Rack) Do(do func(now clock.Time, f *fabric.Fabric)) {
	now, f := r.Lock()
	defer r.Unlock()
	do(now, f)
}

// Lock gives the caller the fabric, until Unlock. What was due on the Ethernet before has happened.
func (r *Rack) Lock() (clock.Time, *fabric.Fabric) {
	r.mu.Lock()
	now := r.Now()
	if r.lan != nil {
		r.lan.Advance(now)
	}
	return now, r.fabric
}

// Unlock does what has become due since Lock, and unlocks.
func (r *Rack) Unlock() {
	r.settle()
	r.mu.Unlock()
}

// Attend adds a taker, to be asked after the others, until leave is called.
func (r *Rack) Attend(t Taker) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takers = append(r.takers, t)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.takers = slices.DeleteFunc(slices.Clone(r.takers), func(o Taker) bool { return o == t })
	}
}

// Reports returns what the takers say of themselves, a line each. The caller holds the lock.
func (r *Rack) Reports() (lines []string) {
	for _, t := range r.takers {
		if t, ok := t.(Reporter); ok {
			lines = append(lines, t.Report())
		}
	}
	return lines
}

// Carry sends a datagram from a program at a port through the fabric. When it returns, the datagram has
// been delivered: an agent's answer (Answered) to a taker at the port itself, otherwise (Delivered) to a
// taker or the adapter at the destination port. Dropped: nobody has it. Carry modifies the packet.
func (r *Rack) Carry(from fabric.Place, p *fabric.Packet) fabric.Result {
	now, _ := r.Lock()
	defer r.Unlock()
	return r.carryLocked(now, from, p)
}

// carryLocked is Carry for a caller that holds the lock.
func (r *Rack) carryLocked(now clock.Time, from fabric.Place, p *fabric.Packet) fabric.Result {
	switch o := r.fabric.Send(now, from, p); {
	case o.Result == fabric.Answered && r.take(now, from, p), o.Result == fabric.Delivered && r.Deliver(now, o.At, p):
		return o.Result
	}
	return fabric.Dropped
}

// Deliver offers a datagram that arrived at a port to the takers there, and then to the adapter; false:
// nobody took it. The caller holds the lock.
func (r *Rack) Deliver(now clock.Time, at fabric.Place, p *fabric.Packet) bool {
	return r.take(now, at, p) || p.DQP != 0 && r.fabric.Hand(now, at, p)
}

func (r *Rack) take(now clock.Time, at fabric.Place, p *fabric.Packet) bool {
	for _, t := range r.takers {
		if t.Take(now, at, p) {
			return true
		}
	}
	return false
}

// settle does what is due and notifies those concerned.
func (r *Rack) settle() {
	now := r.Now()
	r.fabric.Advance(now)
	for {
		o, ok := r.fabric.Trap(now, &r.packet)
		if !ok {
			break
		}
		if o.Result == fabric.Delivered {
			r.take(now, o.At, &r.packet)
		}
	}
	r.tell()
	next := clock.Min(clock.Min(r.fabric.Deadline(), r.fabric.TrapDeadline()), r.advanceLAN())
	if next.Before(r.due) {
		r.due = next
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// tell notifies adapters of news.
func (r *Rack) tell() {
	for {
		n, ok := r.fabric.News()
		if !ok {
			return
		}
		if p := r.ports[n.At]; p != nil {
			p.news(n)
		}
	}
}

// timer does what is due when nobody else calls the rack.
func (r *Rack) timer() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-r.wake:
		case <-t.C:
		}
		r.mu.Lock()
		r.due = clock.Never
		r.settle()
		select {
		case <-r.wake: // what settle asked for is already done; others ask under the lock
		default:
		}
		left := time.Hour
		if r.due != clock.Never {
			left = max(0, min(left, r.due.Sub(r.Now())))
		}
		r.mu.Unlock()
		wait.SetTimer(t, left)
	}
}
