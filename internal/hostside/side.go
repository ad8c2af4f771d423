package hostside

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/wake"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// pullMost is how many frames of a queue are read in one turn.
	pullMost = 128
	// firstRetry and lastRetry are after what times a host without room is asked again: the pause doubles while it takes
	// nothing. A socket of a virtual machine has room for a dozen frames only.
	firstRetry = 50 * time.Microsecond
	lastRetry  = 5 * time.Millisecond
	macs       = 12 // where a tag belongs in a frame
)

// Counters are those of a Side, kept for its life.
type Counters struct {
	// Read were handed over by the host, Written were taken by it.
	Read, Written uint64
	// BadHeaders are frames whose virtio header says what cannot be, or that are longer than any.
	BadHeaders uint64
	// Finished are frames whose checksums or segments were made here, since the function does not take them so.
	Finished uint64
	// Lost were refused by the host: nobody is there, or the interface is down. Blocked is how often it had no room.
	Lost, Blocked uint64
	// Paused is how often nothing was read because all buffers were in use.
	Paused uint64
	// Threaded were read by the threads of their queues, or handed to them to be written.
	Threaded uint64
}

// Side is the host of an Ethernet function. It implements ethernet.Host. It has one owner, that of the function.
type Side struct {
	end    End
	f      *ethernet.Function
	raised func(ethernet.Event)
	read   func()

	large, small pool
	scratch      *buffer // into which the next frame is read; nil: there is none left
	sends        []sends // by send queue
	paused       bool
	asleep       bool // nothing is read from the host, which sleeps
	groups       listening

	full     uint64 // queues of which the host takes no more
	retry    clock.Time
	pause    time.Duration
	pieces   [][]byte
	header   [offload.HeaderLen]byte
	tag      [eth.VLANLen]byte
	segments offload.Segments
	lanes    lanes
	counters Counters
}

// New returns the side of an end. raised takes the function's events; it must not block, and may be nil. read is called, by any
// thread, when there are frames to pull that the end's descriptors do not signal; it may be nil if the end is not an Apart.
func New(end End, raised func(ethernet.Event), read func()) *Side {
	return &Side{end: end, raised: raised, read: read, retry: clock.Never}
}

// Abilities are what the host of an end can do.
func (s *Side) Abilities() ethernet.Abilities {
	return ethernet.Abilities{Large: s.end.Virtio(), Datagrams: s.end.Datagrams(), Partial: s.end.Virtio()}
}

// Attach connects a function whose host the side is, in place of any that it had. The host's link stays down until SetCarrier.
// The error is the system's.
func (s *Side) Attach(f *ethernet.Function) error {
	s.endLanes()
	s.unlisten()
	s.f = f
	n, most := f.Config().NumTcb, f.Config().TransmitBuffers
	large := max(n, min(largeBuffers*n, most/2)) + 1 // and one into which is read
	// No send queue is ever full: that is what the buffers are counted for.
	s.large, s.small = newPool(large, largeSize, n*largeSize), newPool(min(smallBuffers, max(most-large, 0)), smallSize, math.MaxInt)
	s.sends, s.scratch, s.full, s.retry, s.pause = make([]sends, f.SendQueues()), s.large.get(), 0, clock.Never, 0
	s.paused, s.asleep = false, false
	s.end.Pause(false)
	if err := s.end.SetQueues(f.ReceiveQueues()); err != nil {
		return err
	}
	if err := s.Follow(); err != nil {
		return err
	}
	s.startLanes()
	s.listen()
	return nil
}

// SetCarrier says whether the function that is attached has a wire: without one the host's link is down.
func (s *Side) SetCarrier(up bool) { s.end.SetLink(up) }

// Follow adapts the host's end to the function's configuration: its address and MTU, and what may be left to the function.
func (s *Side) Follow() error {
	c := s.f.Config()
	if err := s.end.Set(c.MAC, c.JumboPacket-eth.EthernetLen); err != nil {
		return err
	}
	const tx = 1
	o := Offloads{Checksums: c.TCPUDPChecksumIPv4&tx != 0 && c.TCPUDPChecksumIPv6&tx != 0}
	if size := s.f.LargeSend(); size > 0 && o.Checksums {
		o.Large4, o.Large6, o.LargeSize = c.LsoV2IPv4 != 0, c.LsoV2IPv6 != 0, size
		o.Datagrams = c.Host.Datagrams && o.Large4 && o.Large6 // the system has one switch for both
	}
	return s.end.Offer(o)
}

// Detach takes the function away: the host's link is down, and what it sends is lost.
func (s *Side) Detach() {
	s.endLanes()
	s.unlisten()
	s.f = nil
	s.sends, s.scratch = nil, nil
	s.end.SetLink(false)
	s.end.Pause(true)
	s.paused = true
}

// End returns the host's end.
func (s *Side) End() End { return s.end }

// Counters returns the counters as they are now.
func (s *Side) Counters() *Counters {
	c := &s.counters
	for _, l := range s.lanes.of {
		c.Written += l.written.Swap(0)
		c.Lost += l.lost.Swap(0)
		c.Blocked += l.blocked.Swap(0)
	}
	return c
}

// Deadline returns when Pull has something to do in any case.
func (s *Side) Deadline() clock.Time {
	if (s.paused || s.lanes.short) && !s.asleep && s.large.some() {
		return 0
	}
	return s.retry
}

// Sending returns how many frames of the host the function still needs.
func (s *Side) Sending() (n int) {
	for i := range s.sends {
		n += s.sends[i].n
	}
	return n
}

// hold makes the host's end silent while all buffers are in use.
func (s *Side) hold() {
	if !s.paused {
		s.counters.Paused++
		s.paused = true
		s.end.Pause(true)
	}
}

func (s *Side) resume() {
	if s.paused {
		s.paused = false
		s.end.Pause(s.asleep)
	}
}

// Sleep puts the host to sleep: nothing is read from it, and what arrives for it is lost, until a frame wakes it, or Wake. The
// error is a *wake.PatternError.
func (s *Side) Sleep(patterns []wake.Pattern) error {
	if err := s.f.Sleep(patterns); err != nil {
		return err
	}
	s.asleep = true
	s.end.Pause(true)
	for _, l := range s.lanes.of {
		l.recall()
	}
	return nil
}

// Wake wakes the host, and reports whether it slept.
func (s *Side) Wake() bool {
	s.f.Wake()
	return s.awake()
}

// awake reads from a host again that has slept.
func (s *Side) awake() (slept bool) {
	slept, s.asleep = s.asleep, false
	if slept {
		s.end.Pause(s.paused)
	}
	return slept
}

// Asleep reports whether the host sleeps.
func (s *Side) Asleep() bool { return s.asleep }

// Pull hands frames of the host to the function, and asks a host that had no room again. It returns how many frames it has
// read; then the port is to have a turn.
func (s *Side) Pull(now clock.Time) (n int) {
	if s.f == nil {
		return 0
	}
	if now >= s.retry {
		s.again(now)
	}
	if s.groups.to != nil {
		s.hear(now)
	}
	if s.asleep {
		return 0
	}
	if s.scratch == nil {
		s.f.Collect(now) // who completes sends with the next ones waits for these
		if s.scratch = s.large.get(); s.scratch == nil {
			s.hold()
			return 0
		}
		s.resume()
	}
	for set := s.end.Ready(); set != 0; set &= set - 1 {
		q := bits.TrailingZeros64(set)
		got := s.pull(now, q)
		n += got
		if s.lanes.apart != nil {
			s.lanes.note(now, q, got)
		}
		if s.scratch == nil {
			break
		}
	}
	return n + s.pullThreads(now)
}

// pull reads frames of one queue.
func (s *Side) pull(now clock.Time, q int) int {
	for n := range pullMost {
		got := s.end.Read(q, s.scratch.b)
		if got == 0 {
			return n
		}
		s.counters.Read++
		s.take(now, s.scratch.b[:got])
		if s.scratch == nil {
			if s.scratch = s.large.get(); s.scratch == nil {
				return n + 1 // until the port has sent some, or else hold
			}
		}
	}
	return pullMost
}

// take posts a frame that is in scratch.
func (s *Side) take(now clock.Time, b []byte) {
	var t offload.Task
	if len(b) == len(s.scratch.b) {
		s.counters.BadHeaders++
		return
	}
	if s.end.Virtio() {
		h, f, err := offload.ParseHeader(b)
		if err != nil || !s.left(h, f, &t) {
			s.counters.BadHeaders++
			return
		}
		b = f
	}
	s.overhear(b)
	if t != (offload.Task{}) && s.finish(now, b, t) {
		return
	}
	s.post(now, b, t)
}

// left finds out what a virtio header leaves to do for a frame. It returns false for one that cannot be.
func (s *Side) left(h offload.Header, f []byte, t *offload.Task) bool {
	if h.Kind == offload.Whole && !h.NeedsChecksum {
		return true
	}
	var e eth.Headers
	if h.Kind == offload.UDP && !s.end.Datagrams() || !e.Parse(f) { // nobody has said that it may be
		return false
	}
	var err error
	if *t, err = h.Task(&e); err == nil || h.Kind != offload.Whole {
		return err == nil
	}
	// A checksum of another protocol, or inside a tunnel.
	if h.ChecksumStart < e.Network+eth.IPv4Len || h.ChecksumStart > len(f) {
		return false
	}
	*t = offload.Task{}
	h.ChecksumStart -= e.Network
	return offload.Complete(h, f[e.Network:]) == nil
}

// finish does what is left to do for a frame that the function does not take so. It returns false if it does take it.
func (s *Side) finish(now clock.Time, f []byte, t offload.Task) bool {
	switch s.f.Takes(&ethernet.Send{Frame: f, Task: t}) {
	case ethernet.NoTask, ethernet.FewSegments, ethernet.Options, ethernet.Long:
	default:
		return false
	}
	var e eth.Headers
	e.Parse(f)
	s.counters.Finished++
	if t.Kind == offload.Whole {
		offload.Make(t.Sums, &e, f)
		s.post(now, f, offload.Task{})
		return true
	}
	if s.segments.BeginFrame(t, &e, f) != nil {
		s.counters.BadHeaders++
		return true
	}
	whole := s.scratch // which is cut
	for head, body, ok := s.segments.Next(); ok; head, body, ok = s.segments.Next() {
		if s.scratch = s.buffer(len(head) + len(body)); s.scratch == nil {
			break // the rest is lost
		}
		n := copy(s.scratch.b, head)
		n += copy(s.scratch.b[n:], body)
		s.post(now, s.scratch.b[:n], offload.Task{})
		if s.scratch != nil { // it was copied, or refused
			s.scratch.put()
		}
	}
	s.segments.End()
	s.scratch = whole
	return true
}

// buffer returns one for n bytes, nil if there is none left.
func (s *Side) buffer(n int) *buffer {
	if n <= smallSize {
		if b := s.small.get(); b != nil {
			return b
		}
	}
	return s.large.get()
}

// post posts a frame that is in scratch, which is then the function's; a short one is copied, so that scratch stays.
func (s *Side) post(now clock.Time, f []byte, t offload.Task) {
	b := s.scratch
	if len(f) <= smallSize && b.pool != &s.small {
		if small := s.small.get(); small != nil {
			b = small
			f = b.b[:copy(b.b, f)]
		}
	}
	q := s.f.QueueFor(f)
	if s.f.Send(now, q, &ethernet.Send{Frame: f, Task: t}) != nil { // which has counted it
		if b != s.scratch {
			b.put()
		}
		return
	}
	b.give(len(f))
	s.sends[q].push(b)
	if b == s.scratch {
		s.scratch = nil
	}
}

// Sent implements ethernet.Host.
func (s *Side) Sent(_ clock.Time, q, n int) {
	for range n {
		s.sends[q].pop().put()
	}
}

// Raised implements ethernet.Host.
func (s *Side) Raised(_ clock.Time, e ethernet.Event) {
	if e.Kind == ethernet.Woken {
		s.awake()
	}
	if s.raised != nil {
		s.raised(e)
	}
}

// Indicate implements ethernet.Host.
func (s *Side) Indicate(now clock.Time, q int, list []ethernet.Packet) int {
	if l := s.lane(now, q, len(list)); l != nil {
		n := s.hand(now, l, q, list)
		s.counters.Threaded += uint64(n)
		return n
	}
	for i := range list {
		switch s.end.Write(q, s.frame(&list[i])) {
		case Taken:
			s.counters.Written++
			s.pause = 0
		case Lost:
			s.counters.Lost++
		case Full:
			s.counters.Blocked++
			s.full |= 1 << q
			s.pause = min(max(2*s.pause, firstRetry), lastRetry)
			s.retry = clock.Min(s.retry, now.Add(s.pause))
			return i
		}
	}
	return len(list)
}

// frame returns the pieces of a frame as the host takes it: with the tag that was taken out, and with a virtio header.
func (s *Side) frame(p *ethernet.Packet) [][]byte {
	s.pieces = s.pieces[:0]
	parts, h := p.Parts, p.Header
	if s.end.Virtio() {
		if p.Tagged {
			h.ChecksumStart += eth.VLANLen
			h.Headers += eth.VLANLen
		}
		if !h.NeedsChecksum {
			h.ChecksumStart, h.ChecksumAt = 0, 0
		}
		if h.Kind == offload.Whole {
			h.Headers = 0
		}
		h.Put(s.header[:])
		s.pieces = append(s.pieces, s.header[:])
	}
	if p.Tagged {
		binary.BigEndian.PutUint16(s.tag[:], uint16(eth.TypeVLAN))
		binary.BigEndian.PutUint16(s.tag[2:], p.TCI)
		s.pieces = append(s.pieces, parts[0][:macs], s.tag[:], parts[0][macs:])
		parts = parts[1:]
	}
	s.pieces = append(s.pieces, parts...)
	return s.pieces
}

// again asks a host that had no room.
func (s *Side) again(now clock.Time) {
	set := s.full
	s.full, s.retry = 0, clock.Never
	for ; set != 0; set &= set - 1 {
		s.f.Ready(now, bits.TrailingZeros64(set))
	}
}
