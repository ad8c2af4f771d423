package transport

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

const (
	testPD   = memory.PD(7)
	testSRQ  = 0x51   // number of the shared receive queue of an XRC target
	pairPort = 0xc000 // UDP source port of both ends
	allowAll = memory.LocalWrite | memory.RemoteWrite | memory.RemoteRead | memory.RemoteAtomic | memory.WindowBind | memory.FlushGlobal
)

// host is an engine at an address of the simulated network.
type host struct {
	t      testing.TB
	addr   netip.Addr
	e      *Engine
	mem    *memory.Table
	port   *sim.Port
	comps  []Completion
	events []Event
	mads   []Datagram
	settle func(now clock.Time)
	loop   []*Engine // it and those of its peers
	peers  []*host
	local  Exchange
	room   struct { // what drain takes things into: clearing it at each of its millions of turns is a twentieth of all that tests do
		comps  [64]Completion
		events [16]Event
		mads   [4]Datagram
	}
}

func newHost(t testing.TB, n *sim.Network, addr string, cfg Config) *host {
	h := &host{t: t, addr: netip.MustParseAddr(addr), mem: memory.NewTable(1<<16, nil)}
	cfg.Memory = h.mem
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.e = e
	t.Cleanup(func() { untouched(t, e) })
	if n != nil {
		h.port = n.Add(h.addr, sim.Alone(placing{e, rand.New(rand.NewPCG(1, 2)), h}))
		h.port.Settle = h.drain
	}
	return h
}

// turn is a turn of a loop: what is for peers on the local path moves, then what is for the link.
func (h *host) turn(now clock.Time, out []frame.Out) int {
	h.local.Run(now, h.loop)
	return h.e.Transmit(now, 0, out)
}

// drain moves everything that the engine has for its driver into h.
func (h *host) drain(now clock.Time) {
	c, v, d := &h.room.comps, &h.room.events, &h.room.mads
	for n := h.e.Completions(c[:]); n > 0; n = h.e.Completions(c[:]) {
		h.comps = append(h.comps, c[:n]...)
	}
	for n := h.e.Events(v[:]); n > 0; n = h.e.Events(v[:]) {
		h.events = append(h.events, v[:n]...)
	}
	for n := h.e.Datagrams(d[:]); n > 0; n = h.e.Datagrams(d[:]) {
		h.mads = append(h.mads, d[:n]...)
	}
	if h.settle != nil {
		h.settle(now)
	}
}

func (h *host) region(base uint64, b []byte, access memory.Access) *memory.Region {
	r, err := h.mem.Register(memory.Region{PD: testPD, Base: base, Length: uint64(len(b)), Access: access, Bytes: b})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// end is a QP with its rings.
type end struct {
	*host
	q      *QP
	send   *ring.Send
	recv   *ring.Recv
	posted uint64 // requests posted by do
}

func (h *host) qp(typ command.QPType, c QPConfig) *end {
	const depth, sge, inline = 256, 8, 256
	g := ring.SendGeometry(depth, sge, inline)
	s, err := ring.OpenSend(make([]byte, g.Size()), g)
	if err != nil {
		h.t.Fatal(err)
	}
	g = ring.RecvGeometry(depth, sge)
	r, err := ring.OpenRecv(make([]byte, g.Size()), g)
	if err != nil {
		h.t.Fatal(err)
	}
	c.Type, c.PD = typ, testPD
	if c.Send == nil {
		c.Send = &SendRing{Send: s}
	}
	if c.Recv == nil {
		c.Recv = r
	}
	q, err := h.e.CreateQP(0, c)
	if err != nil {
		h.t.Fatal(err)
	}
	if typ == command.XRCTarget && h.e.shared[testSRQ] == nil {
		shared := &SharedQueue{Number: testSRQ, Domain: c.Domain, PD: testPD, CQ: 9, Queue: r}
		if err := h.e.AddSharedQueue(shared); err != nil {
			h.t.Fatal(err)
		}
	}
	return &end{host: h, q: q, send: s, recv: r}
}

func (x *end) modify(m command.ModifyQP, route *frame.Route) {
	x.t.Helper()
	if err := x.e.Modify(x.e.now, x.q, m, route); err != nil {
		x.t.Fatalf("modify to %s: %v", stateName(m.State), err)
	}
}

func (x *end) post(wr ring.SendWR) {
	if x.q.typ == command.XRCInitiator && wr.RemoteQPN == 0 {
		wr.RemoteQPN = testSRQ
	}
	if err := x.send.Post(&wr); err != nil {
		x.t.Helper() // here alone: it takes longer than all the rest
		x.t.Fatal(err)
	}
	x.e.Doorbell(x.q)
	if x.port != nil {
		x.port.Wake()
	}
}

func (x *end) postRecv(wr ring.RecvWR) {
	x.t.Helper()
	if err := x.recv.Post(&wr); err != nil {
		x.t.Fatal(err)
	}
	x.e.Doorbell(x.q)
	if (x.e.Pending() != 0 || x.e.PendingLocal()) && x.port != nil {
		x.port.Wake()
	}
}

// connection is what the two ends of a test connection agree on.
type connection struct {
	mtu            uint32
	psn            [2]uint32 // the first PSN of each end
	timeout        uint8
	retry, rnr     uint8
	rnrTimer       uint8
	depth          uint8
	access         memory.Access
	flow           uint8
	initiatorDepth uint8 // 0: depth
	bursts         bool  // both links join packets of equal length
}

func defaultConnection() connection {
	return connection{
		mtu: 1024, psn: [2]uint32{100, 5000}, timeout: 8, retry: 7, rnr: 7, rnrTimer: 1, depth: 4,
		access: memory.RemoteWrite | memory.RemoteRead | memory.RemoteAtomic | memory.FlushGlobal,
	}
}

// connect takes two ends from Reset to RTS.
func connect(a, b *end, c connection) {
	if c.initiatorDepth == 0 {
		c.initiatorDepth = c.depth
	}
	for i, p := range [][2]*end{{a, b}, {b, a}} {
		x, y := p[0], p[1]
		if x.host.loop = append(x.host.loop, x.e); x.e != y.e {
			x.host.loop, x.host.peers = append(x.host.loop, y.e), append(x.host.peers, y.host)
		}
		x.modify(command.ModifyQP{Mask: command.MaskState | command.MaskPKey | command.MaskAccess, State: command.Init,
			Access: uint32(c.access)}, nil)
		rtr := command.ModifyQP{
			Mask:  command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN,
			State: command.RTR, MTU: c.mtu, DestQPN: y.q.num, RQPSN: c.psn[1-i],
			ResponderResources: c.depth, MinRNRTimer: c.rnrTimer, FlowControl: c.flow,
		}
		rts := command.ModifyQP{
			Mask: command.MaskState | command.MaskSQPSN, State: command.RTS, SQPSN: c.psn[i],
			Timeout: c.timeout, Retry: c.retry, RNRRetry: c.rnr, InitiatorDepth: c.initiatorDepth,
		}
		switch x.q.typ {
		case command.XRCInitiator:
			rts.Mask |= command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry | command.MaskInitiatorDepth
		case command.XRCTarget:
			rtr.Mask |= command.MaskResponderResources | command.MaskMinRNRTimer
			rts.Mask |= command.MaskTimeout
		case command.RC:
			rtr.Mask |= command.MaskResponderResources | command.MaskMinRNRTimer | command.MaskFlowControl
			rts.Mask |= command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry | command.MaskInitiatorDepth
		}
		x.modify(rtr, &frame.Route{Src: x.addr, Dst: y.addr, SrcPort: pairPort, Bursts: c.bursts})
		x.modify(rts, nil)
	}
}

func newPair(t testing.TB, seed uint64, typ command.QPType) (*sim.Network, *end, *end) {
	n := sim.New(seed)
	n.Default.Delay = 2 * time.Microsecond
	a := newHost(t, n, "10.0.0.1", Config{}).qp(typ, QPConfig{Context: 1})
	b := newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x100}).qp(typ.Counterpart(), QPConfig{Context: 2})
	return n, a, b
}

// sevens are the multiples of 7, twice.
var sevens = func() (b [512]byte) {
	for i := range b {
		b[i] = byte(i) * 7
	}
	return b
}()

// pattern returns n bytes that depend on their position and on seed: at i stands byte(i)*7 + byte(i>>8)*13 + seed.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += 256 {
		// What is added to all 256 of a row is a multiple of 7, too: that many places further (7 * 183 = 1).
		copy(b[i:], sevens[(byte(i>>8)*13+seed)*183:][:256])
	}
	return b
}
