package device

import (
	"context"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

func newHost(t testing.TB, cfg Config) *Host {
	t.Helper()
	h, err := NewHost(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return h
}

func (h *Host) add(t testing.TB, cfg AdapterConfig) uint32 {
	t.Helper()
	i, err := h.AddAdapter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// network makes two adapters that reach each other, each with a program.
type network struct {
	name string
	make func(t testing.TB, cfg AdapterConfig) (a, b *program)
}

func overUDP(oneHost bool) func(testing.TB, AdapterConfig) (a, b *program) {
	return func(t testing.TB, cfg AdapterConfig) (a, b *program) {
		h := newHost(t, Config{Seed: 1})
		g := h
		if !oneHost {
			g = newHost(t, Config{Seed: 2})
		}
		ca, cb := cfg, cfg
		ca.Addr, cb.Addr = loopback.Addr(), loopback.Addr()
		return newProgram(t, h, h.add(t, ca)), newProgram(t, g, g.add(t, cb))
	}
}

func overMemory(oneHost bool) func(testing.TB, AdapterConfig) (a, b *program) {
	return func(t testing.TB, cfg AdapterConfig) (a, b *program) {
		h := newHost(t, Config{Seed: 1})
		g := h
		if !oneHost {
			g = newHost(t, Config{Seed: 2})
		}
		sw := memlink.NewSwitch()
		add := func(h *Host) *program {
			c := cfg
			c.Addr = loopback.Addr()
			p, err := sw.Port(memlink.PortConfig{Addr: c.Addr, Notify: h.Wake})
			if err != nil {
				t.Fatal(err)
			}
			c.Link = p
			return newProgram(t, h, h.add(t, c))
		}
		return add(h), add(g)
	}
}

var networks = []network{
	{"udp", overUDP(false)}, {"udp one host", overUDP(true)}, {"memory", overMemory(false)}, {"memory one host", overMemory(true)},
}

// program is a client with the verbs that the tests use.
type program struct {
	t       testing.TB
	host    *Host
	c       *Client
	adapter uint32
	addr    netip.Addr
	pd      command.Handle
	events  chan command.Event
	spare   []byte
}

func newProgram(t testing.TB, h *Host, adapter uint32) *program {
	t.Helper()
	return newProgramWith(t, h, adapter, ClientConfig{Name: t.Name(), PID: 1})
}

func newProgramWith(t testing.TB, h *Host, adapter uint32, cfg ClientConfig) *program {
	t.Helper()
	c, err := h.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, host: h, c: c, adapter: adapter, events: make(chan command.Event, 1024), spare: pages(t, 64<<20)}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		out := make([]command.Event, 8)
		for {
			n, err := c.Events(context.Background(), out)
			if err != nil {
				return
			}
			for _, e := range out[:n] {
				select {
				case p.events <- e:
				case <-ended: // of a test that failed before it took them all
					return
				}
			}
		}
	}()
	t.Cleanup(func() {
		close(ended)
		if err := c.Close(); err != nil {
			t.Errorf("close client: %v", err)
		}
		<-done
	})
	infos, err := c.Adapters(bg)
	p.check(err)
	p.addr = infos[slices.IndexFunc(infos, func(i command.AdapterInfo) bool { return i.Index == adapter })].Addr.IP()
	p.pd, err = c.AllocPD(bg, adapter)
	p.check(err)
	return p
}

var bg = context.Background()

func (p *program) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// event returns the next event of this type and drops those before it.
func (p *program) event(typ command.EventType) command.Event {
	p.t.Helper()
	deadline := time.After(await.Limit)
	for {
		select {
		case e := <-p.events:
			if e.Type == typ {
				return e
			}
			p.t.Logf("event %d (object %#x, status %d) before %d", e.Type, e.Object, e.Status, typ)
		case <-deadline:
			p.t.Fatalf("no event %d", typ)
		}
	}
}

// buffer is registered memory.
type buffer struct {
	b   []byte
	mem command.Memory
}

const allRights = memory.LocalWrite | memory.RemoteRead | memory.RemoteWrite | memory.RemoteAtomic

func (p *program) buffer(n int) *buffer {
	p.t.Helper()
	b := &buffer{b: p.pages(n)}
	var err error
	b.mem, err = p.c.RegisterMemory(bg, command.RegisterMemory{PD: p.pd, Access: uint32(allRights), Base: b.addr(0), Length: uint64(n)})
	p.check(err)
	return b
}

// pages returns n bytes that stay mapped until the program's client is closed.
func (p *program) pages(n int) []byte {
	if len(p.spare) < n {
		p.t.Fatalf("the program has %d bytes of memory left, not %d", len(p.spare), n)
	}
	b := p.spare[:n:n]
	p.spare = p.spare[(n+63)&^63:]
	return b
}

func (b *buffer) addr(off int) uint64 { return uint64(uintptr(unsafe.Pointer(&b.b[0]))) + uint64(off) }

func (b *buffer) sge(off, n int) ring.SGE {
	return ring.SGE{Addr: b.addr(off), Length: uint32(n), LKey: b.mem.LKey}
}

// queue is a CQ as its program sees it.
type queue struct {
	p *program
	q command.Queue
	*ring.CQ
}

func (p *program) ringAt(r command.Ring) []byte {
	return p.c.Arena(r.Arena)[r.Offset : r.Offset+r.Size]
}

func (p *program) cq(depth uint32) *queue {
	p.t.Helper()
	q, err := p.c.CreateCQ(bg, command.CreateCQ{Adapter: p.adapter, Depth: depth})
	p.check(err)
	return p.open(q)
}

func (p *program) open(q command.Queue) *queue {
	r, err := ring.OpenCQ(p.ringAt(q.Ring), ring.Geometry{Entries: int(q.Depth), Stride: int(q.Stride)})
	p.check(err)
	return &queue{p, q, r}
}

// next polls for the next completion and drives the loop meanwhile.
func (q *queue) next() ring.CQE {
	var e [1]ring.CQE
	var deadline time.Time
	for i := 0; q.Poll(e[:]) == 0; i++ {
		if i == 1000 {
			deadline = time.Now().Add(await.Limit)
		} else if i%1000 == 0 && i > 0 && time.Now().After(deadline) {
			q.p.t.Helper()
			q.p.t.Fatal("no completion")
		}
		q.p.c.Poll(1)
	}
	return e[0]
}

// wait sleeps until the next completion.
func (q *queue) wait() ring.CQE {
	q.p.t.Helper()
	ctx, cancel := context.WithTimeout(bg, await.Limit)
	defer cancel()
	var e [1]ring.CQE
	for {
		seq := q.Sequence()
		q.Arm(ring.ArmAny)
		if q.Poll(e[:]) == 1 {
			return e[0]
		}
		_, err := q.p.c.WaitCQ(ctx, q.q.Handle, seq)
		q.p.check(err)
	}
}

// pair is a QP as its program sees it.
type pair struct {
	p    *program
	q    command.QueuePair
	cq   *queue
	send *ring.Send
	recv *ring.Recv
}

func (p *program) qp(r command.CreateQP, cq *queue) *pair {
	p.t.Helper()
	r.PD, r.SendCQ, r.RecvCQ = p.pd, cq.q.Handle, cq.q.Handle
	if r.Type == 0 {
		r.Type = command.RC
	}
	if r.SendDepth == 0 {
		r.SendDepth, r.RecvDepth, r.SendSGE, r.RecvSGE, r.Inline = 64, 64, 4, 4, 64
	}
	q, err := p.c.CreateQP(bg, r)
	p.check(err)
	out := &pair{p: p, q: q, cq: cq}
	out.send, err = ring.OpenSend(p.ringAt(q.Send), ring.Geometry{Entries: int(q.SendDepth), Stride: int(q.SendStride)})
	p.check(err)
	if q.RecvDepth > 0 {
		out.recv, err = ring.OpenRecv(p.ringAt(q.Recv), ring.Geometry{Entries: int(q.RecvDepth), Stride: int(q.RecvStride)})
		p.check(err)
	}
	return out
}

func (q *pair) post(wr ring.SendWR) {
	if err := q.send.Post(&wr); err != nil {
		q.p.t.Helper()
		q.p.t.Fatal(err)
	}
	q.p.c.Doorbell(q.q.Handle)
}

func (q *pair) postSend(id uint64, op ring.WROp, sges ...ring.SGE) {
	wr := ring.SendWR{ID: id, Op: op, Flags: ring.Signaled, NumSGE: uint8(len(sges))}
	copy(wr.SGE[:], sges)
	q.post(wr)
}

func (q *pair) postRecv(id uint64, sges ...ring.SGE) {
	wr := ring.RecvWR{ID: id, NumSGE: uint32(len(sges))}
	copy(wr.SGE[:], sges)
	if err := q.recv.Post(&wr); err != nil {
		q.p.t.Helper()
		q.p.t.Fatal(err)
	}
	q.p.c.Doorbell(q.q.Handle)
}

func (q *pair) info() command.QPInfo {
	q.p.t.Helper()
	i, err := q.p.c.QueryQP(bg, q.q.Handle)
	q.p.check(err)
	return i
}

// connected is a connection made through the CM.
type connected struct {
	a, b       *pair
	idA, idB   command.Handle
	listener   command.Handle
	fromA      command.Event // the request that b got
	answered   command.Event // the answer that a got
	serverPort uint16
}

var usualParam = command.ConnParam{ResponderResources: 4, InitiatorDepth: 4, FlowControl: 1, RetryCount: 7, RNRRetry: 7}

func (p *program) dial(r command.CMConnect) {
	p.t.Helper()
	_, err := p.c.CMConnect(bg, r)
	p.check(err)
}

// connect connects two QPs through the CM.
func connect(a, b *pair) *connected {
	a.p.t.Helper()
	return connectWith(a, b, usualParam)
}

func connectWith(a, b *pair, usual command.ConnParam) *connected {
	t := a.p.t
	t.Helper()
	c := &connected{a: a, b: b}
	var err error
	c.listener, err = b.p.c.CMCreate(bg, command.CMCreate{Adapter: b.p.adapter, Space: command.TCP})
	b.p.check(err)
	at, err := b.p.c.CMBind(bg, c.listener, command.Endpoint{Addr: command.AddrFrom(b.p.addr)})
	b.p.check(err)
	c.serverPort = at.Port
	b.p.check(b.p.c.CMListen(bg, c.listener, 0))
	c.idA, err = a.p.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	a.p.check(err)
	param := usual
	param.PrivateLen = uint8(copy(param.Private[:], "knock"))
	a.p.dial(command.CMConnect{ID: c.idA, QP: a.q.Handle, Remote: at, Param: param})
	c.fromA = b.p.event(command.EventConnectRequest)
	c.idB = c.fromA.NewID
	param = usual
	param.PrivateLen = uint8(copy(param.Private[:], "come in"))
	b.p.check(b.p.c.CMAccept(bg, command.CMAccept{ID: c.idB, QP: b.q.Handle, Param: param}))
	c.answered = a.p.event(command.EventConnectResponse)
	a.p.check(a.p.c.CMEstablish(bg, c.idA))
	b.p.event(command.EventEstablished)
	return c
}

// pairs returns a connected pair of RC QPs on a network.
func pairs(t testing.TB, n network, cfg AdapterConfig) *connected {
	t.Helper()
	a, b := n.make(t, cfg)
	return connect(a.qp(command.CreateQP{}, a.cq(256)), b.qp(command.CreateQP{}, b.cq(256)))
}

func fill(b []byte, seed uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		seed = seed*6364136223846793005 + 1442695040888963407
		binary.LittleEndian.PutUint64(b[i:], seed)
	}
}

func wantSuccess(t testing.TB, e ring.CQE, id uint64, op ring.CQOp) {
	t.Helper()
	if e.Status != ring.Success || e.ID != id || e.Op != op {
		t.Fatalf("completion of %s, request %d: %v; want success of request %d (%v)", e.Op, e.ID, e.Status, id, op)
	}
}
