package udp

import (
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/wire/ib"
)

// frames is the part of a link beside the socket.
type frames struct {
	port *packet.Port // nil: none
	why  string       // why there is none
	lost uint64       // packets that the system dropped for lack of room
	// The system did not take a burst as a frame: the socket sends the next one.
	refused bool
}

// openFrames opens the Port and gives the socket, which is not bound yet, the filter of its Intake.
func (l *socketLink) openFrames(ifi int) error {
	f := &l.frames
	switch {
	case l.cfg.Frames == packet.Off:
		f.why = "no frames: switched off"
	case !l.gro:
		// The system would split bursts between the gate and the filter, which both count them.
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
	if i := p.Intake(); i != nil {
		if err := i.Attach(l.fd); err != nil {
			p.Close()
			f.why = "no frames: " + err.Error()
			return nil
		}
		l.receive.intake = i
	}
	f.port = p
	return l.watchSocket(p.Changes())
}

func (f *frames) status() string {
	if f.port == nil {
		return f.why
	}
	return f.port.Status()
}

// countFrames adds what only the Port knows. dropped is how much the socket has dropped, including what the filter took.
func (l *socketLink) countFrames(s *link.Stats, dropped uint64) {
	f := &l.frames
	if f.port != nil {
		s.SentFrames = f.port.Sent()
	}
	if i := l.receive.intake; i != nil {
		dropped -= min(i.Filtered(), dropped)
	}
	f.lost = max(f.lost, dropped) // it was read before what the filter took
	s.ReceiveDrops = f.lost
}

// is reports whether a descriptor of the epoll belongs to the Port.
func (f *frames) is(fd int) bool { return f.port != nil && fd == f.port.Changes() }

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

// tendFrames makes the Port follow the system.
func (l *socketLink) tendFrames() {
	if l.frames.port != nil {
		l.frames.port.Tend(time.Now())
		l.receive.look = true
	}
}
