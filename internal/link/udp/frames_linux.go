package udp

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// marksMost limits how many messages of the socket are requested at once.
	marksMost = 64
	// A mark is in the ring slightly before its message is at the socket, where the message may be
	// dropped: what is behind it waits for so many polls.
	markTries = 16
	// Without marks the socket is polled in one of blindEvery polls, and in every one for blindLooks after
	// it had something: what arrives through other interfaces leaves no marks.
	blindEvery = 16
	blindLooks = 64
)

// frames is the part of a link beside the socket.
type frames struct {
	port   *packet.Port // nil: none
	why    string       // why there is none
	marks  int          // messages of the socket that precede what is in the ring
	tries  int          // failed attempts to receive the first of them
	blind  int          // remaining polls in which the socket is polled without marks
	looks  uint
	lost   uint64 // packets that the system dropped for lack of room
	bulk   bulk
	ringed int // packets from the ring since the last changeShift
	// The system did not take a burst as a frame: the socket sends the next one.
	refused bool
}

// openFrames opens the ring and makes the socket drop what the ring has, before the socket is bound.
func (l *socketLink) openFrames(ifi int) error {
	f := &l.frames
	switch {
	case l.cfg.Frames == packet.Off:
		f.why = "no frames: switched off"
	case !l.gro:
		// The kernel would split bursts before the socket, and the
		// filter drop their packets, of which the ring only has a mark.
		f.why = "no frames: the socket takes no bursts (UDP_GRO)"
	case ifi == 0:
		f.why = "no frames: no interface has the address"
	}
	if f.why != "" {
		return nil
	}
	p, err := packet.Open(packet.Config{Addr: l.cfg.Addr, Port: l.cfg.Port, Interface: ifi, Firewall: l.cfg.Frames == packet.On})
	if err != nil {
		f.why = err.Error()
		return nil
	}
	if err := p.Rule().Attach(l.fd); err != nil {
		p.Close()
		f.why = "no frames: " + err.Error()
		return nil
	}
	p.Sole()
	f.port = p
	_, changes := p.Descriptors()
	return l.watchSocket(changes)
}

func (f *frames) status() string {
	if f.port == nil {
		return f.why
	}
	return f.port.Status()
}

// count adds what only the Port knows. dropped is how much the socket has dropped, including the filter's
// drops: what is in the ring was not lost.
func (f *frames) count(s *link.Stats, dropped uint64) {
	if f.port == nil {
		s.ReceiveDrops = dropped
		return
	}
	dropped += f.port.Dropped()
	p := f.port.Stats()
	s.SentFrames, s.ReceivedFrames = p.Sent, p.Received
	if dropped > p.Frames {
		f.lost = max(f.lost, dropped-p.Frames)
	}
	s.ReceiveDrops = f.lost
}

// is reports whether a descriptor of the epoll belongs to the Port.
func (f *frames) is(fd int) bool {
	if f.port == nil {
		return false
	}
	_, changes := f.port.Descriptors()
	return fd == changes
}

// receiveOwn receives what arrived for the link's address.
func (l *socketLink) receiveOwn(in []frame.In) int {
	if l.frames.port == nil {
		return l.receiveFrom(l.fd, l.cfg.Addr, in, false)
	}
	return l.receiveBeside(in)
}

// receiveBeside takes packets from the ring, and from the socket those of which the ring has marks, in the
// order of arrival.
func (l *socketLink) receiveBeside(in []frame.In) int {
	f, r := &l.frames, &l.receive
	if f.bulk.shift == bothTake {
		f.port.Discard()
	} else if f.marks == 0 {
		if n := f.port.Receive(in); n > 0 {
			for i := range in[:n] {
				l.stats.ReceivedBytes += uint64(len(in[i].Data))
			}
			l.stats.ReceivedPackets += uint64(n)
			f.ringed += n
			return f.single(in[:n])
		}
	}
	if f.marks += f.port.Marks(marksMost - f.marks); f.marks > 0 {
		return l.receiveMarked(in)
	}
	if f.looks++; f.blind == 0 && f.bulk.shift == ringTakes && f.looks%blindEvery != 0 {
		r.came = false
		return 0
	}
	n := l.receiveFrom(l.fd, l.cfg.Addr, in, false)
	if n > 0 {
		f.blind = blindLooks
	} else {
		f.bulk.dry = true
		f.blind = max(f.blind-1, 0)
	}
	return n
}

// receiveMarked takes messages of which there are marks, and no later ones.
func (l *socketLink) receiveMarked(in []frame.In) int {
	f := &l.frames
	n := l.receiveFrom(l.fd, l.cfg.Addr, in, true)
	switch f.tries++; {
	case n > 0:
		f.tries = 0
	case f.tries == markTries:
		f.marks, f.tries = 0, 0
	}
	return n
}

// receiveMarks fills messages, including those whose marks arrive while it copies earlier ones.
func (l *socketLink) receiveMarks(messages []message) (n int, errno unix.Errno) {
	f := &l.frames
	for {
		want := min(f.marks, len(messages)-n)
		if want == 0 { // the mark did not stand for a packet
			return 0, unix.EAGAIN
		}
		k, errno := receiveMessages(l.fd, messages[n:n+want], 0)
		if errno != 0 {
			if n > 0 {
				return n, 0
			}
			return 0, errno
		}
		n += k
		f.marks -= k
		if k < want || n == len(messages) {
			return n, 0
		}
		if f.marks = f.port.Marks(marksMost); f.marks == 0 {
			return n, 0
		}
	}
}

// sendFrame sends the first packet as a frame if it is short and not part of a burst.
func (l *socketLink) sendFrame(frames []frame.Out) bool {
	o := &frames[0]
	if l.frames.port == nil || joined(frames) {
		return false
	}
	hop := l.pool.path(o.Route).hop
	if hop == 0 {
		return false
	}
	if o.Segment != 0 { // its burst was split
		link.Single(o, l.caps.SegmentIDs)
	}
	if !l.frames.port.Send(o, hop) {
		return false
	}
	l.stats.SentPackets++
	l.stats.SentBytes += uint64(o.Len())
	l.stats.SentBursts++
	return true
}

// joined reports whether the first packet is to be sent together with the next. A message and the
// acknowledgement after it are not, although they could be: the peer's program waits for the message.
func joined(frames []frame.Out) bool {
	if len(frames) < 2 || frames[1].Segment == 0 {
		return false
	}
	return len(frames) > 2 && frames[2].Segment != 0 || ib.BTH(frames[1].Head[frame.HeadRoom:]).Opcode() != ib.RCAcknowledge
}

// framedMost is the maximum length in bytes of a burst that leaves as a frame. That saves the system's way from a socket to
// the interface: 1.0 of 3.7 us on an AMD EPYC across veth. Longer ones are spliced, or take so long to copy that it hardly
// matters.
const framedMost = stageLeast - 1

// beginFrame writes what precedes a burst that leaves as a frame to b. It returns nil if the socket sends the burst, as it
// does a short packet that could not be sent alone.
func (l *socketLink) beginFrame(b []byte, w *path, frames []frame.Out) []byte {
	f := &l.frames
	if f.port == nil || w.hop == 0 || len(frames) == 1 && frames[0].Len() <= packet.MostPayload {
		return nil
	}
	if f.refused {
		f.refused = false
		return nil
	}
	total := length(frames)
	if total > framedMost {
		return nil
	}
	return b[:f.port.Begin(b, frames, total, w.hop)]
}

// length returns that of a burst in bytes.
func length(frames []frame.Out) int {
	return (len(frames)-1)*frames[0].Len() + frames[len(frames)-1].Len()
}

// tendFrames makes the Port follow the system. If the Port is switched off, the socket takes everything.
func (l *socketLink) tendFrames() {
	if l.frames.port == nil {
		return
	}
	if l.frames.port.Tend() {
		_ = unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) // there is none if the socket takes everything anyway
		l.frames.bulk.shift = socketTakes
		return
	}
	l.changeShift(time.Now())
}
