package device

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// rawEnd is a raw packet QP in RTS, with its memory.
type rawEnd struct {
	*pair
	b *buffer
}

func (p *program) rawEnd() *rawEnd {
	p.t.Helper()
	return p.rawEndOf(0)
}

// rawEndOf is rawEnd with this many places for sends, and for receives; 0: the usual ones.
func (p *program) rawEndOf(depth uint32) *rawEnd {
	p.t.Helper()
	r := command.CreateQP{Type: command.RawPacket, SendDepth: depth, RecvDepth: depth, SendSGE: 1, RecvSGE: 1}
	q := &rawEnd{pair: p.qp(r, p.cq(max(2*depth, 256))), b: p.buffer(1 << 16)}
	for _, s := range []command.QPState{command.Init, command.RTR, command.RTS} {
		p.check(p.c.ModifyQP(bg, command.ModifyQP{QP: q.q.Handle, Mask: command.MaskState, State: s}))
	}
	return q
}

// receive posts n receives of 8 KB.
func (q *rawEnd) receive(n int) {
	for i := range n {
		q.postRecv(uint64(i), q.b.sge(8192*i, 8192))
	}
}

// got returns the frame of the next completion of a receive.
func (q *rawEnd) got() []byte {
	q.p.t.Helper()
	e := q.cq.next()
	if e.Status != ring.Success || e.Op != ring.CQRecv {
		q.p.t.Fatalf("completion %v of %v", e.Status, e.Op)
	}
	return q.b.b[8192*e.ID:][:e.ByteLen]
}

// gets waits for a frame. Others that may come before it are those of the ends themselves, which look for each other and join
// groups.
func (q *rawEnd) gets(what string, f []byte) {
	q.p.t.Helper()
	for range 8 {
		got := q.got()
		if bytes.Equal(got, f) {
			return
		}
		if binary.BigEndian.Uint16(got[12:]) == 0x0800 && got[23] == 17 {
			q.p.t.Fatalf("%s: got another frame, of %d bytes", what, len(got))
		}
		q.receive(1)
	}
	q.p.t.Fatalf("%s: no frame", what)
}

// sends sends a frame.
func (q *rawEnd) sends(f []byte) {
	q.p.t.Helper()
	copy(q.b.b[1<<15:], f)
	q.postSend(99, ring.OpSend, q.b.sge(1<<15, len(f)))
	wantSuccess(q.p.t, q.cq.next(), 99, ring.CQSend)
}

func (q *rawEnd) flow(r command.CreateFlow) command.Handle {
	q.p.t.Helper()
	r.QP = q.q.Handle
	h, err := q.p.c.CreateFlow(bg, r)
	q.p.check(err)
	return h
}

var everyMAC = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

func toMAC(dst [6]byte, priority uint16) command.CreateFlow {
	return command.CreateFlow{Layers: command.FlowEthernet, Priority: priority, Value: command.FlowKey{Dst: dst},
		Mask: command.FlowKey{Dst: everyMAC}}
}

// udpFrame makes a frame of UDP over IPv4 of n bytes.
func udpFrame(dst, src [6]byte, port uint16, n int) []byte {
	b := make([]byte, n)
	fill(b, uint64(n))
	copy(b, dst[:])
	copy(b[6:], src[:])
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	copy(b[14:], []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
	binary.BigEndian.PutUint16(b[16:], uint16(n-14))
	binary.BigEndian.PutUint16(b[34:], 1234)
	binary.BigEndian.PutUint16(b[36:], port)
	return b
}

// TestRawPackets: a frame that a raw packet QP sends arrives in the receive of the QP with a flow that matches it, over the
// wire, from an adapter of the same port, and from the same adapter; RDMA goes on beside.
func TestRawPackets(t *testing.T) {
	one, two, third := threeEnds(t)
	mac := func(last byte) [6]byte { return [6]byte{2, 0, 0, 0, 9, last} }
	rx := one.rawEnd()
	rx.receive(4)
	rx.flow(toMAC(mac(1), 0))
	for i, from := range []*program{third, two, one} {
		tx := from.rawEnd()
		for _, n := range []int{60, 61, 200, 4200 + 14} {
			f := udpFrame(mac(1), mac(byte(3-i)), 5678, n)
			tx.sends(f)
			if got := rx.got(); !bytes.Equal(got, f) {
				t.Fatalf("from end %d, %d bytes: got %d other bytes", i, n, len(got))
			}
		}
		rx.receive(4)
	}
	exchange(t, connect(third.qp(command.CreateQP{}, third.cq(64)), one.qp(command.CreateQP{}, one.cq(64))), 5000)
	tx := third.rawEnd()
	tx.sends([]byte("\x02\x00\x00\x00\x09\x01\x02\x00\x00\x00\x09\x03\x88\xb5 short"))
	if got := rx.got(); len(got) != 60 || !bytes.Equal(got[15:21], []byte("short\x00")) {
		t.Errorf("a short frame arrives as %d bytes: %q", len(got), got)
	}
}

// TestRawPackets_OwnRule: a rule that names no MAC is for what arrives. What its own adapter, or another at its port, sends to
// somebody else leaves; what it sends to an adapter of the port arrives there.
func TestRawPackets_OwnRule(t *testing.T) {
	one, two, third := threeEnds(t)
	rx, tx, own := third.rawEnd(), two.rawEnd(), one.rawEnd()
	all := command.CreateFlow{Layers: command.FlowEthernet | command.FlowIPv4 | command.FlowUDP}
	for _, q := range []*rawEnd{rx, own} {
		q.receive(2)
		q.flow(all)
	}
	f := udpFrame([6]byte{2, 0, 0, 0, 9, 3}, [6]byte{2, 0, 0, 0, 9, 2}, 7, 100)
	for _, q := range []*rawEnd{tx, own} {
		q.sends(f)
		rx.gets("the other end of the wire", f)
		rx.receive(1)
	}
	inside := udpFrame([6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 2}, 7, 101)
	tx.sends(inside)
	own.gets("the adapter at the same port", inside)
}

// TestFlows: the rule with the smallest priority takes a frame, all QPs of that priority get it, defaults get what is left, and
// a sniffer everything, RoCE included.
func TestFlows(t *testing.T) {
	one, _, third := threeEnds(t)
	here, there, group := [6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 3}, [6]byte{1, 0, 0x5e, 1, 1, 1}
	tx := third.rawEnd()
	var q [5]*rawEnd
	for i := range q {
		q[i] = one.rawEnd()
		q[i].receive(4)
	}
	udp := toMAC(here, 3)
	udp.Layers |= command.FlowIPv4 | command.FlowUDP
	udp.Value.DstPort, udp.Mask.DstPort = 7, 0xffff
	q[0].flow(toMAC(here, 5))
	port := q[1].flow(udp)
	q[2].flow(udp)
	q[3].flow(command.CreateFlow{Type: command.FlowMulticastDefault})
	for _, c := range []struct {
		what string
		f    []byte
		to   []int
	}{
		{"the rule's port", udpFrame(here, there, 7, 100), []int{1, 2}},
		{"another port", udpFrame(here, there, 8, 101), []int{0}},
		{"a group", udpFrame(group, there, 7, 102), []int{3}},
	} {
		tx.sends(c.f)
		for _, i := range c.to {
			q[i].gets(c.what, c.f)
		}
	}
	one.check(one.c.Destroy(bg, command.KindFlow, port))
	q[4].flow(command.CreateFlow{Type: command.FlowSniffer})
	f := udpFrame(here, there, 7, 103)
	tx.sends(f)
	q[2].gets("the QP that is left", f)
	q[4].gets("the sniffer", f)
	for i := range q[:3] {
		var e [1]ring.CQE
		if q[i].cq.Poll(e[:]) != 0 {
			t.Errorf("QP %d got a frame that is not for it", i)
		}
	}
	exchange(t, connect(third.qp(command.CreateQP{}, third.cq(64)), one.qp(command.CreateQP{}, one.cq(64))), 100)
	for n := 0; binary.BigEndian.Uint16(q[4].got()[36:]) != 4791; n++ { // others are questions for neighbours
		if q[4].receive(1); n == 8 {
			t.Fatal("the sniffer saw no RoCE")
		}
	}
}

// TestRawPackets_Refused: what cannot be is refused and changes nothing, and a frame that is too long, or too short, ends its
// request with an error.
func TestRawPackets_Refused(t *testing.T) {
	one, _, third := threeEnds(t)
	q := one.rawEnd()
	good := toMAC([6]byte{2, 0, 0, 0, 9, 1}, 0)
	bad := func(change func(*command.CreateFlow)) command.CreateFlow {
		r := good
		r.QP = q.q.Handle
		change(&r)
		return r
	}
	rc := one.qp(command.CreateQP{}, one.cq(16))
	for _, c := range []struct {
		what string
		r    command.CreateFlow
		want command.Code
	}{
		{"type", bad(func(r *command.CreateFlow) { r.Type = 4 }), command.Invalid},
		{"no layers", bad(func(r *command.CreateFlow) { r.Layers = 0 }), command.Invalid},
		{"unknown layer", bad(func(r *command.CreateFlow) { r.Layers |= 0x80 }), command.Invalid},
		{"two IPs", bad(func(r *command.CreateFlow) { r.Layers |= command.FlowIPv4 | command.FlowIPv6 }), command.Invalid},
		{"TCP and UDP", bad(func(r *command.CreateFlow) { r.Layers |= command.FlowTCP | command.FlowUDP }), command.Invalid},
		{"port without layer", bad(func(r *command.CreateFlow) { r.Mask.DstPort = 1 }), command.Invalid},
		{"address without layer", bad(func(r *command.CreateFlow) { r.Mask.SrcAddr[15] = 1 }), command.Invalid},
		{"default with a rule", bad(func(r *command.CreateFlow) { r.Type = command.FlowAllDefault }), command.Invalid},
		{"QP of another kind", bad(func(r *command.CreateFlow) { r.QP = rc.q.Handle }), command.Invalid},
		{"no QP", bad(func(r *command.CreateFlow) { r.QP = 77 }), command.NotFound},
	} {
		_, err := one.c.CreateFlow(bg, c.r)
		if got := codeOf(err); err == nil || got != c.want {
			t.Errorf("%s: %v, want code %v", c.what, err, c.want)
		}
	}
	h := q.flow(good)
	if err := one.c.Destroy(bg, command.KindQP, q.q.Handle); codeOf(err) != command.Busy {
		t.Errorf("destroying a QP with a flow: %v, want Busy", err)
	}
	one.check(one.c.Destroy(bg, command.KindFlow, h))
	for n := range mostFlows + 1 {
		r := good
		r.QP = q.q.Handle
		if _, err := one.c.CreateFlow(bg, r); (err != nil) != (n == mostFlows) || err != nil && codeOf(err) != command.Exhausted {
			t.Fatalf("flow %d: %v", n, err)
		}
	}
	for _, n := range []int{13, 4200 + 19} {
		tx := third.rawEnd()
		tx.postSend(1, ring.OpSend, tx.b.sge(0, n))
		if e := tx.cq.next(); e.Status != ring.LocalLength {
			t.Errorf("a frame of %d bytes: %v, want a length error", n, e.Status)
		}
	}
}

// TestRawPackets_Receives: frames without a receive are lost and counted, and one that does not fit ends its receive only.
func TestRawPackets_Receives(t *testing.T) {
	one, _, third := threeEnds(t)
	here, there := [6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 3}
	q, tx := one.rawEnd(), third.rawEnd()
	q.flow(toMAC(here, 0))
	for range 100 { // a flood of frames that nobody takes
		tx.sends(udpFrame(here, there, 7, 60))
	}
	await.Eventually(t, "frames are counted as lost", func() bool {
		one.c.Poll(1)
		return one.host.Counters()[one.adapter].Transport.RawDiscarded == 100
	})
	q.postRecv(1, q.b.sge(0, 99))
	q.postRecv(2, q.b.sge(8192*2, 100))
	f := udpFrame(here, there, 7, 100)
	tx.sends(f)
	if e := q.cq.next(); e.ID != 1 || e.Status != ring.LocalLength {
		t.Errorf("a frame of 100 bytes into 99: %v", e.Status)
	}
	tx.sends(f)
	if got := q.got(); !bytes.Equal(got, f) {
		t.Errorf("the frame behind it: %d bytes", len(got))
	}
}

// TestRawPackets_OtherWires: sockets carry no Ethernet frames, so that there are no raw packet QPs; programs that may not have
// any are refused; and disabling the adapter takes QPs and flows away.
func TestRawPackets_OtherWires(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	p := newProgram(t, h, h.add(t, AdapterConfig{Addr: loopback.Addr()}))
	cq := p.cq(16)
	r := command.CreateQP{Type: command.RawPacket, PD: p.pd, SendCQ: cq.q.Handle, RecvCQ: cq.q.Handle}
	if _, err := p.c.CreateQP(bg, r); codeOf(err) != command.Unsupported {
		t.Errorf("over sockets: %v, want Unsupported", err)
	}
	one, _, third := threeEnds(t)
	x := newProgramWith(t, one.host, one.adapter, ClientConfig{NoRawPackets: true})
	cq = x.cq(16)
	r.PD, r.SendCQ, r.RecvCQ = x.pd, cq.q.Handle, cq.q.Handle
	if _, err := x.c.CreateQP(bg, r); codeOf(err) != command.Access {
		t.Errorf("a program that may not: %v, want Access", err)
	}
	q := third.rawEnd()
	f := q.flow(toMAC([6]byte{2, 0, 0, 0, 9, 3}, 0))
	third.check(third.host.SetAdapterState(third.adapter, false))
	third.check(third.c.Destroy(bg, command.KindFlow, f))
	third.check(third.c.Destroy(bg, command.KindQP, q.q.Handle))
	third.check(third.host.SetAdapterState(third.adapter, true))
}
