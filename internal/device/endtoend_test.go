package device

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestEveryOperation: two programs connect through the CM and every operation moves its bytes, over every network, on
// the wire and, where both are on one host, on the local path.
func TestEveryOperation(t *testing.T) {
	for _, n := range networks {
		for _, path := range []PathPolicy{PathAuto, PathWire} {
			t.Run(n.name+" "+path.String(), func(t *testing.T) {
				c := pairs(t, n, AdapterConfig{Path: path})
				t.Logf("path %d", c.a.info().Path)
				operations(t, c)
			})
		}
	}
}

func operations(t *testing.T, c *connected) {
	const size = 100_000
	a, b := c.a, c.b
	src, dst := a.p.buffer(size), b.p.buffer(size)
	fill(src.b, 1)

	b.postRecv(1, dst.sge(0, size))
	a.postSend(2, ring.OpSend, src.sge(0, size))
	wantSuccess(t, a.cq.next(), 2, ring.CQSend)
	e := b.cq.next()
	wantSuccess(t, e, 1, ring.CQRecv)
	if e.ByteLen != size || !bytes.Equal(src.b, dst.b) {
		t.Fatalf("%d bytes received, want the %d that were sent", e.ByteLen, size)
	}

	fill(src.b, 2)
	a.post(ring.SendWR{ID: 3, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey,
		SGE: [ring.MaxSGE]ring.SGE{src.sge(0, size)}})
	wantSuccess(t, a.cq.next(), 3, ring.CQWrite)
	if !bytes.Equal(src.b, dst.b) {
		t.Fatal("write: bytes differ")
	}

	clear(src.b)
	a.post(ring.SendWR{ID: 4, Op: ring.OpRead, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey,
		SGE: [ring.MaxSGE]ring.SGE{src.sge(0, size)}})
	wantSuccess(t, a.cq.next(), 4, ring.CQRead)
	if !bytes.Equal(src.b, dst.b) {
		t.Fatal("read: bytes differ")
	}

	b.postRecv(5)
	a.post(ring.SendWR{ID: 6, Op: ring.OpWriteImm, Flags: ring.Signaled, Imm: 0xabcd, NumSGE: 1, RemoteAddr: dst.addr(8),
		RKey: dst.mem.RKey,
		SGE:  [ring.MaxSGE]ring.SGE{src.sge(0, 8)}})
	wantSuccess(t, a.cq.next(), 6, ring.CQWrite)
	e = b.cq.next()
	wantSuccess(t, e, 5, ring.CQRecvWrite)
	if e.Imm != 0xabcd || e.Flags&ring.HasImm == 0 {
		t.Fatalf("immediate %#x, flags %#x", e.Imm, e.Flags)
	}

	before := dst.b[0]
	a.post(ring.SendWR{ID: 7, Op: ring.OpFetchAdd, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey,
		CompareAdd: 1,
		SGE:        [ring.MaxSGE]ring.SGE{src.sge(0, 8)}})
	wantSuccess(t, a.cq.next(), 7, ring.CQFetchAdd)
	if dst.b[0] != before+1 || src.b[0] != before {
		t.Fatalf("fetch and add: %d became %d, %d returned", before, dst.b[0], src.b[0])
	}

	b.postRecv(8, dst.sge(0, 64))
	a.post(ring.SendWR{ID: 10, Op: ring.OpSend, Flags: ring.Signaled | ring.Inline | ring.Solicited, Inline: []byte("inline data")})
	wantSuccess(t, a.cq.next(), 10, ring.CQSend)
	e = b.cq.next()
	wantSuccess(t, e, 8, ring.CQRecv)
	if string(dst.b[:e.ByteLen]) != "inline data" || e.Flags&ring.IsSolicited == 0 {
		t.Fatalf("received %q, flags %#x", dst.b[:e.ByteLen], e.Flags)
	}
}

// TestPingPongByEvents: two programs that sleep until their completion arrives, instead of polling, exchange messages
// without a lost wake-up.
func TestPingPongByEvents(t *testing.T) {
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			c := pairs(t, n, AdapterConfig{})
			const rounds = 200
			bufA, bufB := c.a.p.buffer(64), c.b.p.buffer(64)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := range uint64(rounds) {
					c.b.postRecv(i, bufB.sge(0, 32))
					waitFor(c.b.cq, ring.CQRecv)
					c.b.postSend(i, ring.OpSend, bufB.sge(0, 32))
				}
			}()
			for i := range uint64(rounds) {
				c.a.postRecv(i, bufA.sge(0, 32))
				c.a.postSend(i, ring.OpSend, bufA.sge(32, 32))
				waitFor(c.a.cq, ring.CQRecv)
			}
			<-done
		})
	}
}

// waitFor blocks until a completion of op arrives and drops those of other operations. A failed one is an error.
func waitFor(q *queue, op ring.CQOp) ring.CQE {
	for {
		e := q.wait()
		if e.Status != ring.Success {
			q.p.t.Errorf("%v: %v", e.Op, e.Status)
			return e
		}
		if e.Op == op {
			return e
		}
	}
}

// TestConnectionParameters: the CM carries private data, addresses and limits to the other end, and the connection's
// MTU is the smaller of the two.
func TestConnectionParameters(t *testing.T) {
	c := pairs(t, networks[0], AdapterConfig{})
	if got := string(c.fromA.Param.Private[:5]); got != "knock" {
		t.Errorf("request's private data %q, want \"knock\"", got)
	}
	if got := string(c.answered.Param.Private[:7]); got != "come in" {
		t.Errorf("answer's private data %q, want \"come in\"", got)
	}
	if c.fromA.Remote.Addr.IP() != c.a.p.addr {
		t.Errorf("request from %v, want %v", c.fromA.Remote.Addr.IP(), c.a.p.addr)
	}
	a, b := c.a.info(), c.b.info()
	if a.Attr.State != command.RTS || b.Attr.State != command.RTS {
		t.Errorf("states %d and %d, want RTS", a.Attr.State, b.Attr.State)
	}
	if a.Attr.DestQPN != c.b.q.Number || b.Attr.DestQPN != c.a.q.Number {
		t.Errorf("QPs %#x and %#x are not connected to each other", a.Attr.DestQPN, b.Attr.DestQPN)
	}
	i, err := c.a.p.c.CMQuery(bg, c.idA)
	c.a.p.check(err)
	if want := uint32(i.Local.Port ^ c.serverPort | 0xc000); i.SrcPort != want {
		t.Errorf("UDP source port %#x, want (source XOR destination) OR 0xc000 = %#x", i.SrcPort, want)
	}
}

// TestFlowControlSetting: end-to-end credits are used where both ends ask for them, unless the adapter's setting
// RoceRcE2EFlowControlEnable forbids them; a QP with an SRQ has none.
func TestFlowControlSetting(t *testing.T) {
	want := usualParam
	want.FlowControl = 1
	for _, forbidden := range []bool{false, true} {
		x, y := overMemory(false)(t, AdapterConfig{Path: PathWire, NoFlowControl: forbidden})
		on := uint8(1)
		if forbidden {
			on = 0
		}
		c := connectWith(x.idleQP(), y.idleQP(), want)
		if a, b := c.a.info().Attr.FlowControl, c.b.info().Attr.FlowControl; a != on || b != on {
			t.Errorf("forbidden %v: credits are %d and %d, want %d", forbidden, a, b, on)
		}
		unwanted := usualParam
		unwanted.FlowControl = 0
		c = connectWith(x.idleQP(), y.idleQP(), unwanted)
		if a, b := c.a.info().Attr.FlowControl, c.b.info().Attr.FlowControl; a != 0 || b != 0 {
			t.Errorf("forbidden %v: credits that neither end asked for are %d and %d, want 0", forbidden, a, b)
		}
	}
}

// TestAnotherUDPPort: adapters may use another UDP port than the usual one, such as 1021 of old fabrics
// (roce_udp_dport). They reach each other, and not adapters on the usual port.
func TestAnotherUDPPort(t *testing.T) {
	const port = 21021 // stands for 1021, which takes privileges
	c := pairs(t, networks[0], AdapterConfig{UDPPort: port})
	x, y := c.a.p, c.b.p
	src, dst := x.buffer(64), y.buffer(64)
	c.a.lone(ring.OpWrite, ring.Success, func(wr *ring.SendWR) { wr.RemoteAddr, wr.RKey = dst.addr(0), dst.mem.RKey }, src.sge(0, 64))
	if p := x.c.qps.Get(c.a.q.Handle).tq.Route().DstPort; p != port {
		t.Errorf("packets go to port %d, want %d", p, port)
	}
	_, usual := overUDP(false)(t, AdapterConfig{})
	id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: x.adapter, Space: command.TCP})
	x.check(err)
	x.dial(command.CMConnect{ID: id, QP: x.idleQP().q.Handle, Remote: command.Endpoint{Addr: command.AddrFrom(usual.addr), Port: 7},
		Param: usualParam})
	if e := x.event(command.EventUnreachable); e.Status != uint32(command.Refused) {
		t.Errorf("status %v, want refused", command.Code(e.Status))
	}
}
