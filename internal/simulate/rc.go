package simulate

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/internal/simulate/workload"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// message is the longest write of a flow, and deep how many of them are in the send queue.
	message = 256 << 10
	deep    = 2
	// memoryAt is where the memory of each host begins.
	memoryAt = 0x10000
	pd       = 1
	// batch is how many packets an engine is handed at once.
	batch = 64
)

// rcHost is a host whose flows are writes of RC queue pairs, behind a port. What the port hands out becomes frames without the bytes
// of the payload, which stay where the sender has them until they have arrived.
type rcHost struct {
	*shard
	node int // in the shard
	nic  *scenario.NIC
	addr netip.Addr

	engine *transport.Engine
	port   port.Port
	wire   port.Wire
	region *memory.Region // of all memory
	due    clock.Time     // when the port wanted to be driven next after the last turn

	last  last
	in    []frame.In
	refs  []ethernet.Ref // of in
	held  [frame.Priorities][]ethernet.Ref
	holds uint8 // priorities at which some are held
	full  uint8
	head  [bthAt]byte // of what it sends
}

func newRCHost(sh *shard, node int) (*rcHost, error) {
	h := &rcHost{shard: sh, node: int(sh.r.n.at[node].node), nic: sh.r.s.NICs[node], addr: sh.r.n.addrs[node]}
	mem := memory.NewTable(4, nil)
	region, err := mem.Register(memory.Region{PD: pd, Base: memoryAt, Length: message, Bytes: shared[:],
		Access: memory.LocalWrite | memory.RemoteWrite})
	if err != nil {
		return nil, err
	}
	h.region = region
	if h.engine, err = transport.New(transport.Config{Memory: mem, MaxQPs: workload.Most}); err != nil {
		return nil, err
	}
	if err = h.engine.SetCongestion(h.nic.Congestion); err != nil {
		return nil, err
	}
	switch wire := sh.Station(h.node).Wire().Config(); wire.FlowControl {
	case ethernet.GlobalPause:
		h.engine.SetLossless(pause.All)
	case ethernet.PriorityPause:
		h.engine.SetLossless(wire.Lossless)
	}
	h.port.Attach(h.engine, port.Station{MAC: mac(node)}).Plug(&h.wire, netip.Addr{}, nil)
	sh.r.n.head(h.head[:], node)
	return h, nil
}

func (h *rcHost) room(priorities uint8) { h.full &^= priorities }

func (h *rcHost) deadline() clock.Time {
	if h.due > h.now {
		return h.due
	}
	if h.full != 0 { // it waits for room
		return clock.Never
	}
	return h.now + 1
}

func (h *rcHost) take(now clock.Time, r ethernet.Ref) (turn bool) {
	b := h.Store.Head(r)
	ip := eth.IPv4(b[ipAt:bthAt])
	bth := ib.BTH(b[bthAt:])
	x := h.next()
	x.Data, x.Payload, x.Src, x.Dst = bth, nil, ip.Src(), h.addr
	x.SrcPort, x.TrafficClass, x.HopLimit = eth.UDP(b[udpAt:bthAt]).SrcPort(), ip.ToS(), ip.TTL()
	if n := h.Store.Len(r) - len(b) - ib.ICRCLen; n > 0 {
		x.Payload = payloadAt(binary.BigEndian.Uint16(b[idAt:]), n)
	}
	q := h.queuePair(now, bth, x)
	if q == nil { // it has ended
		h.in = h.in[:len(h.in)-1]
		h.Store.Drop(r)
		return true
	}
	bth.SetDestQP(ib.QPN(q.Number()))
	h.refs = append(h.refs, r)
	return true
}

// next returns one more packet of those that have arrived, in whose other fields is nothing: neither the port nor the engine, of which no
// wire has encapsulations, write there.
func (h *rcHost) next() *frame.In {
	n := len(h.in)
	if n < cap(h.in) {
		h.in = h.in[:n+1]
	} else {
		h.in = append(h.in, frame.In{})
	}
	return &h.in[n]
}

// queuePair returns the one that a packet is for, whose half of a flow counts it; nil: there is none.
func (h *rcHost) queuePair(now clock.Time, bth ib.BTH, in *frame.In) *transport.QP {
	if f := h.sender(bth.DestQP()); f != nil {
		if bth.Opcode() == ib.CNP {
			f.cnps++
		}
		if f.rc == nil {
			return nil
		}
		if h.last.sends == nil {
			h.noteSender(f)
		}
		return f.rc.qp
	}
	f := h.receiver(bth.DestQP())
	if f.rc == nil {
		return nil
	}
	if h.last.receives == nil {
		h.last.receives = f
		copy(h.last.request[:], bth)
		ib.BTH(h.last.request[:]).SetDestQP(ib.QPN(f.rc.qp.Number()))
	}
	if len(in.Payload) > 0 {
		if eth.Marked(in.TrafficClass) {
			f.marked++
		}
		h.payloadOf(now, f, bth.PSN(), len(in.Payload))
	}
	return f.rc.qp
}

// noteSender notes whose memory is asked for before the next window: that of a flow of which an answer comes, or which has sent.
func (h *rcHost) noteSender(f *sending) {
	h.last.sends = f
	ib.BTH(h.last.answer[:]).Encode(ib.RCAcknowledge, false, false, 0, pkey, ib.QPN(f.rc.qp.Number()), 0)
}

// payloadOf counts the bytes of a packet, and of those behind it that have arrived before it. The responder keeps those behind a gap.
func (h *rcHost) payloadOf(now clock.Time, f *receiving, psn ib.PSN, bytes int) {
	x := f.rc
	switch n := follow(x.expected, psn); {
	case n < x.expected:
	case n > x.expected:
		if x.ahead == nil {
			x.ahead = map[int64]int{}
		}
		x.ahead[n] = bytes
	default:
		x.expected++
		h.arrived(now, f, bytes)
		for len(x.ahead) > 0 {
			bytes, there := x.ahead[x.expected]
			if !there {
				break
			}
			delete(x.ahead, x.expected)
			x.expected++
			h.arrived(now, f, bytes)
		}
	}
}

// receive hands the engine what has arrived.
func (h *rcHost) receive(now clock.Time) {
	in := h.in
	for ; len(in) > batch; in = in[batch:] {
		h.port.Receive(now, &h.wire, in[:batch])
	}
	h.port.Receive(now, &h.wire, in)
	for _, r := range h.refs {
		h.Store.Drop(r)
	}
	h.in, h.refs = h.in[:0], h.refs[:0]
}

func (h *rcHost) turn(now clock.Time) {
	if len(h.in) > 0 {
		h.receive(now)
	}
	due := h.due <= now
	if due {
		h.port.Advance(now)
	}
	if h.engine.Undelivered() {
		h.settle(now)
	}
	if h.holds&^h.full != 0 {
		h.retry(now)
	}
	h.port.Scheduler.Pause(h.full)
	if due { // which is mostly since something may be sent: the port need not be asked whether that is so
		h.due = 0
	} else {
		h.due = h.port.Deadline()
	}
	for ; h.due == 0; h.due = h.port.Deadline() {
		k := h.port.Transmit(now, h.out[:])
		for i := range h.out[:k] {
			h.send(now, &h.out[i])
		}
		if h.engine.Undelivered() {
			h.settle(now)
		}
		if k == 0 {
			h.due = h.port.Deadline()
			return
		}
		h.port.Scheduler.Pause(h.full)
	}
}

// retry hands the station what it had no room for.
func (h *rcHost) retry(now clock.Time) {
	for set := h.holds &^ h.full; set != 0; set &= set - 1 {
		p := uint8(bits.TrailingZeros8(set))
		q := &h.held[p]
		n := 0
		for n < len(*q) && h.full>>p&1 == 0 {
			if h.SendAt(now, h.node, p, (*q)[n]) {
				n++
			} else {
				h.full |= 1 << p
			}
		}
		if *q = (*q)[:copy(*q, (*q)[n:])]; len(*q) == 0 {
			h.holds &^= 1 << p
		}
	}
}

// send makes a frame of a packet and hands it to the station, or keeps it until that has room.
func (h *rcHost) send(now clock.Time, o *frame.Out) {
	head := o.Head[frame.HeadRoom:o.HeadEnd]
	n := bthAt + len(head)
	r, b := h.Store.Reserve(n+int(o.Pad), len(o.Payload)+ib.ICRCLen)
	*(*[bthAt]byte)(b) = h.head
	copy(b[bthAt:], head)
	for i := n; i < len(b); i++ { // three at most
		b[i] = 0
	}
	ip := eth.IPv4(b[ipAt:bthAt])
	from, sends := o.Route.Path.(*sending)
	if sends {
		*(*eth.MAC)(b), *(*[4]byte)(ip[16:]) = from.mac, from.peer
	} else {
		x := o.Route.Path.(*receiving)
		*(*eth.MAC)(b), *(*[4]byte)(ip[16:]) = x.mac, x.peer
	}
	ip.SetToS(o.Route.TrafficClass)
	eth.UDP(b[udpAt:]).Encode(o.Route.SrcPort, roceDPort, 0)
	binary.BigEndian.PutUint16(b[udpAt+4:], uint16(len(b)-udpAt+len(o.Payload)+ib.ICRCLen))
	binary.BigEndian.PutUint16(b[idAt:], offset(o.Payload))
	if len(o.Payload) > 0 {
		h.sent(from, ib.BTH(head).PSN())
	}
	priority := o.Route.TrafficClass >> 5
	if h.full>>priority&1 != 0 || !h.SendAt(now, h.node, priority, r) {
		h.held[priority] = append(h.held[priority], r)
		h.holds |= 1 << priority
		h.full |= 1 << priority
	}
}

// sent counts a packet with a payload that is sent.
func (h *rcHost) sent(f *sending, psn ib.PSN) {
	f.packets++
	h.packets++
	if f.rc == nil { // it has just ended with an error
		return
	}
	if h.last.sends == nil {
		h.noteSender(f)
	}
	if n := follow(f.rc.most, psn); n < f.rc.most {
		f.again++
	} else {
		f.rc.most = n + 1
	}
}
