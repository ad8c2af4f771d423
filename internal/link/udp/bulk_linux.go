package udp

import (
	"encoding/binary"
	"math/bits"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/wire/ib"
)

// While mostly bursts arrive a link leaves its ring: each would have a mark there, which costs
// their sender's processor more than the few short packets between them gain.
const (
	// busyLong bursts and long packets a millisecond, and no more short ones, in busyLooks
	// looks one after the other, make the socket take everything.
	busyLong  = 8
	busyLooks = 2
	// In calmLooks looks one after the other there were not even calmLong, or more short ones, before
	// the ring is in use again.
	calmLong  = 4
	calmLooks = 8
	// lookTime is the least between two looks. It is also how long both take the short packets
	// when the ring begins to: longer than a packet is on its way from one to the other.
	lookTime = time.Millisecond
	// The last packets that are compared, by what is in them.
	trackedSets = 256
	trackedEach = 8
)

// shift is which of ring and socket takes the short packets.
type shift uint8

const (
	ringTakes   shift = iota // and the socket's filter drops them
	socketTakes              // and the ring takes nothing
	bothTake                 // the socket's count; the ring is about to take over
)

// bulk decides about the shift.
type bulk struct {
	shift shift
	last  time.Time // changeShift looked
	row   int       // looks one after the other that asked for the other shift
	// Around a change of shifts a packet may come by both ways: those that came are compared.
	compare int  // looks for which they are, once what waited has been taken
	dry     bool // nothing waited at the socket since
	// What makes a packet is mixed into a number, whose last bit says that the socket had it.
	seen [trackedSets][trackedEach]uint64
}

// compareOn has packets compared around a change.
func (b *bulk) compareOn() { b.compare, b.dry = 2, false }

// twice reports whether a packet came before by the other way.
func (b *bulk) twice(in *frame.In, ring bool) bool {
	n := len(in.Data)
	if n > packet.MostPayload || n < ib.BTHLen+ib.ICRCLen {
		return false
	}
	src := in.Src.As16()
	x := uint64(in.SrcPort)<<16 | uint64(n)
	x = mixed(x, binary.LittleEndian.Uint64(src[:]))
	x = mixed(x, binary.LittleEndian.Uint64(src[8:]))
	x = mixed(x, binary.LittleEndian.Uint64(in.Data))
	x = mixed(x, uint64(binary.LittleEndian.Uint32(in.Data[8:]))<<32|uint64(binary.LittleEndian.Uint32(in.Data[n-ib.ICRCLen:])))
	set := &b.seen[x>>32%trackedSets]
	x |= 1
	if ring {
		x--
	}
	for i := range set {
		if set[i] == x^1 {
			set[i] = 0
			return true
		}
	}
	copy(set[1:], set[:])
	set[0] = x
	return false
}

func mixed(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x^0x9e3779b97f4a7c15, y^0xd1b54a32d192ed03)
	return hi ^ lo
}

// twice reports whether a packet came before by the other way, and counts it.
func (f *frames) twice(in *frame.In, ring bool) bool {
	if !f.bulk.twice(in, ring) {
		return false
	}
	f.port.Twice()
	return true
}

// single drops those packets from the ring that the socket had too.
func (f *frames) single(in []frame.In) int {
	if f.bulk.compare == 0 {
		return len(in)
	}
	n := 0
	for i := range in {
		if f.twice(&in[i], true) {
			continue
		}
		if n != i {
			in[n] = in[i]
		}
		n++
	}
	return n
}

// changeShift chooses the shift by what came since the last one.
func (l *socketLink) changeShift(now time.Time) {
	f, r := &l.frames, &l.receive
	b := &f.bulk
	passed := now.Sub(b.last)
	if passed < lookTime {
		return
	}
	if b.compare > 0 && b.dry && (b.shift != socketTakes || f.port.Empty()) {
		b.compare--
	}
	least := int(passed / lookTime)
	long, short := r.long, r.all-r.long+f.ringed
	b.last, r.all, r.long, f.ringed = now, 0, 0, 0
	switch b.shift {
	case ringTakes:
		if long < busyLong*least || short > long {
			b.row = 0
			return
		}
		b.compareOn()
		if b.row++; b.row >= busyLooks {
			b.row = 0
			l.takeAll()
		}
	case socketTakes:
		if long >= calmLong*least && short <= long {
			b.row = 0
			return
		}
		// What the ring still has is in it alone.
		if b.row++; b.row >= calmLooks && f.port.Empty() && f.port.Resume() {
			b.row, b.shift = 0, bothTake
			b.compareOn()
		}
	case bothTake:
		f.port.Discard()
		b.compareOn()
		if f.port.Rule().Attach(l.fd) == nil {
			b.shift, f.marks, f.blind = ringTakes, 0, blindLooks
			f.port.Sole()
		}
	}
}

// takeAll has the socket take everything, and the ring nothing.
func (l *socketLink) takeAll() {
	if unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) != nil {
		return
	}
	l.frames.bulk.shift = socketTakes
	if !l.frames.port.Pause() {
		l.frames.bulk.shift = bothTake
	}
}
