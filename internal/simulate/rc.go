package simulate

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/ring"
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

// rc is the state of a flow between RC queue pairs.
type rc struct {
	qp, peer   *transport.QP
	work       *ring.Send
	posted     int64         // bytes
	unfinished int           // writes
	most       int64         // the first packet that has not been sent
	expected   int64         // the next that arrives in order
	ahead      map[int64]int // bytes of packets that have arrived behind a gap; nil: there was none
}

// rcHost is a host whose flows are writes of RC queue pairs, behind a port. What the port hands out becomes frames without the bytes
// of the payload, which stay where the sender has them until they have arrived.
type rcHost struct {
	r    *Run
	node int
	nic  *scenario.NIC

	engine   *transport.Engine
	port     port.Port
	wire     port.Wire
	key      uint32     // of its memory
	nothing  *ring.Send // of queue pairs that send nothing
	receives *ring.Recv // of all queue pairs, which receive no messages
	flows    []*flow
	first    uint32 // queue pair number of flows[0]

	in   []frame.In
	refs []ethernet.Ref // of in
	held [frame.Priorities][]ethernet.Ref
	full uint8
	buf  [256]byte
}

// shared is what all hosts of a run write from and to.
var shared = make([]byte, message)

func newRCHost(r *Run, node int) (*rcHost, error) {
	h := &rcHost{r: r, node: node, nic: r.s.NICs[node]}
	mem := memory.NewTable(4, nil)
	region, err := mem.Register(memory.Region{PD: pd, Base: memoryAt, Length: message, Bytes: shared,
		Access: memory.LocalWrite | memory.RemoteWrite})
	if err != nil {
		return nil, err
	}
	h.key = region.Key
	send, recv := ring.SendGeometry(1, 1, 0), ring.RecvGeometry(1, 1)
	if h.nothing, err = ring.OpenSend(make([]byte, send.Size()), send); err != nil {
		return nil, err
	}
	if h.receives, err = ring.OpenRecv(make([]byte, recv.Size()), recv); err != nil {
		return nil, err
	}
	if h.engine, err = transport.New(transport.Config{Memory: mem, MaxQPs: workload.Most}); err != nil {
		return nil, err
	}
	if err = h.engine.SetCongestion(h.nic.Congestion); err != nil {
		return nil, err
	}
	h.port.Attach(h.engine, port.Station{MAC: mac(node)}).Plug(&h.wire, netip.Addr{}, nil)
	(&eth.Ethernet{Src: mac(node), Type: eth.TypeIPv4}).Put(h.buf[:])
	eth.IPv4(h.buf[ipAt:]).Encode(0, 0, 0, 64, eth.ProtocolUDP, r.n.addrs[node].As4(), [4]byte{})
	return h, nil
}

// begin connects a queue pair of the host with one of the other, and posts the first writes.
func (h *rcHost) begin(now clock.Time, f *flow) {
	to := h.r.hosts[f.To].(*rcHost)
	f.rc = &rc{}
	if err := h.connect(now, f, to); err != nil {
		h.r.refused(err)
		return
	}
	for range deep {
		h.post(f)
	}
}

func (h *rcHost) connect(now clock.Time, f *flow, to *rcHost) (err error) {
	x := f.rc
	if x.qp, x.work, err = h.create(now, f, deep); err != nil {
		return err
	}
	if x.peer, _, err = to.create(now, f, 0); err != nil {
		return err
	}
	class := f.Priority << 5
	there := frame.Route{Src: h.r.n.addrs[h.node], Dst: h.r.n.addrs[to.node], SrcPort: sourcePort(f), TrafficClass: class,
		Priority: f.Priority}
	back := frame.Route{Src: there.Dst, Dst: there.Src, SrcPort: there.SrcPort, TrafficClass: class, Priority: f.Priority}
	mtu := h.r.s.MTU(f.Flow)
	if err = h.ready(now, x.qp, x.peer.Number(), mtu, there); err != nil {
		return err
	}
	return to.ready(now, x.peer, x.qp.Number(), mtu, back)
}

// create creates a queue pair for a flow.
func (h *rcHost) create(now clock.Time, f *flow, sends int) (q *transport.QP, s *ring.Send, err error) {
	s = h.nothing
	if sends > 0 {
		g := ring.SendGeometry(sends, 1, 0)
		if s, err = ring.OpenSend(make([]byte, g.Size()), g); err != nil {
			return nil, nil, err
		}
	}
	q, err = h.engine.CreateQP(now, transport.QPConfig{Type: command.RC, PD: pd, Send: &transport.SendRing{Send: s}, Recv: h.receives,
		Context: uint64(f.number)})
	if err != nil {
		return nil, nil, err
	}
	if len(h.flows) == 0 {
		h.first = q.Number()
	}
	for int(q.Number()-h.first) >= len(h.flows) {
		h.flows = append(h.flows, nil)
	}
	h.flows[q.Number()-h.first] = f
	return q, s, nil
}

// ready brings a queue pair to where it sends.
func (h *rcHost) ready(now clock.Time, q *transport.QP, dest uint32, mtu int, route frame.Route) error {
	const (
		toInit = command.MaskState | command.MaskPKey | command.MaskAccess
		toRTR  = command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN |
			command.MaskResponderResources | command.MaskMinRNRTimer
		toRTS = command.MaskState | command.MaskSQPSN | command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry |
			command.MaskInitiatorDepth
	)
	for _, m := range []command.ModifyQP{
		{Mask: toInit, State: command.Init, Access: uint32(memory.RemoteWrite)},
		{Mask: toRTR, State: command.RTR, MTU: uint32(mtu), DestQPN: dest, ResponderResources: 1, MinRNRTimer: 1},
		{Mask: toRTS, State: command.RTS, Timeout: h.nic.Timeout, Retry: 7, RNRRetry: 7, InitiatorDepth: 1},
	} {
		var r *frame.Route
		if m.State == command.RTR {
			r = &route
		}
		if err := h.engine.Modify(now, q, m, r); err != nil {
			return err
		}
	}
	return nil
}

// post posts the next write of a flow, if there is one.
func (h *rcHost) post(f *flow) {
	x := f.rc
	n := int64(message)
	if f.Bytes > 0 {
		n = min(n, f.Bytes-x.posted)
	}
	if n == 0 {
		return
	}
	to := h.r.hosts[f.To].(*rcHost)
	wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: memoryAt, RKey: to.key}
	wr.SGE[0] = ring.SGE{Addr: memoryAt, Length: uint32(n), LKey: h.key}
	if err := x.work.Post(&wr); err != nil {
		h.r.refused(err)
		return
	}
	x.posted += n
	x.unfinished++
	h.engine.Doorbell(x.qp)
}

// settle takes completions.
func (h *rcHost) settle(now clock.Time) {
	completed := h.r.completed[:]
	for n := h.engine.Completions(completed); n > 0; n = h.engine.Completions(completed) {
		for i := range completed[:n] {
			c := &completed[i]
			f := &h.r.flows[c.Context]
			x := f.rc
			x.unfinished--
			if c.Status != ring.Success {
				f.failed = true
			} else {
				h.post(f)
			}
			if x.unfinished == 0 {
				h.end(now, f)
			}
		}
	}
}

// end destroys the queue pairs of a flow.
func (h *rcHost) end(now clock.Time, f *flow) {
	to := h.r.hosts[f.To].(*rcHost)
	h.flows[f.rc.qp.Number()-h.first] = nil
	to.flows[f.rc.peer.Number()-to.first] = nil
	h.engine.Destroy(now, f.rc.qp)
	to.engine.Destroy(now, f.rc.peer)
	f.rc = nil
	h.r.touch(f.To)
}

func (h *rcHost) room(priorities uint8) { h.full &^= priorities }

func (h *rcHost) deadline() clock.Time {
	at := h.port.Deadline()
	if at > h.r.now {
		return at
	}
	if h.full != 0 { // it waits for room
		return clock.Never
	}
	return h.r.now + 1
}

func (h *rcHost) take(now clock.Time, r ethernet.Ref) {
	b := h.r.n.Store.Head(r)
	ip := eth.IPv4(b[ipAt:])
	bth := ib.BTH(b[bthAt:])
	x := frame.In{Data: b[bthAt:], Src: ip.Src(), Dst: ip.Dst(), SrcPort: eth.UDP(b[udpAt:]).SrcPort(), TrafficClass: ip.ToS(),
		HopLimit: ip.TTL()}
	if n := h.r.n.Store.Len(r) - len(b) - ib.ICRCLen; n > 0 {
		x.Payload = h.r.lent[r]
	}
	if f := h.flow(bth.DestQP()); f != nil {
		h.count(now, f, bth, &x)
	}
	h.in, h.refs = append(h.in, x), append(h.refs, r)
}

// flow returns that of a queue pair; nil: it has ended.
func (h *rcHost) flow(qp ib.QPN) *flow {
	if i := uint32(qp) - h.first; int(i) < len(h.flows) {
		return h.flows[i]
	}
	return nil
}

// count counts a packet of a flow that has arrived.
func (h *rcHost) count(now clock.Time, f *flow, bth ib.BTH, in *frame.In) {
	if bth.Opcode() == ib.CNP {
		f.cnps++
	}
	if len(in.Payload) == 0 || f.rc == nil {
		return
	}
	if eth.Marked(in.TrafficClass) {
		f.marked++
	}
	f.rc.arrived(follow(f.rc.expected, bth.PSN()), len(in.Payload), func(bytes int) { h.r.arrived(now, f, bytes) })
}

// arrived hands on the bytes of packets that have arrived in order, when one has. The responder keeps those behind a gap.
func (x *rc) arrived(psn int64, bytes int, take func(int)) {
	switch {
	case psn < x.expected:
	case psn > x.expected:
		if x.ahead == nil {
			x.ahead = map[int64]int{}
		}
		x.ahead[psn] = bytes
	default:
		for there := true; there; bytes, there = x.ahead[x.expected] {
			delete(x.ahead, x.expected)
			x.expected++
			take(bytes)
		}
	}
}

func (h *rcHost) turn(now clock.Time) {
	for len(h.in) > 0 {
		n := min(len(h.in), batch)
		h.port.Receive(now, &h.wire, h.in[:n])
		for i := range h.refs[:n] {
			h.r.n.Store.Drop(h.refs[i])
		}
		h.in = h.in[:copy(h.in, h.in[n:])]
		h.refs = h.refs[:copy(h.refs, h.refs[n:])]
	}
	if h.port.Deadline() <= now {
		h.port.Advance(now)
	}
	h.settle(now)
	h.retry(now)
	for {
		h.port.Scheduler.Pause(h.full)
		k := h.port.Transmit(now, h.r.out[:])
		for i := range h.r.out[:k] {
			h.send(now, &h.r.out[i])
		}
		h.settle(now)
		if k == 0 {
			break
		}
	}
}

// retry hands the station what it had no room for.
func (h *rcHost) retry(now clock.Time) {
	for p := range h.held {
		q := &h.held[p]
		n := 0
		for n < len(*q) && h.full>>p&1 == 0 {
			if h.r.n.Send(now, h.node, (*q)[n]) {
				n++
			} else {
				h.full |= 1 << p
			}
		}
		*q = (*q)[:copy(*q, (*q)[n:])]
	}
}

// send makes a frame of a packet and hands it to the station, or keeps it until that has room.
func (h *rcHost) send(now clock.Time, o *frame.Out) {
	head := o.Head[frame.HeadRoom:o.HeadEnd]
	n := bthAt + copy(h.buf[bthAt:], head)
	for range o.Pad {
		h.buf[n] = 0
		n++
	}
	b := h.buf[:n]
	dst := o.Route.Dst.As4()
	leaf := mac(h.r.n.leaf[h.node])
	copy(b, leaf[:])
	ip := eth.IPv4(b[ipAt:])
	ip.SetToS(o.Route.TrafficClass)
	copy(ip[16:], dst[:])
	eth.UDP(b[udpAt:]).Encode(o.Route.SrcPort, roceDPort, 0)
	binary.BigEndian.PutUint16(b[udpAt+4:], uint16(n-udpAt+len(o.Payload)+ib.ICRCLen))
	r := h.r.n.Store.Put(b, len(o.Payload)+ib.ICRCLen)
	if len(o.Payload) > 0 {
		h.sent(dst, ib.BTH(head))
		h.r.lend(r, o.Payload)
	}
	priority := o.Route.TrafficClass >> 5
	if h.full>>priority&1 != 0 || !h.r.n.Send(now, h.node, r) {
		h.held[priority] = append(h.held[priority], r)
		h.full |= 1 << priority
	}
}

// sent counts a packet with a payload that is sent.
func (h *rcHost) sent(dst [4]byte, bth ib.BTH) {
	to := h.r.hosts[h.r.n.host(dst)].(*rcHost)
	f := to.flow(bth.DestQP())
	if f == nil || f.rc == nil {
		return
	}
	f.packets++
	if psn := follow(f.rc.most, bth.PSN()); psn < f.rc.most {
		f.again++
	} else {
		f.rc.most = psn + 1
	}
}

// lend keeps the payload of a frame until it has arrived.
func (r *Run) lend(f ethernet.Ref, payload []byte) {
	for int(f) >= len(r.lent) {
		r.lent = append(r.lent, nil)
	}
	r.lent[f] = payload
}
