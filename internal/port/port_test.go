package port

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// queues is a function with packets at each priority and a record of what it has received.
type queues struct {
	out      [8][]*frame.Route
	got      []string
	advanced int
	due      clock.Time
}

func (q *queues) Receive(_ clock.Time, in []frame.In) {
	for i := range in {
		q.got = append(q.got, string(in[i].Data[ib.BTHLen:]))
	}
}

func (q *queues) Advance(clock.Time)   { q.advanced++ }
func (q *queues) Deadline() clock.Time { return q.due }

func (q *queues) Pending() (bits uint8) {
	for p, l := range q.out {
		if len(l) > 0 {
			bits |= 1 << p
		}
	}
	return bits
}

func (q *queues) Transmit(_ clock.Time, p uint8, out []frame.Out) int {
	n := min(len(q.out[p]), len(out))
	for i, r := range q.out[p][:n] {
		write(&out[i], r, "data")
	}
	q.out[p] = q.out[p][n:]
	return n
}

// write makes a packet without outer headers.
func write(o *frame.Out, r *frame.Route, payload string) {
	o.Reset(r)
	ib.BTH(o.Head[frame.HeadRoom:]).Encode(ib.UDSendOnly, false, false, 0, ib.PKeyDefault, 2, 0)
	o.HeadEnd += ib.BTHLen
	o.Payload = []byte(payload)
}

func many(n int, r *frame.Route) (list []*frame.Route) {
	for range n {
		list = append(list, r)
	}
	return list
}

// TestTransmit_BlockedPriorityHoldsUpNoOther: the packets of priorities that are not paused leave, in order of the
// scheduler, while those of a paused one stay with their function.
func TestTransmit_BlockedPriorityHoldsUpNoOther(t *testing.T) {
	var p Port
	r := &frame.Route{}
	a, b := &queues{due: clock.Never}, &queues{due: clock.Never}
	for _, q := range []*queues{a, b} {
		p.Attach(q, Station{}).Plug(&Wire{}, netip.Addr{}, nil)
		q.out[3], q.out[0] = many(20, r), many(20, r)
	}
	p.Scheduler.Pause(1 << 3)
	var out [64]frame.Out
	sent := 0
	for n := p.Transmit(0, out[:]); n > 0; n = p.Transmit(0, out[:]) {
		sent += n
	}
	if sent != 40 || len(a.out[3]) != 20 || len(b.out[3]) != 20 || p.Pending() || p.Deadline() != clock.Never {
		t.Errorf("%d packets left, %d and %d wait at priority 3, pending: %t, deadline %d", sent, len(a.out[3]), len(b.out[3]), p.Pending(),
			p.Deadline())
	}
	p.Scheduler.Pause(0)
	if !p.Pending() || p.Deadline() != 0 {
		t.Error("nothing is to be sent after the pause")
	}
	for n := p.Transmit(0, out[:]); n > 0; n = p.Transmit(0, out[:]) {
		sent += n
	}
	c := p.Counters()
	const onWire = 14 + 20 + 8 + 16 // with the headers that a socket writes
	if sent != 80 || c.Sent != [9]Tally{Untagged: {40, 40 * onWire}, 3: {40, 40 * onWire}} {
		t.Errorf("%d packets left, counters %+v", sent, *c)
	}
}

// TestTransmit_FunctionsTakeTurns: functions that have something at the same priority send in turn.
func TestTransmit_FunctionsTakeTurns(t *testing.T) {
	var p Port
	a, b, c := &queues{}, &queues{}, &queues{}
	for i, q := range []*queues{a, b, c} {
		p.Attach(q, Station{}).Plug(&Wire{}, netip.Addr{}, nil)
		q.out[0] = many(4, &frame.Route{FlowLabel: uint32(i)})
	}
	var out [2]frame.Out
	var order []uint32
	for n := p.Transmit(0, out[:]); n > 0; n = p.Transmit(0, out[:]) {
		order = append(order, out[0].Route.FlowLabel)
	}
	if got, want := order, []uint32{0, 1, 2, 0, 1, 2}; len(got) != len(want) || got[0] == got[1] || got[1] == got[2] || got[0] == got[2] ||
		got[0] != got[3] || got[1] != got[4] {
		t.Errorf("the functions send in the order %v", order)
	}
}

// station is a function with its own MAC and address on a wire of whole frames.
type station struct {
	queues
	addr netip.Addr
	s    *Station
	e    *encap.Encap
}

func stationOn(t *testing.T, p *Port, w *Wire, last byte, vlan uint16) *station {
	t.Helper()
	x := &station{addr: netip.AddrFrom4([4]byte{192, 0, 2, last})}
	x.due = clock.Never
	var err error
	if x.e, err = encap.New(encap.RoCEv2, []netip.Addr{x.addr}, link.Capabilities{Raw: true, MaxSegments: 1, MTU: 1500}, 0); err != nil {
		t.Fatal(err)
	}
	x.s = p.Attach(x, Station{MAC: eth.MAC{2, 0, 0, 0, 0, last}, VLAN: vlan})
	x.s.Plug(w, netip.Addr{}, x.e)
	return x
}

// to returns a route to another station.
func (x *station) to(o *station) *frame.Route {
	return &frame.Route{Src: x.addr, Dst: o.addr, SrcPort: 50000, SrcMAC: x.s.MAC, DstMAC: o.s.MAC, VLAN: o.s.VLAN}
}

// sealed returns a packet as a whole frame.
func sealed(e *encap.Encap, r *frame.Route, payload string) []byte {
	var out [1]frame.Out
	write(&out[0], r, payload)
	e.Seal(out[:])
	o := &out[0]
	b := append([]byte(nil), o.Head[o.HeadStart:o.HeadEnd]...)
	return append(append(b, o.Payload...), o.Tail[:o.TailLen]...)
}

// arrive passes a frame to a port as its link would.
func arrive(p *Port, w *Wire, e *encap.Encap, r *frame.Route, payload string) {
	p.Receive(0, w, []frame.In{{Data: sealed(e, r, payload), Raw: true}})
}

// TestReceive_ByStation: a frame is delivered to the station with its MAC and VLAN, and to no other, also if it has
// another station's IP address; frames for nobody are counted.
func TestReceive_ByStation(t *testing.T) {
	var p, far Port
	w := &Wire{}
	a, b, c := stationOn(t, &p, w, 1, 0), stationOn(t, &p, w, 2, 0), stationOn(t, &p, w, 3, 7)
	x := stationOn(t, &far, &Wire{}, 9, 0)
	for _, s := range []*station{a, b, c} {
		arrive(&p, w, x.e, x.to(s), s.addr.String()+"   ")
	}
	for _, s := range []*station{a, b, c} {
		if len(s.got) != 1 || s.got[0][:len(s.addr.String())] != s.addr.String() {
			t.Errorf("%v has received %q", s.addr, s.got)
		}
	}
	for _, change := range []func(r *frame.Route){
		func(r *frame.Route) { r.DstMAC[0] = 4 },
		func(r *frame.Route) { r.VLAN = 7 },
	} {
		r := x.to(a)
		change(r)
		arrive(&p, w, x.e, r, "nobody's")
	}
	if got := p.Counters().Unclaimed; got != 2 {
		t.Errorf("%d frames for nobody, want 2", got)
	}
	r := x.to(a)
	r.DstMAC = b.s.MAC
	arrive(&p, w, x.e, r, "stray...")
	if len(a.got) != 1 || len(b.got) != 1 {
		t.Errorf("a frame with one station's MAC and another's address was delivered: %q, %q", a.got, b.got)
	}
	b.s.Switch(false)
	arrive(&p, w, x.e, x.to(b), "off.....")
	arrive(&p, w, x.e, x.to(a), "on......")
	if len(b.got) != 1 || len(a.got) != 2 {
		t.Errorf("with a station off: %q, %q", a.got, b.got)
	}
	b.s.Switch(true)
	p.Detach(a.s)
	arrive(&p, w, x.e, x.to(a), "gone....")
	arrive(&p, w, x.e, x.to(b), "here....")
	if len(a.got) != 2 || len(b.got) != 2 {
		t.Errorf("with a station gone: %q, %q", a.got, b.got)
	}
}

// TestReceive_ByTraffic: of the frames to one MAC, RoCE goes to the RDMA function and everything else to the Ethernet
// function.
func TestReceive_ByTraffic(t *testing.T) {
	var p, far Port
	w := &Wire{}
	rdma := stationOn(t, &p, w, 1, 0)
	net := &frames{}
	p.Attach(net, Station{MAC: rdma.s.MAC, Kind: Ethernet}).Plug(w, netip.Addr{}, nil)
	x := stationOn(t, &far, &Wire{}, 9, 0)
	arrive(&p, w, x.e, x.to(rdma), "roce")
	tcp := append((&eth.Ethernet{Dst: rdma.s.MAC, Type: eth.TypeIPv4}).Append(nil), make([]byte, 40)...)
	eth.IPv4(tcp[eth.EthernetLen:]).Encode(0, 40, 0, 64, 6, [4]byte{192, 0, 2, 9}, [4]byte{192, 0, 2, 1})
	arp := append((&eth.Ethernet{Dst: rdma.s.MAC, Type: eth.TypeARP}).Append(nil), make([]byte, 28)...)
	p.Receive(0, w, []frame.In{{Data: tcp, Raw: true}, {Data: arp, Raw: true}})
	if len(rdma.got) != 1 || net.got != 2 {
		t.Errorf("RDMA has %q, Ethernet %d frames; want 1 and 2", rdma.got, net.got)
	}
}

// TestReceive_OtherUDPPort: a station whose RoCE v2 has another UDP port takes packets to that one, and those to the usual
// port go to the Ethernet function.
func TestReceive_OtherUDPPort(t *testing.T) {
	var p, far Port
	w := &Wire{}
	x := stationOn(t, &far, &Wire{}, 9, 0)
	rdma := stationOn(t, &p, w, 1, 0)
	rdma.s.UDPPort = 1021
	var err error
	rdma.e, err = encap.New(encap.RoCEv2, []netip.Addr{rdma.addr}, link.Capabilities{Raw: true, MaxSegments: 1, MTU: 1500}, 1021)
	if err != nil {
		t.Fatal(err)
	}
	rdma.s.Reframe(w, rdma.e)
	net := &frames{}
	p.Attach(net, Station{MAC: rdma.s.MAC, Kind: Ethernet, UDPPort: 1021}).Plug(w, netip.Addr{}, nil)
	r := x.to(rdma)
	r.DstPort = 1021
	arrive(&p, w, x.e, r, "1021")
	arrive(&p, w, x.e, x.to(rdma), "4791")
	if len(rdma.got) != 1 || rdma.got[0] != "1021" || net.got != 1 {
		t.Errorf("RDMA has %q, Ethernet %d frames; want that to port 1021, and 1", rdma.got, net.got)
	}
}

// frames counts what it receives.
type frames struct {
	queues
	got int
}

func (f *frames) Receive(_ clock.Time, in []frame.In) { f.got += len(in) }

// TestTransmit_StationsOfOnePort: packets between stations of a port are delivered inside and do not leave; those to
// others leave; those to a group do both.
func TestTransmit_StationsOfOnePort(t *testing.T) {
	var p, far Port
	w := &Wire{}
	a, b := stationOn(t, &p, w, 1, 0), stationOn(t, &p, w, 2, 0)
	x := stationOn(t, &far, &Wire{}, 9, 0)
	a.s.Carried, b.s.Carried = &Carried{}, &Carried{}
	a.out[0] = []*frame.Route{a.to(b), a.to(x), a.to(b)}
	var out [8]frame.Out
	n := p.Transmit(0, out[:])
	left := 0
	for rest := out[:n]; len(rest) > 0; {
		on, k := p.Run(rest)
		if on != nil && !rest[0].Inside {
			left += k
		}
		rest = rest[k:]
	}
	if n != 3 || left != 1 || p.Deadline() != 0 {
		t.Fatalf("%d packets, %d leave, deadline %d; want 3, 1 and 0", n, left, p.Deadline())
	}
	p.Advance(0)
	if len(b.got) != 2 || len(a.got) != 0 || p.Deadline() != clock.Never {
		t.Errorf("delivered inside: %q, %q", a.got, b.got)
	}
	if c := p.Counters(); c.Turned != 2 || c.TurnedLost != 0 {
		t.Errorf("counters %+v", *c)
	}
	all := a.to(b)
	all.DstMAC = eth.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	a.out[0] = []*frame.Route{all}
	n = p.Transmit(0, out[:])
	if on, _ := p.Run(out[:n]); n != 1 || on == nil || out[0].Inside {
		t.Error("a broadcast does not leave")
	}
	p.Advance(0)
	long := uint64(out[0].Len())
	if c := a.s.Carried; c.Inside.SentFrames != 2 || c.Wire.SentFrames != 2 || c.Wire.SentBytes <= long || c.Inside.ReceivedFrames != 0 {
		t.Errorf("the sender has carried %+v", *c)
	}
	if c := b.s.Carried; c.Inside.ReceivedFrames != 3 || c.Inside.ReceivedBytes <= long || c.Wire != (FrameCounters{}) {
		t.Errorf("the receiver has carried %+v", *c)
	}
	if len(b.got) != 3 {
		t.Errorf("a broadcast is not delivered inside: %q", b.got)
	}
}

// TestTransmit_TooManyInside: packets between stations beyond what can wait are lost and counted; no memory grows.
func TestTransmit_TooManyInside(t *testing.T) {
	var p Port
	w := &Wire{}
	a, b := stationOn(t, &p, w, 1, 0), stationOn(t, &p, w, 2, 0)
	a.out[0] = many(mostTurned+50, a.to(b))
	var out [64]frame.Out
	for n := p.Transmit(0, out[:]); n > 0; n = p.Transmit(0, out[:]) {
	}
	p.Advance(0)
	if c := p.Counters(); len(b.got) != mostTurned || c.TurnedLost != 50 || len(p.turned.frames) != mostTurned {
		t.Errorf("%d delivered, %d lost", len(b.got), c.TurnedLost)
	}
	a.out[0] = many(3, a.to(b))
	p.Transmit(0, out[:])
	p.Advance(0)
	if len(b.got) != mostTurned+3 {
		t.Errorf("%d delivered afterwards, want 3", len(b.got)-mostTurned)
	}
}

// FuzzReceive: whatever arrives on a wire of several stations is delivered, dropped or counted.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add((&eth.Ethernet{Dst: eth.MAC{2, 0, 0, 0, 0, 1}, Type: eth.TypeIPv4}).Append(nil), false)
	f.Add(make([]byte, 60), true)
	f.Fuzz(func(t *testing.T, b []byte, infiniband bool) {
		var p Port
		w := &Wire{}
		stationOn(t, &p, w, 1, 0)
		stationOn(t, &p, w, 2, 5)
		w.InfiniBand = infiniband
		p.Receive(0, w, []frame.In{{Data: b, Raw: true}, {Data: b, Raw: true}})
		p.Advance(0)
	})
}
