package bridge

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// Frame is a whole Ethernet frame without its frame check sequence.
type Frame struct {
	// Pieces are the frame's bytes, one after the other. The first has its Ethernet header, without a tag, at least. Those of
	// a frame that a port has sent are all in the first, and valid until the next call of Take.
	Pieces [3][]byte
	// Task is what is left to do for the frame; zero: nothing.
	Task offload.Task
	// BadFCS says that the frame check sequence is wrong. A bridge that begins to send a frame before it has all of it, as this one,
	// passes it on (cut-through).
	BadFCS bool
}

// Len returns the frame's length in bytes.
func (f *Frame) Len() int { return len(f.Pieces[0]) + len(f.Pieces[1]) + len(f.Pieces[2]) }

// tci returns the tag control information of a frame's VLAN tag; ok is false if it has none, and whole if it has a part of one.
func (f *Frame) tci() (tci uint16, ok, whole bool) {
	if !tagged(f.Pieces[0]) {
		return 0, false, true
	}
	if f.Len() < eth.EthernetLen+eth.VLANLen {
		return 0, true, false
	}
	var b [2]byte
	n, at := 0, eth.EthernetLen
	for _, p := range f.Pieces {
		if at < len(p) {
			n += copy(b[n:], p[at:])
			at = 0
		} else {
			at -= len(p)
		}
	}
	return binary.BigEndian.Uint16(b[:]), true, true
}

// place is where a frame of a queue is.
type place struct {
	from, to int
	task     offload.Task
	bad      bool
}

// queue holds the frames that a port sends, copied into a ring of bytes that it owns, each in one part.
type queue struct {
	memory []byte
	places []place
	head   int // next to be taken
	out    int // those before head that were taken, and are in use until the next Take
	len    int // those from head on that wait
	bytes  int // of these

	pausing uint64 // ports whose other ends are to pause for what waits here
}

func newQueue(bytes, frames int) *queue {
	return &queue{memory: make([]byte, bytes), places: make([]place, frames)}
}

// beyond reports whether more than 1/part of what a queue has at first is in use.
func (q *queue) beyond(part int) bool {
	return q.len > QueueFrames/part || q.bytes > DefaultQueue/part
}

// grow doubles the queue; false: it is as large as any. Frames that were taken stay where they are.
func (q *queue) grow() bool {
	if 2*len(q.memory) > mostLossless {
		return false
	}
	n := newQueue(2*len(q.memory), 2*len(q.places))
	n.pausing = q.pausing
	for i := range q.len {
		p := q.places[(q.head+i)%len(q.places)]
		k := copy(n.memory[n.bytes:], q.memory[p.from:p.to])
		n.places[i] = place{n.bytes, n.bytes + k, p.task, p.bad}
		n.bytes += k
	}
	n.len = q.len
	*q = *n
	return true
}

// room returns n consecutive bytes that nobody uses; nil: there are none.
func (q *queue) room(n int) (b []byte, from int) {
	used := q.out + q.len
	if used == len(q.places) {
		return nil, 0
	}
	if used == 0 {
		return q.cut(0, n, len(q.memory))
	}
	first := q.places[(q.head-q.out+len(q.places))%len(q.places)].from
	end := q.places[(q.head+q.len-1+len(q.places))%len(q.places)].to
	if end <= first {
		return q.cut(end, n, first)
	}
	if b, from = q.cut(end, n, len(q.memory)); b == nil {
		b, from = q.cut(0, n, first)
	}
	return b, from
}

func (q *queue) cut(from, n, to int) ([]byte, int) {
	if to-from < n {
		return nil, 0
	}
	return q.memory[from : from+n : from+n], from
}

// put copies a frame, of which the first skip bytes behind the MACs are left out and tag (none, or a VLAN tag) is put there.
// It returns the length it has now; 0: there is no room.
func (q *queue) put(f *Frame, skip int, tag []byte) int {
	const macs = 12
	n := f.Len() - skip + len(tag)
	b, from := q.room(n)
	if b == nil {
		return 0
	}
	at := copy(b, f.Pieces[0][:macs])
	at += copy(b[at:], tag)
	skip += macs
	for _, p := range f.Pieces {
		k := min(skip, len(p))
		at += copy(b[at:], p[k:])
		skip -= k
	}
	q.places[(q.head+q.len)%len(q.places)] = place{from, from + n, f.Task, f.BadFCS}
	q.len++
	q.bytes += n
	return n
}

// take hands out the frames that wait, as far as there is space.
func (q *queue) take(out []Frame) int {
	n := min(len(out), q.len)
	for i := range out[:n] {
		p := &q.places[(q.head+i)%len(q.places)]
		q.bytes -= p.to - p.from
		out[i] = Frame{Pieces: [3][]byte{q.memory[p.from:p.to:p.to]}, Task: p.task, BadFCS: p.bad}
	}
	q.head = (q.head + n) % len(q.places)
	q.len -= n
	q.out = n
	return n
}
