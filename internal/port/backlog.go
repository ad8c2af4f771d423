package port

import (
	"math/bits"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// xoff bytes of lossless priorities that wait make the port ask the other end to pause them, until there are fewer than xon.
	xoff = 64 << 10
	xon  = 32 << 10
	// losslessRoom is how many bytes of lossless priorities wait at most: xoff, and headroom for what is on its way when the other end
	// is told, which is as much as it and what is between hand on in a turn. lossyRoom is that of the others.
	losslessRoom = 64 << 20
	lossyRoom    = 1 << 20
	// keeping is what a packet takes up beside its bytes.
	keeping = 256
	// pollFirst is after what time whoever has no receive is asked again, and pollLast the longest such time: it doubles.
	pollFirst = 10 * time.Microsecond
	pollLast  = 500 * time.Microsecond
	// drained is how many packets are handed on in one turn.
	drained = 512
	// fewKept is for how many packets the memory stays when none waits any more.
	fewKept = 1024
)

// Forever is a time-out of dropless mode that never passes.
const Forever time.Duration = 1<<63 - 1

// Dropless is the mode in which packets that find no receive wait, with all behind them, so that flow control takes over (WinOF-2
// Ethernet, Dropless Mode; WinOF 5.50, 4.1.12.2.2 Poll Mode). The zero value: the mode is off.
type Dropless struct {
	// Timeout is how long a packet waits; then it is lost, and the mode is left.
	Timeout time.Duration
	// Expired is called then, with the number of the receive queue. It must not call the port.
	Expired func(queue uint32)
}

// kept is a packet that waits.
type kept struct {
	in       frame.In
	memory   []byte
	grh      [ib.GRHLen]byte
	station  *Station
	priority uint8
	opened   bool // it has no outer headers any more
	size     int  // for which it counts
}

// set makes k a copy of a packet.
func (k *kept) set(in *frame.In) {
	k.memory = append(k.memory[:0], in.Data...)
	k.in = *in
	k.in.Data = k.memory
	k.hold()
}

// hold keeps the global route header of a packet, which may be anywhere.
func (k *kept) hold() {
	if k.in.GRH != nil {
		k.grh = *k.in.GRH
		k.in.GRH = &k.grh
	}
}

// backlog are the packets that wait, in the order in which they have come.
type backlog struct {
	mode   Dropless
	list   []kept // a ring, of a power of two
	first  int
	n      int
	bytes  [pause.Priorities]int
	queue  uint32        // for whose receive the first one waits
	since  clock.Time    // from when on
	again  clock.Time    // when it is tried again
	poll   time.Duration // after what time then
	asking bool          // it was more than xoff, and has not been less than xon since
	next   [1]frame.In
	taken  uint64 // packets that went on
	lost   [pause.Priorities]uint64
}

// SetDropless enters or leaves dropless mode. What waits when it is left is handed on as without it.
func (p *Port) SetDropless(d Dropless) {
	p.backlog.mode = d
	p.backlog.again = 0
}

// Dropless returns the time-out of dropless mode; 0: it is off.
func (p *Port) Dropless() time.Duration { return p.backlog.mode.Timeout }

// Overruns returns how many packets of each priority were lost because too many waited already.
func (p *Port) Overruns() [pause.Priorities]uint64 { return p.backlog.lost }

// Waiting returns how many packets wait for receives.
func (p *Port) Waiting() int { return p.backlog.n }

// offer hands packets to a station whose function may have no receive for them; what it does not take waits.
func (p *Port) offer(now clock.Time, x *place, in []frame.In) {
	b, s := &p.backlog, x.station
	for len(in) > 0 && b.n == 0 {
		priority, n := p.priorityOf(&in[0]), 1
		for n < len(in) && p.priorityOf(&in[n]) == priority {
			n++
		}
		good := n
		if x.encap != nil {
			x.encap.Tick(now)
			good = x.encap.OpenNext(in[:n], nil)
		}
		took, queue := s.waiter.Take(now, in[:good])
		p.counters.Received += uint64(took)
		if took < good {
			b.queue, b.since, b.poll = queue, now, pollFirst
			b.again = now.Add(pollFirst)
			p.watch.counted.States++
			p.keep(s, in[took:good], priority, x.encap != nil)
		}
		in = in[n:]
	}
	for i := range in {
		p.keep(s, in[i:i+1], p.priorityOf(&in[i]), false)
	}
	p.ask()
}

// keep adds packets for a station to those that wait, or loses them.
func (p *Port) keep(s *Station, in []frame.In, priority uint8, opened bool) {
	b, like, room := &p.backlog, p.lossless(), losslessRoom
	if like>>priority&1 == 0 {
		like, room = ^like, lossyRoom
	}
	used := b.used(like)
	for i := range in {
		size := in[i].Len() + keeping
		if used += size; used > room {
			b.lost[priority] += uint64(len(in) - i)
			return
		}
		if b.n == len(b.list) {
			b.grow()
		}
		k := b.at(b.n)
		b.n++
		k.set(&in[i])
		k.station, k.priority, k.opened, k.size = s, priority, opened, size
		b.bytes[priority] += size
	}
}

// lossless returns the priorities which the other end can be asked to pause.
func (p *Port) lossless() uint8 {
	if p.flow == nil {
		return 0
	}
	return p.flow.Config().Asks.Priorities
}

// used returns how many bytes of some priorities wait.
func (b *backlog) used(priorities uint8) (n int) {
	for ; priorities != 0; priorities &= priorities - 1 {
		n += b.bytes[bits.TrailingZeros8(priorities)]
	}
	return n
}

func (b *backlog) at(i int) *kept { return &b.list[(b.first+i)&(len(b.list)-1)] }

// grow doubles the ring, all of which is in use.
func (b *backlog) grow() {
	list := make([]kept, max(64, 2*len(b.list)))
	for i := range b.n {
		list[i] = *b.at(i)
		list[i].hold()
	}
	b.list, b.first = list, 0
}

// remove removes the first packet. Its memory is used again, unless many have waited.
func (b *backlog) remove() {
	k := b.at(0)
	b.bytes[k.priority] -= k.size
	k.in, k.station = frame.In{}, nil
	b.first, b.n = (b.first+1)&(len(b.list)-1), b.n-1
	b.taken++
	if b.n == 0 && len(b.list) > fewKept {
		b.list, b.first = nil, 0
	}
}

// due returns when drain has something to do.
func (b *backlog) due() clock.Time {
	switch {
	case b.n == 0:
		return clock.Never
	case b.mode.Timeout == 0:
		return 0
	}
	return b.again
}

// drain hands on what waits, as far as there are receives for it.
func (p *Port) drain(now clock.Time) {
	b := &p.backlog
	if b.due() > now {
		return
	}
	for range drained {
		if b.n == 0 || !p.handOn(now) {
			break
		}
		b.again = now
	}
	p.ask()
}

// handOn hands on the first packet that waits; false: it has to go on waiting.
func (p *Port) handOn(now clock.Time) bool {
	b := &p.backlog
	k := b.at(0)
	s := k.station
	if s.off || s.cut || len(s.wires) == 0 {
		b.remove()
		return true
	}
	b.next[0] = k.in
	if x := s.wires[0].place(s); !k.opened && x != nil && x.encap != nil {
		x.encap.Tick(now)
		if x.encap.OpenNext(b.next[:], nil) == 0 {
			b.remove()
			return true
		}
		k.in, k.opened = b.next[0], true
		k.hold()
		b.next[0] = k.in
	}
	if b.mode.Timeout != 0 && s.waiter != nil {
		s.bell.Ring()
		if n, queue := s.waiter.Take(now, b.next[:]); n == 0 {
			if !p.expire(now, queue) {
				return false
			}
			s.function.Receive(now, b.next[:]) // which loses it, or tells its sender
		}
	} else {
		s.bell.Ring()
		s.function.Receive(now, b.next[:])
	}
	p.counters.Received++
	b.remove()
	b.poll = 0 // the next one begins to wait
	return true
}

// expire leaves the mode if the first packet has waited for too long, and reports whether it has.
func (p *Port) expire(now clock.Time, queue uint32) bool {
	b := &p.backlog
	if b.poll == 0 {
		b.queue, b.since, b.poll = queue, now, pollFirst
	}
	t := b.mode.Timeout
	if t == Forever || now.Sub(b.since) < t {
		b.again = now.Add(b.poll)
		if b.poll = min(2*b.poll, pollLast); t != Forever {
			b.again = clock.Min(b.again, b.since.Add(t))
		}
		return false
	}
	expired := b.mode.Expired
	b.mode = Dropless{}
	if expired != nil {
		expired(queue)
	}
	return true
}

// ask asks the other end for the pauses that what waits here demands.
func (p *Port) ask() {
	if p.flow == nil || p.flow.Config().Asks.Mode == pause.None {
		return
	}
	b, lossless := &p.backlog, p.lossless()
	switch used := b.used(lossless); {
	case used >= xoff:
		b.asking = true
	case used < xon:
		b.asking = false
	}
	want := p.filled() & lossless
	if b.asking {
		want = lossless
	}
	if want != 0 && p.flow.Config().Asks.Mode == pause.Global {
		want = pause.All
	}
	p.flow.Ask(want)
}

// filled returns the priorities that wait in receive queues which are filled above their threshold.
func (p *Port) filled() (priorities uint8) {
	for _, s := range p.roster.awake {
		if s.filler != nil && !s.off {
			priorities |= s.filler.Filled()
		}
	}
	return priorities
}

// priorityOf returns the priority as which a received packet is kept.
func (p *Port) priorityOf(in *frame.In) uint8 {
	if !in.Raw {
		return p.Classifier.OfClass(in.TrafficClass)
	}
	return p.buffer(in.Data)
}

// buffer returns the priority as which a received frame is kept: its own, or the lowest lossless one if it names none and is to be
// lossless.
func (p *Port) buffer(frame []byte) uint8 {
	priority, named := p.Classifier.Frame(frame)
	if !p.Classifier.Lossless || named {
		return priority
	}
	if l := p.lossless(); l != 0 && l>>priority&1 == 0 {
		return uint8(bits.TrailingZeros8(l))
	}
	return priority
}

// Priority returns the priority as which a frame that the station receives is kept.
func (s *Station) Priority(frame []byte) uint8 { return s.port.buffer(frame) }
