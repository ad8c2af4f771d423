package device

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/race"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestRubbishInRings: invalid contents of a ring put the QP or CQ that it belongs to into error, and nothing else:
// the other program on the adapter continues.
func TestRubbishInRings(t *testing.T) {
	put := func(p *program, r command.Ring, at uint64, v uint32) {
		binary.LittleEndian.PutUint32(p.c.Arena(r.Arena)[r.Offset+at:], v)
	}
	for _, o := range []struct {
		name  string
		wreck func(c *connected)
		event command.EventType
	}{
		{"send ring's producer", func(c *connected) { put(c.a.p, c.a.q.Send, 0, 1<<30) }, command.EventQPFatal},
		{"send ring's entry", func(c *connected) {
			c.a.p.check(c.a.send.Post(&ring.SendWR{Op: ring.OpSend}))
			put(c.a.p, c.a.q.Send, ring.HeaderSize, 0xffffffff)
		}, command.EventQPFatal},
		{"CQ's consumer", func(c *connected) {
			put(c.a.p, c.a.cq.q.Ring, 64, 1<<30)
			for range 300 { // the ring is read again when it seems full
				if c.a.send.Post(&ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled}) != nil {
					break
				}
			}
		}, command.EventCQError},
		{"doorbells", func(c *connected) {
			a := c.a.p.c.Arena(0)
			binary.LittleEndian.PutUint32(a, 1<<30)
			binary.LittleEndian.PutUint32(a[ring.HeaderSize:], 1<<31|7)
			c.a.p.host.Wake()
		}, command.EventQPFatal},
	} {
		t.Run(o.name, func(t *testing.T) {
			x, y := overMemory(true)(t, AdapterConfig{})
			c := connect(x.qp(command.CreateQP{}, x.cq(4)), y.qp(command.CreateQP{}, y.cq(64)))
			other := connect(newProgram(t, x.host, x.adapter).idleQP(), y.qp(command.CreateQP{}, y.cq(64)))
			for i := range uint64(64) {
				c.b.postRecv(i)
			}
			o.wreck(c)
			x.c.Doorbell(c.a.q.Handle)
			x.event(o.event)
			if s := c.a.info().Attr.State; s != command.Err {
				t.Errorf("QP in state %d, want error", s)
			}
			operations(t, other)
		})
	}
}

func (p *program) idleQP() *pair { return p.qp(command.CreateQP{}, p.cq(64)) }

// TestHostileMADs: management datagrams that are well formed on the wire and nonsense inside, random or derived from
// good ones, harm no connection and leave nothing behind.
func TestHostileMADs(t *testing.T) {
	const mads = 3000
	h := newHost(t, Config{Seed: 1})
	sw := memlink.NewSwitch()
	add := func() *program {
		addr := loopback.Addr()
		// There is room for all of them, whenever the loop gets a processor.
		p, err := sw.Port(memlink.PortConfig{Addr: addr, Notify: h.Wake, Queue: 4 * mads})
		if err != nil {
			t.Fatal(err)
		}
		return newProgram(t, h, h.add(t, AdapterConfig{Addr: addr, Link: p}))
	}
	x, y := add(), add()
	c := connect(x.idleQP(), y.idleQP())
	bad := newAttacker(t, sw)
	r := rand.New(rand.NewPCG(1, 2))
	var mad [256]byte
	for i := range mads {
		if i%16 == 0 {
			for j := range mad {
				mad[j] = byte(r.Uint32())
			}
		}
		mad[r.IntN(256)] = byte(r.Uint32())
		if i%4 != 0 { // a CM MAD: base version 1, class 7, version 2, method Send
			copy(mad[:], []byte{1, 7, 2, 3})
			binary.BigEndian.PutUint16(mad[16:], 0x10+uint16(r.IntN(16)))
		}
		bad.send(x.addr, mad[:])
		bad.send(y.addr, mad[:])
	}
	operations(t, c)
	s := h.Snapshot()
	for _, a := range s.Adapters {
		if a.Objects.CM > 3 {
			t.Errorf("%s keeps %d CM ids, the programs have 3", a.Name, a.Objects.CM)
		}
	}
	if v := counter(t, x, "CM MADs received"); v < 1000 {
		t.Errorf("only %d MADs arrived", v)
	}
}

// attacker sends packets of its own making from a port of a switch.
type attacker struct {
	t     testing.TB
	port  *memlink.Port
	addr  netip.Addr
	encap *encap.Encap
	out   [1]frame.Out
	in    [64]frame.In
}

func newAttacker(t testing.TB, sw *memlink.Switch) *attacker {
	a := &attacker{t: t, addr: loopback.Addr()}
	var err error
	if a.port, err = sw.Port(memlink.PortConfig{Addr: a.addr}); err != nil {
		t.Fatal(err)
	}
	if a.encap, err = encap.New(encap.RoCEv2, []netip.Addr{a.addr}, a.port.Capabilities(), 0); err != nil {
		t.Fatal(err)
	}
	return a
}

// send sends a MAD to QP1 of dst, with a good ICRC.
func (a *attacker) send(dst netip.Addr, mad []byte) {
	route := frame.Route{Src: a.addr, Dst: dst}
	if err := a.port.Prepare(&route); err != nil {
		a.t.Fatal(err)
	}
	o := &a.out[0]
	o.Reset(&route)
	o.Payload = mad
	head := o.Head[frame.HeadRoom:]
	ib.BTH(head).Encode(ib.UDSendOnly, false, false, 0, ib.PKeyDefault, ib.QPGSI, 0)
	ib.DETH(head[ib.BTHLen:]).Encode(ib.QKeyGSI, ib.QPGSI)
	o.HeadEnd = frame.HeadRoom + ib.BTHLen + ib.DETHLen
	a.encap.Seal(a.out[:])
	if _, err := a.port.Send(a.out[:]); err != nil {
		a.t.Fatal(err)
	}
	for { // the answers do not matter
		if n, err := a.port.Receive(a.in[:]); n == 0 || err != nil {
			return
		}
	}
}

// TestNoAllocationPerPacket: the data path allocates nothing per message, on any network and path.
func TestNoAllocationPerPacket(t *testing.T) {
	if race.Detector {
		t.Skip("the race detector allocates")
	}
	for _, n := range []network{networks[0], networks[1], networks[2]} {
		for _, path := range []PathPolicy{PathAuto, PathWire} {
			t.Run(n.name+" "+path.String(), func(t *testing.T) {
				c := pairs(t, n, AdapterConfig{Path: path})
				const size = 64 << 10
				src, dst := c.a.p.buffer(size), c.b.p.buffer(size)
				wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey}
				wr.SGE[0] = src.sge(0, size)
				recv := ring.RecvWR{NumSGE: 1}
				recv.SGE[0] = dst.sge(0, size)
				send := ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1, SGE: wr.SGE}
				var e [1]ring.CQE
				poll := func(q *queue) {
					for q.Poll(e[:]) == 0 {
						q.p.c.Poll(1)
						runtime.Gosched()
					}
				}
				one := func() {
					_ = c.a.send.Post(&wr)
					c.a.p.c.Doorbell(c.a.q.Handle)
					poll(c.a.cq)
					_ = c.b.recv.Post(&recv)
					_ = c.a.send.Post(&send)
					c.a.p.c.Doorbell(c.a.q.Handle)
					poll(c.a.cq)
					poll(c.b.cq)
				}
				for _, q := range []*pair{c.a, c.b} {
					q.p.host.SetGIDInterval(-1) // a look at the interfaces allocates, and on a busy machine there may be one in every batch
				}
				for range 50 {
					one()
				}
				// What else allocates now and then counts as well. What allocates for each message does so in every batch.
				least := testing.AllocsPerRun(20, one)
				for n := 1; n < 10 && least >= 1; n++ {
					least = min(least, testing.AllocsPerRun(20, one))
				}
				if least >= 1 {
					t.Errorf("%v allocations for a write and a send of %d bytes, want 0", least, size)
				}
			})
		}
	}
}
