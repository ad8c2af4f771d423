package transport

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/wire/ib"
)

// PacketNote is what the engine says of a packet of one queue pair: why it was sent, or what became of it, and how far the queue pair
// was then.
type PacketNote struct {
	// Mark is that of the frame.Out if the packet was sent; 0: it arrived.
	Mark    uint32
	Dest    uint32 // the destination queue pair in its BTH
	PSN     ib.PSN
	Opcode  ib.Opcode
	Sent    bool
	Reason  Reason  // if it was sent
	Verdict Verdict // if it arrived
	Progress
}

// Progress is how far a connected queue pair is after a packet.
type Progress struct {
	Requests bool // it has sent any, and what follows is said of them
	// All packets before Oldest are acknowledged, Next is sent next, and New was never sent.
	Oldest, Next, New ib.PSN
	// InFlight is how many packets have left to the destination, of all queue pairs that share the window, and Window how many may. Both
	// are 0 if there is no window: UC.
	InFlight, Window uint32
	TimeOuts         uint8 // since there was progress
	RetriesLeft      uint8
	Probing, RNRWait bool

	Responds bool // requests have arrived, and what follows is said of them
	Expected ib.PSN
	Kept     uint16 // packets that are ahead of Expected and wait for it
	ACKDue   bool   // an ACK is to be sent
	ACKHeld  bool   // one is held back for a while, so that it covers more
	NAKSent  bool   // for the packet that is missing
}

// Append appends the note to b in a form of constant length, which ReadPacketNote takes.
func (n *PacketNote) Append(b []byte) []byte {
	b, err := binary.Append(b, binary.NativeEndian, n)
	if err != nil {
		panic(err) // a field has no constant size
	}
	return b
}

// ReadPacketNote reads what Append has written.
func ReadPacketNote(b []byte) (n PacketNote, err error) {
	if size := binary.Size(&n); len(b) != size {
		return n, fmt.Errorf("a packet's note of %d bytes, want %d", len(b), size)
	}
	_, err = binary.Decode(b, binary.NativeEndian, &n)
	return n, err
}

// String is the note as the comment of a packet.
func (n *PacketNote) String() string {
	what := "arrived: " + n.Verdict.String()
	if n.Sent {
		what = "sent: " + n.Reason.String()
	}
	if p := n.Progress.String(); p != "" {
		what += "; " + p
	}
	return what
}

func (p *Progress) String() string {
	var parts []string
	if p.Responds {
		parts = append(parts, p.responder())
	}
	if p.Requests {
		parts = append(parts, p.requester())
	}
	return strings.Join(parts, "; ")
}

func (p *Progress) responder() string {
	text := fmt.Sprintf("responder expects PSN %d", p.Expected)
	if p.Kept > 0 {
		text += fmt.Sprintf(", %d kept", p.Kept)
	}
	for _, is := range []struct {
		so   bool
		text string
	}{{p.NAKSent, "NAK sent for it"}, {p.ACKDue, "ACK due"}, {p.ACKHeld, "ACK held"}} {
		if is.so {
			text += ", " + is.text
		}
	}
	return text
}

func (p *Progress) requester() string {
	text := fmt.Sprintf("requester: PSN %d is acknowledged next", p.Oldest)
	switch {
	case p.Window == 0:
		return fmt.Sprintf("requester: PSN %d is sent next", p.Next)
	case p.Oldest == p.New:
		text = fmt.Sprintf("requester: all before PSN %d acknowledged", p.New)
	case p.Next != p.New:
		text += fmt.Sprintf(", %d sent next, %d the first new one", p.Next, p.New)
	default:
		text += fmt.Sprintf(", %d sent next", p.Next)
	}
	text += fmt.Sprintf(", window %d of %d", p.InFlight, p.Window)
	if p.TimeOuts > 0 {
		text += fmt.Sprintf(", time-outs %d, retries left %d", p.TimeOuts, p.RetriesLeft)
	}
	if p.Probing {
		text += ", probing"
	}
	if p.RNRWait {
		text += ", waits for the RNR timer"
	}
	return text
}

// reach returns how far q is.
func (q *QP) reach() (p Progress) {
	if !q.connected() {
		return p
	}
	if s := q.req; s != &q.eng.idle.req {
		p.Requests, p.Oldest, p.Next, p.New = true, s.una, s.snd, s.max
		p.TimeOuts, p.RetriesLeft, p.Probing, p.RNRWait = s.timeouts, s.retries, s.probing, s.rnrWait
		if w := q.win; w != nil {
			p.InFlight, p.Window = uint32(max(w.inFlight, 0)), uint32(max(w.size, 0))
		}
	}
	if s := q.resp; s != &q.eng.idle.resp {
		p.Responds, p.Expected, p.Kept = true, s.psn, s.reorder.count
		p.ACKDue, p.ACKHeld, p.NAKSent = s.ack, q.holding() || q.eng.trail.q == q, s.nakSent
	}
	return p
}
