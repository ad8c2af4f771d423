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

// While mostly bursts arrive, a link stops using its ring: each burst would leave a mark there, which
// costs its sender's processor more than the few short packets between them gain.
const (
	// If busyLooks consecutive checks find at least busyLong bursts and long packets per millisecond, and
	// no more short ones, the socket takes everything.
	busyLong  = 8
	busyLooks = 2
	// The ring is used again after calmLooks consecutive checks found fewer than calmLong, or more short
	// ones.
	calmLong  = 4
	calmLooks = 8
	// lookTime is the minimum time between two checks. It is also how long both take the short packets
	// when the ring resumes: longer than a packet can be on its way between the two.
	lookTime = time.Millisecond
	// The number of recent packets that are compared, in sets by their content.
	trackedSets = 256
	trackedEach = 8
)

// shift says whether the ring or the socket takes the short packets.
type shift uint8

const (
	ringTakes   shift = iota // and the socket's filter drops them
	socketTakes              // and the ring takes nothing
	bothTake                 // the socket's packets are used; the ring is about to take over
)

// bulk decides on the shift.
type bulk struct {
	shift shift
	last  time.Time // time of the last changeShift
	row   int       // consecutive checks in favour of the other shift
	// Around a change of shifts a packet may arrive both ways, so arrived packets are compared.
	compare int  // remaining checks with comparison, once what waited has been taken
	dry     bool // nothing has been waiting at the socket since
	// The identity of a packet is hashed to a number, whose last bit says that the socket had it.
	seen [trackedSets][trackedEach]uint64
}

// compareOn starts comparing packets around a change.
func (b *bulk) compareOn() { b.compare, b.dry = 2, false }

// twice reports whether a packet has already arrived the other way.
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

// twice reports whether a packet has already arrived the other way, and counts it.
func (f *frames) twice(in *frame.In, ring bool) bool {
	if !f.bulk.twice(in, ring) {
		return false
	}
	f.port.Twice()
	return true
}

// single removes the packets that the socket also had from those of the ring.
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

// changeShift chooses the shift according to what arrived since the last call.
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
		// What remains in the ring is only there.
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

// takeAll makes the socket take everything, and the ring nothing.
func (l *socketLink) takeAll() {
	if unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) != nil {
		return
	}
	l.frames.bulk.shift = socketTakes
	if !l.frames.port.Pause() {
		l.frames.bulk.shift = bothTake
	}
}
