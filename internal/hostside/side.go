package hostside

import (
	"math"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/wake"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
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
	deaf         bool // a fault: the host takes nothing
	groups       listening

	full     uint64 // queues of which the host takes no more
	retry    clock.Time
	pause    time.Duration
	pieces   [][]byte
	header   [offload.TunnelHeaderLen]byte
	tunnels  bool // the end has tunnels
	tag      [eth.VLANLen]byte
	segments offload.Segments
	lanes    lanes
	counters Counters
}

// New returns the side of an end. raised takes the function's events; it must not block, and may be nil. read is called, by any
// thread, when there are frames to pull that the end's descriptors do not signal; it may be nil if the end is not an Apart.
func New(end End, raised func(ethernet.Event), read func()) *Side {
	s := &Side{end: end, raised: raised, read: read, retry: clock.Never}
	if e, ok := end.(Enclosing); ok {
		s.tunnels = e.Tunnels()
	}
	return s
}

// Abilities are what the host of an end can do.
func (s *Side) Abilities() ethernet.Abilities {
	return ethernet.Abilities{Large: s.end.Virtio(), Datagrams: s.end.Datagrams(), Tunnels: s.tunnels, Partial: s.end.Virtio()}
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
	s.paused, s.asleep, s.deaf = false, false, false
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
		o.Tunnels = c.Host.Tunnels && c.TunnelVXLAN != 0 && o.Large4 && o.Large6
	}
	if o.LargeSize == offload.MaxPacket {
		o.LargeSize++ // as systems have it that do not say otherwise
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
