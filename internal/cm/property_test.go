package cm

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestLossyNetwork runs two engines over a network that loses, duplicates, delays and reorders MADs, with programs
// that accept, refuse, ignore, delay, disconnect, fail and die. Whatever happens:
//
//   - a connection that lasts is established on both sides with equal parameters,
//     or on neither;
//   - every id gets its events in an order that the types' comments allow;
//   - every QP number that was in use is given back exactly once;
//   - nothing is left in either engine at the end.
func TestLossyNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		percent := rapid.SampledFrom([]int{0, 1, 5, 20})
		seed := rapid.Uint64().Draw(t, "seed")
		w := &world{pair: newPair(nil), t: t, net: sim.New(seed), rand: rand.New(rand.NewPCG(seed, 2)), programs: map[named]*program{}}
		w.loss = percent.Draw(t, "loss")
		delay := time.Duration(rapid.SampledFrom([]int{0, 1, 50, 300}).Draw(t, "delay")) * time.Millisecond
		w.net.Default = impair.Impairment{
			Loss: float64(w.loss) / 100, Duplicate: float64(percent.Draw(t, "duplication")) / 100,
			Delay: delay / 2, Jitter: delay / 2, Reorder: 0.5, ReorderBy: delay,
		}
		for _, s := range w.sides() {
			x := &carrier{w: w, side: s}
			x.port = w.net.Add(s.addr, x)
			x.port.Settle = x.settle
			w.carriers = append(w.carriers, x)
		}
		w.tasks.port = w.net.Add(netip.Addr{}, &w.tasks)
		w.play(rapid.IntRange(1, 8).Draw(t, "connections"))
	})
}

// world is the network and the programs.
type world struct {
	*pair
	t        *rapid.T
	net      *sim.Network
	carriers []*carrier
	tasks    tasks
	rand     *rand.Rand
	loss     int
	programs map[named]*program
	qpn      int
}

// program is the history of one id.
type program struct {
	named
	events    []EventType
	space     command.PortSpace
	inUse     bool // had a ConnectResponse or called Accept: must get a TimewaitExit
	destroyed bool
}

func (w *world) play(connections int) {
	for _, s := range w.sides() {
		for _, space := range []command.PortSpace{command.TCP, command.UDP, command.IB} {
			p := w.open(s, space)
			w.must(s.e.Bind(p.id, netip.MustParseAddrPort("0.0.0.0:7")))
			w.must(nil, s.e.Listen(p.id, 4))
		}
	}
	for i := range connections {
		s := w.sides()[w.rand.IntN(2)]
		w.later(time.Duration(i)*w.upTo(time.Second), func() {
			space, typ := command.TCP, command.QPType(0)
			switch w.rand.IntN(4) {
			case 0:
				space = command.UDP
			case 1:
				space, typ = command.IB, command.XRCInitiator
			}
			p := w.open(s, space)
			w.qpn++
			w.must(nil, s.e.Connect(w.now, p.id, Connect{
				Remote: netip.AddrPortFrom(w.other(s).addr, 7), Local: s.addr, QPN: uint32(0x1000 + w.qpn), SRQ: w.rand.IntN(3) == 0,
				InitiatorDepth: uint8(w.rand.IntN(17)), ResponderResources: uint8(w.rand.IntN(17)), RetryCount: 7,
				RNRRetry: uint8(w.rand.IntN(8)), Type: typ,
			}))
		})
	}
	w.run()
	w.compare()
	for _, p := range w.programsInOrder() {
		w.destroy(p)
	}
	w.run()
	for _, s := range w.sides() {
		if left := s.e.left(); left != "" {
			w.t.Fatalf("%s keeps %s", s.name, left)
		}
	}
	for _, p := range w.programsInOrder() {
		w.checkOrder(p)
	}
}

func (w *world) programsInOrder() []*program {
	var all []*program
	for _, p := range w.programs {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *program) int {
		return cmp.Or(cmp.Compare(a.side.name, b.side.name), cmp.Compare(a.id, b.id))
	})
	return all
}

func (w *world) must(_ any, err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open(s *side, space command.PortSpace) *program {
	id, err := s.e.Open(space, 0)
	w.must(nil, err)
	p := &program{named: named{s, id}, space: space}
	w.programs[p.named] = p
	return p
}

func (w *world) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.rand.Int64N(int64(d)))
}

func (w *world) happened(s *side, v Event) {
	n := named{s, v.ID}
	if v.Type == EventConnectRequest {
		if w.programs[n] != nil {
			w.t.Fatalf("%s: id %08x was handed out twice", s.name, uint32(v.ID))
		}
		w.programs[n] = &program{named: n, space: v.Space}
	}
	p := w.programs[n]
	if p.destroyed && v.Type != EventTimewaitExit {
		w.t.Fatalf("%s: %v after Destroy", s.name, v)
	}
	p.events = append(p.events, v.Type)
	switch v.Type {
	case EventConnectRequest:
		w.later(w.upTo(3*time.Second), func() { w.answer(p) })
	case EventConnectResponse:
		if v.Space == command.UDP {
			if v.Conn.QKey != ib.QKeyRDMAUDP || v.Conn.RemoteQPN <= 0x1000 {
				w.t.Fatalf("%s: response %v, want the peer's QP and the Q_Key of the UDP space", s.name, v)
			}
			return
		}
		p.inUse = true
		w.later(w.upTo(2*time.Second), func() { w.complete(p) })
	case EventEstablished:
		w.later(w.upTo(5*time.Second), func() { w.use(p) })
	}
}

// answer makes the passive program's decision. The request may be gone by then.
func (w *world) answer(p *program) {
	if p.destroyed {
		return
	}
	if err := p.side.e.Claim(p.id); err != nil {
		p.destroyed = true
		return
	}
	switch n := w.rand.IntN(20); {
	case n == 0: // it never answers
	case n == 1:
		w.destroy(p)
	case n < 4:
		_ = p.side.e.Reject(w.now, p.id, 0, []byte("no"))
	default:
		w.qpn++
		_, err := p.side.e.Accept(w.now, p.id, Accept{QPN: uint32(0x1000 + w.qpn), InitiatorDepth: uint8(w.rand.IntN(17)),
			ResponderResources: uint8(w.rand.IntN(17))})
		p.inUse = p.inUse || err == nil && p.space != command.UDP
	}
}

// complete makes the active program's decision on a response.
func (w *world) complete(p *program) {
	if p.destroyed {
		return
	}
	switch n := w.rand.IntN(20); {
	case n == 0:
		w.destroy(p)
	case n == 1:
		_ = p.side.e.Reject(w.now, p.id, 0, nil)
	default:
		_ = p.side.e.Establish(w.now, p.id, nil) // the peer may have given up
	}
}

// use does something with an established connection, mostly nothing.
func (w *world) use(p *program) {
	if p.destroyed {
		return
	}
	switch w.rand.IntN(10) {
	case 0:
		w.must(nil, p.side.e.Disconnect(w.now, p.id, nil))
	case 1:
		w.must(nil, p.side.e.Fail(w.now, p.id))
	case 2:
		w.destroy(p)
	}
}

func (w *world) destroy(p *program) {
	if p.destroyed {
		return
	}
	p.destroyed = true
	if err := p.side.e.Destroy(w.now, p.id); err != nil && p.last() != EventConnectError {
		w.t.Fatalf("%s: Destroy %08x: %v", p.side.name, uint32(p.id), err)
	}
}

func (p *program) last() EventType {
	if len(p.events) == 0 {
		return 0
	}
	return p.events[len(p.events)-1]
}

func (p *program) conns() *conn {
	if c := p.side.e.ids.Get(uint32(p.id)); c != nil && !p.destroyed {
		return c
	}
	return nil
}

// compare checks that each connection exists on both sides or on neither.
func (w *world) compare() {
	for _, p := range w.programsInOrder() {
		c := p.conns()
		if c == nil || c.state != stateEstablished {
			continue
		}
		peer := w.other(p.side).e.ids.Get(uint32(c.remoteID))
		if peer == nil || peer.state != stateEstablished || peer.remoteID != uint32(c.id) {
			if w.loss <= 5 {
				w.t.Fatalf("%s: %08x is established on one side only", p.side.name, uint32(c.id))
			}
			// Every RTU and REJ was lost. The QP will find that the peer does not answer.
			w.must(nil, p.side.e.Fail(w.now, p.id))
			continue
		}
		if err := equal(&c.attr, &peer.attr); err != nil {
			w.t.Fatalf("%s: %08x and its peer: %v", p.side.name, uint32(c.id), err)
		}
	}
}

// equal returns an error about what does not agree between the two ends of a connection.
func equal(a, b *Attributes) error {
	switch {
	case a.LocalQPN != b.RemoteQPN || a.RemoteQPN != b.LocalQPN:
		return fmt.Errorf("QPNs %#x/%#x and %#x/%#x", a.LocalQPN, a.RemoteQPN, b.LocalQPN, b.RemoteQPN)
	case a.SQPSN != b.RQPSN || a.RQPSN != b.SQPSN:
		return fmt.Errorf("PSNs %d/%d and %d/%d", a.SQPSN, a.RQPSN, b.SQPSN, b.RQPSN)
	case a.MTU != b.MTU:
		return fmt.Errorf("MTUs %v and %v", a.MTU, b.MTU)
	case a.FlowControl != b.FlowControl:
		return fmt.Errorf("flow control %t and %t", a.FlowControl, b.FlowControl)
	case a.InitiatorDepth > b.ResponderResources || b.InitiatorDepth > a.ResponderResources:
		return fmt.Errorf("depths %d and %d, resources %d and %d", a.InitiatorDepth, b.InitiatorDepth, a.ResponderResources,
			b.ResponderResources)
	case a.Type.Counterpart() != b.Type:
		return fmt.Errorf("types %d and %d", a.Type, b.Type)
	case a.Type == command.XRCTarget && a.InitiatorDepth|b.ResponderResources != 0:
		return fmt.Errorf("a target may have %d requests outstanding, its peer serves %d", a.InitiatorDepth, b.ResponderResources)
	case a.SrcPort != b.SrcPort || !a.Type.XRC() && a.RetryCount != b.RetryCount || a.PKey != b.PKey: // a target repeats nothing
		return fmt.Errorf("%v and %v", a, b)
	}
	return nil
}

// checkOrder checks the order of an id's events.
func (w *world) checkOrder(p *program) {
	follows := map[EventType][]EventType{
		0:                    {EventConnectRequest, EventConnectResponse, EventRejected, EventUnreachable, EventTimewaitExit},
		EventConnectRequest:  {EventEstablished, EventRejected, EventUnreachable, EventConnectError, EventDisconnected, EventTimewaitExit},
		EventConnectResponse: {EventEstablished, EventRejected, EventConnectError, EventDisconnected, EventTimewaitExit},
		EventEstablished:     {EventDisconnected, EventTimewaitExit},
		EventRejected:        {EventTimewaitExit},
		EventUnreachable:     {EventTimewaitExit},
		EventConnectError:    {EventTimewaitExit},
		EventDisconnected:    {EventTimewaitExit},
	}
	last := EventType(0)
	for _, v := range p.events {
		if !slices.Contains(follows[last], v) {
			w.t.Fatalf("%s: %08x saw %v", p.side.name, uint32(p.id), p.events)
		}
		last = v
	}
	if p.inUse != (last == EventTimewaitExit) {
		w.t.Fatalf("%s: %08x has its QP number back: %t; saw %v", p.side.name, uint32(p.id), last == EventTimewaitExit, p.events)
	}
}
