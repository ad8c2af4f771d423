package transport

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// datagramEnd returns a UD QP in RTS with Q_Key 0x11111111 on a host of its own, and its memory at 0x1000.
func datagramEnd(t *testing.T, n *sim.Network, addr string, routes *[]*frame.Route) (*end, []byte) {
	h := newHost(t, n, addr, Config{})
	return datagramQP(t, h, routes)
}

// datagramQP does what datagramEnd does, on the given host.
func datagramQP(t *testing.T, h *host, routes *[]*frame.Route) (*end, []byte) {
	g := ring.SendGeometry(16, 4, 64)
	s, err := ring.OpenSend(make([]byte, g.Size()), g)
	if err != nil {
		t.Fatal(err)
	}
	x := h.qp(command.UD, QPConfig{Send: &SendRing{Send: s, Resolve: func(ah uint32) *frame.Route {
		if int(ah) < len(*routes) {
			return (*routes)[ah]
		}
		return nil
	}}})
	x.send = s
	x.modify(command.ModifyQP{Mask: command.MaskState | command.MaskPKey | command.MaskQKey, State: command.Init, QKey: 0x11111111}, nil)
	x.modify(command.ModifyQP{Mask: command.MaskState, State: command.RTR}, nil)
	x.modify(command.ModifyQP{Mask: command.MaskState | command.MaskSQPSN, State: command.RTS, SQPSN: 7}, nil)
	mem := pattern(16384, 1)
	h.region(0x1000, mem, allowAll)
	return x, mem
}

func (x *end) key() uint32 { return 0x101 } // the first region of a table

func (x *end) sgeAt(addr uint64, n int) [ring.MaxSGE]ring.SGE {
	return [ring.MaxSGE]ring.SGE{{Addr: addr, Length: uint32(n), LKey: x.key()}}
}

// TestDatagrams: a received datagram lies behind 40 bytes, the last 20 of which are its IPv4 header, and its
// completion has the sender's QP number, the immediate data and the solicited event.
func TestDatagrams(t *testing.T) {
	n := sim.New(1)
	var routes []*frame.Route
	a, amem := datagramEnd(t, n, "10.0.0.1", &routes)
	b, bmem := datagramEnd(t, n, "10.0.0.2", &routes)
	routes = []*frame.Route{{Src: a.addr, Dst: b.addr, SrcPort: 0xc000, TrafficClass: 0x68}}
	b.postRecv(ring.RecvWR{ID: 1, NumSGE: 1, SGE: b.sgeAt(0x2000, 200)})
	a.post(ring.SendWR{ID: 2, Op: ring.OpSendImm, Flags: ring.Signaled | ring.Solicited, NumSGE: 1, SGE: a.sgeAt(0x1000, 101), Imm: 9,
		RemoteQPN: b.q.num, QKey: 0x11111111})
	n.Run(second, nil)
	if len(a.comps) != 1 || a.comps[0].Status != ring.Success {
		t.Fatalf("sender: completions %+v, want one success", a.comps)
	}
	want := ring.CQE{ID: 1, QPN: b.q.num, ByteLen: 141, Imm: 9, SrcQP: a.q.num, Op: ring.CQRecv,
		Flags: ring.ReceiveSide | ring.HasGRH | ring.HasImm | ring.IsSolicited, SL: 8 | 2}
	if len(b.comps) != 1 || b.comps[0].CQE != want {
		t.Fatalf("receiver: completions %+v, want %+v", b.comps, want)
	}
	got := bmem[0x1000:]
	if !bytes.Equal(got[40:141], amem[:101]) {
		t.Error("payload differs")
	}
	// IPv4 header: total length 20+8+12+8+4+101+3+4, DF, TTL 16, UDP, checksum.
	if h := hex.EncodeToString(got[20:40]); h != "456800a0000040001011"+h[20:24]+"0a0000010a000002" {
		t.Errorf("the IPv4 header is %s", h)
	}
	if sum := checksum(got[20:40]); sum != 0xffff {
		t.Errorf("the sum over the IPv4 header is %#x, want 0xffff", sum)
	}
}

func checksum(b []byte) (sum uint32) {
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	return sum&0xffff + sum>>16
}

// TestDatagramKeys: datagrams with a wrong Q_Key or P_Key are counted and dropped. A Q_Key with its top bit set
// stands for the sender's own (IBA 10.2.5).
func TestDatagramKeys(t *testing.T) {
	n := sim.New(1)
	var routes []*frame.Route
	a, _ := datagramEnd(t, n, "10.0.0.1", &routes)
	b, _ := datagramEnd(t, n, "10.0.0.2", &routes)
	routes = []*frame.Route{{Src: a.addr, Dst: b.addr}}
	for range 3 {
		b.postRecv(ring.RecvWR{NumSGE: 1, SGE: b.sgeAt(0x2000, 200)})
	}
	send := func(qkey uint32) {
		a.post(ring.SendWR{Op: ring.OpSend, NumSGE: 1, SGE: a.sgeAt(0x1000, 8), RemoteQPN: b.q.num, QKey: qkey})
		n.Run(n.Now()+second, nil)
	}
	send(0x222)
	if b.e.counters.QKeyViolations != 1 || len(b.comps) != 0 {
		t.Errorf("wrong Q_Key: %d violations, %d completions; want 1 and 0", b.e.counters.QKeyViolations, len(b.comps))
	}
	send(0x80000000)
	if len(b.comps) != 1 {
		t.Errorf("own Q_Key: %d completions, want 1", len(b.comps))
	}
	a.e.SetPKeys([]ib.PKey{0x8001})
	send(0x11111111)
	if b.e.counters.PKeyViolations != 1 || len(b.comps) != 1 {
		t.Errorf("wrong P_Key: %d violations, %d completions; want 1 and 1", b.e.counters.PKeyViolations, len(b.comps))
	}
}

// TestDatagramErrors: no receive is posted, the receive is too short, the datagram is too long, the address handle
// does not exist.
func TestDatagramErrors(t *testing.T) {
	n := sim.New(1)
	var routes []*frame.Route
	a, _ := datagramEnd(t, n, "10.0.0.1", &routes)
	b, _ := datagramEnd(t, n, "10.0.0.2", &routes)
	routes = []*frame.Route{{Src: a.addr, Dst: b.addr}}
	wr := ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1, SGE: a.sgeAt(0x1000, 100), RemoteQPN: b.q.num, QKey: 0x11111111}
	a.post(wr)
	n.Run(second, nil)
	if b.e.counters.DiscardedUD != 1 {
		t.Errorf("without a receive: %d datagrams discarded, want 1", b.e.counters.DiscardedUD)
	}
	b.postRecv(ring.RecvWR{ID: 5, NumSGE: 1, SGE: b.sgeAt(0x2000, 139)})
	a.post(wr)
	n.Run(n.Now()+second, nil)
	if len(b.comps) != 1 || b.comps[0].Status != ring.LocalLength || b.q.state != command.RTS {
		t.Errorf("receive too short: completions %+v, want one with a local length error", b.comps)
	}
	long := wr
	long.SGE = a.sgeAt(0x1000, 4097)
	a.comps = nil
	a.post(long)
	a.post(wr)
	n.Run(n.Now()+second, nil)
	if len(a.comps) != 2 || a.comps[0].Status != ring.LocalLength || a.comps[1].Status != ring.WRFlush || a.q.state != command.SQE {
		t.Errorf("datagram too long: completions %+v, state %s", a.comps, stateName(a.q.state))
	}
	a.modify(command.ModifyQP{Mask: command.MaskState, State: command.RTS}, nil)
	a.comps = nil
	bad := wr
	bad.AH = 3
	a.post(bad)
	n.Run(n.Now()+second, nil)
	if len(a.comps) != 1 || a.comps[0].Status != ring.LocalQPOperation {
		t.Errorf("no address handle: completions %+v", a.comps)
	}
}

// TestMulticast: a datagram to a group reaches every QP of a port that is attached to it, until the QP is detached.
func TestMulticast(t *testing.T) {
	n := sim.New(1)
	group := netip.MustParseAddr("239.1.2.3")
	var routes []*frame.Route
	a, _ := datagramEnd(t, n, "10.0.0.1", &routes)
	b, _ := datagramEnd(t, n, "10.0.0.2", &routes)
	c, _ := datagramQP(t, b.host, &routes)
	routes = []*frame.Route{{Src: a.addr, Dst: group}}
	for _, x := range []*end{b, c} {
		if err := x.e.AttachMulticast(x.q, group); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			x.postRecv(ring.RecvWR{NumSGE: 1, SGE: x.sgeAt(0x2000, 200)})
		}
	}
	send := func(want int) {
		t.Helper()
		a.post(ring.SendWR{Op: ring.OpSend, NumSGE: 1, SGE: a.sgeAt(0x1000, 8), RemoteQPN: 0xffffff, QKey: 0x11111111})
		n.Run(n.Now()+second, nil)
		if len(b.comps) != want {
			t.Errorf("%d completions, want %d", len(b.comps), want)
		}
	}
	send(2)
	if err := b.e.DetachMulticast(c.q, group); err != nil {
		t.Fatal(err)
	}
	send(3)
	b.e.Destroy(n.Now(), b.q)
	send(3)
	if b.e.counters.BadMulticast != 1 || b.e.attached != 0 {
		t.Errorf("%d bad multicasts, %d attachments", b.e.counters.BadMulticast, b.e.attached)
	}
}

// TestMADs: QP1 sends and receives MADs of 256 bytes. A receiver keeps a bounded number of them and counts those it
// drops; a longer one is refused.
func TestMADs(t *testing.T) {
	n := sim.New(1)
	a, b := newHost(t, n, "10.0.0.1", Config{}), newHost(t, n, "10.0.0.2", Config{MaxDatagrams: 20})
	route := &frame.Route{Src: a.addr, Dst: b.addr, SrcPort: 55410}
	for i := range 40 {
		if err := a.e.SendDatagram(route, 1, 0, []byte{1, 2, 3, byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	settle := b.port.Settle
	b.port.Settle = nil
	a.port.Wake()
	n.Run(second, nil)
	settle(clock.Time(0))
	if len(b.mads) != 20 || b.e.counters.DatagramDrops != 20 {
		t.Fatalf("%d MADs, %d dropped", len(b.mads), b.e.counters.DatagramDrops)
	}
	for i, m := range b.mads {
		if m.MAD[3] != byte(i) || m.Src != a.addr || m.SrcQP != 1 || m.SrcPort != 55410 {
			t.Errorf("MAD %d: %+v", i, m)
		}
	}
	if err := a.e.SendDatagram(route, 1, 0, make([]byte, 257)); err == nil {
		t.Error("a MAD of 257 bytes was taken")
	}
}
