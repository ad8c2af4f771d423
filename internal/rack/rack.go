// Package rack runs a fabric in real time: it owns the clock and the lock of one, carries on what is due, and lets
// programs come to its ports.
//
// There are two ways to a port, beside each other as with a card. An adapter is plugged in for data (Plug): one a port.
// Programs for management (subnet managers, diagnostics) send datagrams by Carry and get them as Takers.
package rack

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
)

// Options are what a rack is made with.
type Options struct {
	// Timing makes packets take the time of their links. Without it they go as fast as the machine can; credits and
	// queues are the same.
	Timing bool
}

// Taker is a program that takes management datagrams, or many of them.
type Taker interface {
	// Take is asked about a datagram that came to a port and that no agent of the fabric answers, also traps. True: it is
	// taken, and nobody else gets it. It is called with the rack locked: it must keep a copy of what it wants
	// and return, and not call the rack.
	Take(now clock.Time, at fabric.Place, p *fabric.Packet) bool
}

// Rack is a running fabric.
type Rack struct {
	start time.Time
	id    [16]byte      // unlike any other's
	wake  chan struct{} // something is due sooner than it was
	done  chan struct{}
	ended sync.WaitGroup

	mu     sync.Mutex
	fabric *fabric.Fabric
	takers []Taker
	// managers run in the rack; turning: whoever holds the lock works for them afterwards.
	managers []*manager
	turning  bool
	ports    map[fabric.Place]*Port
	packet   fabric.Packet // a trap
	due      clock.Time    // when the timer goes off
	closed   bool
}

// New runs a fabric, which is the rack's from now on, until Close.
func New(f *fabric.Fabric, o Options) *Rack {
	if !o.Timing {
		f.Untimed()
	}
	r := &Rack{start: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{}), fabric: f, ports: map[fabric.Place]*Port{}, due: clock.Never}
	_, _ = rand.Read(r.id[:]) // never fails
	f.Claim(r.take)
	r.ended.Go(r.timer)
	return r
}

// Close ends the rack: its ports' links go down, and nothing is carried on any more.
func (r *Rack) Close() error {
	r.mu.Lock()
	was := r.closed
	r.closed = true
	for _, p := range r.ports {
		p.fall()
	}
	r.mu.Unlock()
	if !was {
		close(r.done)
	}
	r.ended.Wait()
	return nil
}

// Now is the time of the rack, from when it was made.
func (r *Rack) Now() clock.Time { return clock.Time(time.Since(r.start)) }

// Do lets do work on the fabric, and carries on what comes of it.
func (r *Rack) Do(do func(now clock.Time, f *fabric.Fabric)) {
	now, f := r.Lock()
	defer r.Unlock()
	do(now, f)
}

// Lock gives the caller the fabric, until Unlock.
func (r *Rack) Lock() (clock.Time, *fabric.Fabric) {
	r.mu.Lock()
	return r.Now(), r.fabric
}

// Unlock carries on what came of what was done since Lock.
func (r *Rack) Unlock() {
	r.settle()
	r.mu.Unlock()
}

// Attend makes a taker one of those that are asked, behind the others, until leave.
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

// Carry takes a datagram of a program at a port through the fabric. It has been given to whom it concerns when Carry
// returns: an agent's answer (Answered) to a taker at the port itself, else (Delivered) to a taker or the adapter at the port to which it came.
// Dropped: nobody has it. The packet is changed.
func (r *Rack) Carry(from fabric.Place, p *fabric.Packet) fabric.Result {
	now, _ := r.Lock()
	defer r.Unlock()
	return r.carryLocked(now, from, p)
}

// carryLocked is Carry for who holds the lock.
func (r *Rack) carryLocked(now clock.Time, from fabric.Place, p *fabric.Packet) fabric.Result {
	switch o := r.fabric.Send(now, from, p); {
	case o.Result == fabric.Answered && r.take(now, from, p), o.Result == fabric.Delivered && r.Deliver(now, o.At, p):
		return o.Result
	}
	return fabric.Dropped
}

// Deliver gives a datagram that came to a port to whoever takes it there, at last to the adapter; false: nobody did. The
// caller holds the lock.
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

// settle does what is due and tells those whom it concerns.
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
	next := clock.Min(r.fabric.Deadline(), r.fabric.TrapDeadline())
	if next.Before(r.due) {
		r.due = next
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// tell tells adapters what there is for them.
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

// timer does what is due when nobody else is at work.
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
		wait := time.Hour
		if r.due != clock.Never {
			wait = max(0, min(wait, r.due.Sub(r.Now())))
		}
		r.mu.Unlock()
		select {
		case <-r.wake: // settle asked for what is done already
		default:
		}
		t.Reset(wait)
	}
}
