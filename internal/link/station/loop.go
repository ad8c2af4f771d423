package station

import (
	"github.com/softvpi/softvpi/internal/frame"
)

// loopSlots is how many frames between stations of one link may wait for Looped before more are dropped.
const loopSlots = 256

// loop holds the frames from stations of a link to stations of it, which no wire brings back. What one function sends to another the
// port keeps already, as a card's switch does (package port); what comes here is what a function sends to itself. It goes through the
// link nevertheless, and only then back, so that a rate, impairments and captures, which are around the link, are as true for it as
// for what goes to others: a program that tries its two ends at one adapter sees the losses that it has asked for.
type loop struct {
	slots [][]byte
	head  int // next to be handed out
	out   int // slots before head that are handed out
	len   int
	drops uint64
}

// put copies a frame.
func (l *loop) put(o *frame.Out) bool {
	i, ok := l.slot()
	if ok {
		l.slots[i] = appendFrame(l.slots[i][:0], o)
	}
	return ok
}

// copies copies a frame that is in one piece.
func (l *loop) copies(b []byte) bool {
	i, ok := l.slot()
	if ok {
		l.slots[i] = append(l.slots[i][:0], b...)
	}
	return ok
}

// slot returns the next one; false: there is none.
func (l *loop) slot() (i int, ok bool) {
	if l.slots == nil {
		l.slots = make([][]byte, loopSlots)
	}
	if l.out+l.len == loopSlots {
		l.drops++
		return 0, false
	}
	i = (l.head + l.len) % loopSlots
	l.len++
	return i, true
}

// hurry sets the timer for now: nothing else wakes who sleeps on the link's descriptors for a frame between its stations, which
// another thread may have sent.
func (s *Set) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed.Store(int64(s.now()))
	s.cfg.Arm(0)
}

// Looped hands out frames that stations of the link have sent to others of it. They are valid until the next call.
func (s *Set) Looped(in []frame.In) int {
	l := &s.loop
	l.out = 0
	n := 0
	for ; n < len(in) && l.len > 0; n++ {
		in[n] = frame.In{Data: l.slots[l.head], Raw: true}
		l.head = (l.head + 1) % loopSlots
		l.len--
	}
	l.out = n
	s.watch.count(n)
	return n
}

// appendFrame appends the whole frame o to b.
func appendFrame(b []byte, o *frame.Out) []byte {
	b = append(b, o.Head[o.HeadStart:o.HeadEnd]...)
	b = append(b, o.Payload...)
	return append(b, o.Tail[:o.TailLen]...)
}
