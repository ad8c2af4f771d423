package udp

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/packet"
)

// groupTurn: groups are polled first once in so many calls.
const groupTurn = 8

// receiver receives a link's packets, orders them and counts them. Short ones come from the intake, if there is one,
// and all else in messages of the link's socket. Either way a packet comes once, and what is in the intake is older than
// what is at the socket (packet.Intake), so that one rule keeps the order: the intake comes first. Messages of groups
// have an order of their own.
type receiver struct {
	intake *packet.Intake // nil: everything comes in messages
	short  packet.Datagram
	batch  batch
	owed   int  // messages of the link's socket in the batch, of which the intake has not been told
	look   bool // the next fetch looks at the link's socket whatever the intake says

	burst arrival // the one being cut into packets
	off   int     // how far into it
	turn  int
}

// arrival is a packet, or several of one length except the last, from the intake or a message.
type arrival struct {
	data         []byte
	segment      int    // length of its packets
	index        uint16 // identification of the next one, as far as it is known
	seen         bool   // index is what the packet had
	memory       bool   // it came from the intake
	src, dst     netip.Addr
	srcPort      uint16
	trafficClass uint8
	hopLimit     uint8
	flowLabel    uint32
}

// Receive implements link.Link.
func (l *socketLink) Receive(in []frame.In) (int, error) {
	if l.closed {
		return 0, net.ErrClosed
	}
	r := &l.receive
	if r.intake != nil {
		r.look = r.intake.Woken() || r.look
		r.intake.Free()
	}
	n := 0
	for n < len(in) {
		if r.off == len(r.burst.data) && !l.nextBurst(n) {
			break
		}
		n += l.cut(in[n:])
	}
	return n, nil
}

// cut hands out packets of the burst.
func (l *socketLink) cut(in []frame.In) int {
	r := &l.receive
	b := &r.burst
	n, start := 0, r.off
	for r.off < len(b.data) && n < len(in) {
		end := min(r.off+b.segment, len(b.data))
		// Field by field: copying a struct as a whole would have to wait for the stores of its fields.
		p := &in[n]
		p.Data = b.data[r.off:end:end]
		p.Src, p.Dst, p.SrcPort = b.src, b.dst, b.srcPort
		p.TrafficClass, p.HopLimit, p.FlowLabel = b.trafficClass, b.hopLimit, b.flowLabel
		p.Segment, p.IDSeen, p.Raw, p.IDKnown, p.ID = b.index, b.seen, false, false, 0
		b.index++
		r.off = end
		n++
	}
	l.stats.ReceivedPackets += uint64(n)
	l.stats.ReceivedBytes += uint64(r.off - start)
	if b.memory {
		l.stats.ReceivedFrames += uint64(n)
	}
	return n
}

// nextBurst begins the next burst and returns false if there is none now. handed is how many packets this Receive has
// handed out: until the next one, their buffers are in use.
func (l *socketLink) nextBurst(handed int) bool {
	r := &l.receive
	for {
		r.off = 0
		if r.intake != nil && r.intake.Next(&r.short) {
			r.burst.take(&r.short, l.cfg.Addr)
			return true
		}
		b := &r.batch
		if b.next == b.n {
			r.burst.data = nil
			r.settle()
			if handed > 0 || !l.fetch() {
				return false
			}
			continue // what is in the intake by now came before the messages
		}
		if b.next == 0 && r.owed > 0 && r.intake.Coming() {
			r.burst.data = nil
			return false
		}
		ok, truncated := b.open(&r.burst, l.cfg.Addr)
		if ok {
			return true
		}
		if truncated {
			l.stats.ReceiveTruncated++
		}
	}
}

// take makes a burst of what the intake had.
func (b *arrival) take(d *packet.Datagram, to netip.Addr) {
	b.data, b.segment, b.memory = d.Data, d.Segment, true
	if b.segment == 0 {
		b.segment = len(b.data)
	}
	// Some senders do not choose the identification and compute the ICRC without it. In the parts of
	// a burst it is a hint: whoever joined it may not have looked at the identifications.
	b.index, b.seen = d.ID, d.Segment == 0
	b.src, b.dst, b.srcPort = d.Src, to, d.SrcPort
	b.trafficClass, b.hopLimit, b.flowLabel = d.TrafficClass, d.HopLimit, d.FlowLabel
}

// settle tells the intake that the messages of the batch have been handed out, so that short packets behind them may go
// there.
func (r *receiver) settle() {
	if r.owed > 0 {
		r.intake.Handed(r.owed)
		r.owed = 0
	}
}

// idle reports whether nothing that was received is left to hand out.
func (r *receiver) idle() bool { return r.off == len(r.burst.data) && r.batch.next == r.batch.n }

// fetch receives a batch of messages, from the link's socket or a group's.
func (l *socketLink) fetch() bool {
	r := &l.receive
	r.turn++
	if len(l.groups) == 0 {
		return l.fetchOwn()
	}
	if r.turn%groupTurn == 0 {
		return l.fetchGroup() || l.fetchOwn()
	}
	return l.fetchOwn() || l.fetchGroup()
}

// fetchOwn receives messages from the link's socket. The intake knows how many are there, which saves most looks; one
// every few milliseconds finds what it does not know.
func (l *socketLink) fetchOwn() bool {
	r := &l.receive
	if r.intake == nil {
		return l.fetchFrom(l.fd, l.cfg.Addr, r.batch.most)
	}
	there, most := r.intake.Messages(), r.batch.most
	switch {
	case r.look:
		r.look = false
	case there == 0:
		r.batch.came = false
		return false
	case there == 1:
		most = 1
	}
	if !l.fetchFrom(l.fd, l.cfg.Addr, most) {
		r.intake.Missing(there)
		return false
	}
	r.owed = r.batch.n
	return true
}

// fetchFrom receives at most so many messages from a socket.
func (l *socketLink) fetchFrom(fd int, dst netip.Addr, most int) bool {
	b := &l.receive.batch
	b.provide()
	b.reset()
	for range maxErrors {
		n, errno := receiveMessages(fd, b.messages[:most], 0)
		switch {
		case errno == 0:
			b.n, b.dst = n, dst
			b.pace(n)
			return true
		case errno == unix.EINTR:
		case errno == unix.EAGAIN, l.readErrors(fd) == 0:
			b.came = false
			return false
		} // otherwise an ICMP error preceded the packets
	}
	b.came = false
	return false
}

// ArmWakeUp implements link.Sleeper.
func (l *socketLink) ArmWakeUp() bool {
	return l.closed || l.receive.idle() && l.receive.intake.Sleep()
}
