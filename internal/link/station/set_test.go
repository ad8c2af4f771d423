package station

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/neighbour"
	"github.com/softvpi/softvpi/wire/eth"
)

// bed is a set whose wire is a list, in virtual time.
type bed struct {
	*Set
	t    *testing.T
	at   clock.Time
	due  clock.Time
	wire [][]byte
}

func newBed(t *testing.T, cfg Config, stations ...link.Station) *bed {
	t.Helper()
	b := &bed{t: t, due: clock.Never}
	cfg.Name, cfg.MTU = "test link", 1500
	cfg.Wire = func(f []byte) { b.wire = append(b.wire, bytes.Clone(f)) }
	cfg.Arm = func(after time.Duration) {
		if b.due = clock.Never; after >= 0 {
			b.due = b.at.Add(after)
		}
	}
	cfg.Now = func() clock.Time { return b.at }
	b.Set = New(cfg)
	for _, s := range stations {
		if err := b.SetStation(s); err != nil {
			t.Fatal(err)
		}
	}
	b.wire = nil // announcements
	return b
}

// sent takes the frames on the wire.
func (b *bed) sent() [][]byte {
	w := b.wire
	b.wire = nil
	return w
}

// prepared returns a route that the set accepts.
func (b *bed) prepared(src, dst string) *frame.Route {
	b.t.Helper()
	r := &frame.Route{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst)}
	if err := b.Prepare(r); err != nil {
		b.t.Fatal(err)
	}
	return r
}

// packet is a frame for a route as encap seals it, of n bytes.
func packet(r *frame.Route, n int) *frame.Out {
	o := &frame.Out{}
	o.Reset(r)
	h := eth.Ethernet{Dst: r.DstMAC, Src: r.SrcMAC, Tagged: r.VLAN != 0, TCI: r.VLAN, Type: eth.TypeIPv4}
	o.HeadStart = uint16(frame.HeadRoom - h.Len())
	h.Put(o.Head[o.HeadStart:])
	o.HeadEnd = frame.HeadRoom + 12
	o.Payload = make([]byte, n-o.Len())
	return o
}

func at(mac byte, vlan uint16, prefixes ...string) link.Station {
	s := link.Station{MAC: eth.MAC{2, 0, 0, 0, 0, mac}, VLAN: vlan}
	for _, p := range prefixes {
		s.Prefixes = append(s.Prefixes, netip.MustParsePrefix(p))
	}
	return s
}

func mac(n byte) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, n} }

// carry gives each set what the other has sent, until there is nothing.
func carry(a, b *bed) {
	for len(a.wire)+len(b.wire) > 0 {
		for _, f := range a.sent() {
			b.Wants(f)
		}
		for _, f := range b.sent() {
			a.Wants(f)
		}
	}
}

// TestPrepare_FillsRoute: SrcMAC and VLAN are those of the station with the source address, and DstMAC comes with the
// neighbour's answer; what was sent before goes out then, in order.
func TestPrepare_FillsRoute(t *testing.T) {
	for _, c := range []struct{ a, b, src, dst string }{
		{"10.0.0.1/24", "10.0.0.2/24", "10.0.0.1", "10.0.0.2"}, {"fd00::1/64", "fd00::2/64", "fd00::1", "fd00::2"},
	} {
		for _, vlan := range []uint16{0, 100} {
			a, b := newBed(t, Config{}, at(9, 0, "10.9.0.1/24"), at(1, vlan, c.a)), newBed(t, Config{}, at(2, vlan, c.b))
			r := a.prepared(c.src, c.dst)
			if r.SrcMAC != mac(1) || r.VLAN != vlan || r.DstMAC != (eth.MAC{}) || r.SrcPort == 0 || r.DstPort != 4791 {
				t.Fatalf("%+v", r)
			}
			for n := range 2 {
				if a.admit(packet(r, 100+n)) {
					t.Fatal("a frame to an unknown neighbour goes out")
				}
			}
			question := a.sent()
			if len(question) != 1 {
				t.Fatalf("%d questions", len(question))
			}
			b.Wants(question[0])
			for _, f := range b.sent() {
				if a.Wants(f) {
					t.Error("the answer is handed up")
				}
			}
			out := a.sent()
			if len(out) != 2 || len(out[0]) != 100 || len(out[1]) != 101 || eth.MAC(out[0]) != mac(2) {
				t.Fatalf("%d frames go out after the answer", len(out))
			}
			old := packet(r, 64)
			copy(old.Head[old.HeadStart:], make([]byte, 6)) // sealed before the answer
			if r.DstMAC != mac(2) || !a.admit(old) || eth.MAC(old.Head[old.HeadStart:]) != mac(2) {
				t.Errorf("%+v: frames are not for the neighbour", r)
			}
			if s := a.Stats(); s.SentPackets != 2 || s.SentBytes != 201 || s.SendErrors != 0 {
				t.Errorf("%+v", s)
			}
		}
	}
}

// TestPrepare_Gateway: what is in no network of the link goes to the gateway of its family, and without one there is no
// route.
func TestPrepare_Gateway(t *testing.T) {
	s := at(1, 0, "10.0.0.1/24", "fd00::1/64")
	s.Gateways = []netip.Addr{netip.MustParseAddr("10.0.0.2")}
	a, b := newBed(t, Config{}, s), newBed(t, Config{}, at(2, 0, "10.0.0.2/24"))
	r := a.prepared("10.0.0.1", "192.0.2.1")
	carry(a, b)
	if r.DstMAC != mac(2) {
		t.Errorf("%v, want the gateway's", eth.MAC(r.DstMAC))
	}
	far := &frame.Route{Src: netip.MustParseAddr("fd00::1"), Dst: netip.MustParseAddr("2001:db8::1")}
	if err := a.Prepare(far); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("%v, want no route", err)
	}
	if r := a.prepared("fd00::1", "fe80::2"); r.DstMAC != (eth.MAC{}) { // link-local needs no route
		t.Errorf("%v", r)
	}
}

// TestPrepare_Group: groups have MACs of their own (RFC 1112, RFC 2464).
func TestPrepare_Group(t *testing.T) {
	a := newBed(t, Config{}, at(1, 7, "10.0.0.1/24", "fd00::1/64"))
	for dst, want := range map[string]string{"239.1.2.3": "01:00:5e:01:02:03", "ff15::77": "33:33:00:00:00:77"} {
		r := &frame.Route{Dst: netip.MustParseAddr(dst)}
		if err := a.Prepare(r); err != nil || eth.MAC(r.DstMAC).String() != want || r.VLAN != 7 || r.SrcMAC != mac(1) {
			t.Errorf("%s: %+v, %v", dst, r, err)
		}
		if !a.admit(packet(r, 100)) {
			t.Errorf("%s: is not sent", dst)
		}
	}
	if len(a.sent()) != 0 {
		t.Error("a group is asked for")
	}
}

// TestPrepare_Refused: typed errors name the field.
func TestPrepare_Refused(t *testing.T) {
	a := newBed(t, Config{}, at(1, 0, "10.0.0.1/24"))
	for field, r := range map[string]*frame.Route{
		"destination": {Src: netip.MustParseAddr("10.0.0.1")}, "source": {Src: netip.MustParseAddr("10.0.0.9"),
			Dst: netip.MustParseAddr("10.0.0.2")},
	} {
		var e *FieldError
		if err := a.Prepare(r); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%v, want an error about %s", err, field)
		}
	}
}

// TestSetStation_Refused: what no station can be is refused, and leaves the others as they are.
func TestSetStation_Refused(t *testing.T) {
	a := newBed(t, Config{}, at(1, 0, "10.0.0.1/24"))
	long := at(2, 0)
	long.Prefixes = make([]netip.Prefix, mostAddresses+1)
	router := at(2, 0)
	router.Gateways = []netip.Addr{netip.MustParseAddr("224.0.0.1")}
	for field, stations := range map[string][]link.Station{
		"MAC": {{}, {MAC: eth.Broadcast}}, "VLAN": {at(2, 4095)}, "Gateways": {router},
		"Prefixes": {at(2, 0, "10.0.0.1/24"), at(2, 0, "0.0.0.0/0"), at(2, 0, "224.0.0.1/32"), {MAC: mac(2),
			Prefixes: make([]netip.Prefix, 1)}, long},
	} {
		for _, s := range stations {
			var e *FieldError
			if err := a.SetStation(s); !errors.As(err, &e) || e.Field != field {
				t.Errorf("%v, want an error about %s", err, field)
			}
		}
	}
	if err := a.SetStation(at(2, 5, "10.0.0.1/24")); err != nil {
		t.Errorf("the same address in another VLAN: %v", err)
	}
	if err := a.RemoveStation(mac(3), 0); err == nil {
		t.Error("a station that is none is removed")
	}
}

// TestWants_ByMACAndVLAN: frames for a station, broadcasts in a VLAN with a station, and those to joined groups are handed
// up, and no others, except by a promiscuous link.
func TestWants_ByMACAndVLAN(t *testing.T) {
	group := netip.MustParseAddr("239.1.2.3")
	groupMAC, _ := eth.MulticastMAC(group)
	for _, promiscuous := range []bool{false, true} {
		a := newBed(t, Config{Promiscuous: promiscuous}, at(1, 0, "10.0.0.1/24"), at(2, 7, "10.0.0.2/24"))
		if err := a.Join(group); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			to   eth.MAC
			vlan uint16
			want bool
		}{
			{mac(1), 0, true}, {mac(2), 7, true}, {mac(1), 7, false}, {mac(2), 0, false}, {mac(3), 0, false}, {mac(1), 3 << 13, true},
			{eth.Broadcast, 0, true}, {eth.Broadcast, 7, true}, {eth.Broadcast, 8, false}, {groupMAC, 7, true},
			{eth.MAC{1, 0, 0x5e, 9, 9, 9}, 7, false},
		} {
			h := eth.Ethernet{Dst: c.to, Src: mac(9), Tagged: c.vlan != 0, TCI: c.vlan, Type: eth.TypeIPv4}
			if got := a.Wants(append(h.Append(nil), make([]byte, 50)...)); got != (c.want || promiscuous) {
				t.Errorf("promiscuous %v: a frame to %v in VLAN %d: %v", promiscuous, c.to, c.vlan, got)
			}
		}
		if a.Wants(make([]byte, 13)) {
			t.Error("less than a header is handed up")
		}
		if err := a.Leave(group); err != nil || a.Leave(group) == nil {
			t.Error("a group is left as often as it was joined")
		}
		h := eth.Ethernet{Dst: groupMAC, Src: mac(9), Type: eth.TypeIPv4}
		if a.Wants(h.Append(nil)) != promiscuous {
			t.Error("a group that was left is handed up")
		}
	}
}

// TestAdmit_NobodyAnswers: what waits is bounded, is lost after three questions, and is reported as an unreachable host;
// what is sent later asks again.
func TestAdmit_NobodyAnswers(t *testing.T) {
	a := newBed(t, Config{}, at(1, 0, "10.0.0.1/24"))
	r := a.prepared("10.0.0.1", "10.0.0.2")
	for range 10 {
		a.admit(packet(r, 100))
	}
	if s := a.Stats(); s.SendErrors != 10-heldEach {
		t.Errorf("%d of 10 are lost while there is no answer, want all but %d", s.SendErrors, heldEach)
	}
	for a.due != clock.Never {
		a.at = a.due
		a.Tend(false)
	}
	if n := len(a.sent()); n != 3 {
		t.Errorf("%d questions, want 3", n)
	}
	out := make([]link.Unreachable, 4)
	if n := a.Errors(out); n != 1 || out[0] != (link.Unreachable{Dst: r.Dst, Kind: link.HostUnreachable}) {
		t.Errorf("reported: %+v", out[:n])
	}
	if s := a.Stats(); s.SendErrors != 10 || s.SentPackets != 0 || a.held != 0 {
		t.Errorf("%+v, %d held", s, a.held)
	}
	if a.admit(packet(r, 100)); len(a.sent()) != 1 {
		t.Error("the next frame does not ask again")
	}
}

// TestAdmit_NeighbourInUseIsKept: a route that is used stays usable, though its neighbour has to answer for that.
func TestAdmit_NeighbourInUseIsKept(t *testing.T) {
	a, b := newBed(t, Config{}, at(1, 0, "10.0.0.1/24")), newBed(t, Config{}, at(2, 0, "10.0.0.2/24"))
	r := a.prepared("10.0.0.1", "10.0.0.2")
	carry(a, b)
	for range 600 {
		a.at += clock.Time(500 * time.Millisecond)
		b.at = a.at
		if !a.admit(packet(r, 100)) {
			t.Fatalf("after %v frames are not sent", time.Duration(a.at))
		}
		a.Tend(false)
		carry(a, b)
	}
	if n := a.Counters().Asked; n < 5 {
		t.Errorf("%d questions in five minutes: it was not made sure that the neighbour is there", n)
	}
	// It is gone: frames go nowhere as soon as that is known.
	for range 200 {
		a.at += clock.Time(500 * time.Millisecond)
		a.admit(packet(r, 100))
		a.Tend(false)
		a.sent()
	}
	if a.admit(packet(r, 100)) {
		t.Error("frames still go to a neighbour that is gone")
	}
}

// TestAdmit_TooLong: a frame longer than the MTU is lost and reported with the MTU.
func TestAdmit_TooLong(t *testing.T) {
	a := newBed(t, Config{}, at(1, 0, "10.0.0.1/24"))
	r := a.prepared("10.0.0.1", "239.0.0.1")
	if !a.admit(packet(r, 1514)) || a.admit(packet(r, 1519)) {
		t.Error("1514 bytes go and 1519 do not")
	}
	out := make([]link.Unreachable, 4)
	if n := a.Errors(out); n != 1 || out[0].Kind != link.PacketTooBig || out[0].MTU != 1500 {
		t.Errorf("reported: %+v", out[:n])
	}
}

// TestLooped_WakesSleepers: a frame between stations sets the timer for now, whose descriptor wakes who sleeps on the link's;
// once Tend has been called, the timer is set for what is due otherwise, as before.
func TestLooped_WakesSleepers(t *testing.T) {
	a := newBed(t, Config{}, at(1, 0, "10.0.0.1/24"), at(2, 0, "10.0.0.2/24"))
	r := a.prepared("10.0.0.1", "10.0.0.2")
	before := a.due
	for n := range 3 {
		a.due = clock.Never
		a.admit(packet(r, 64))
		if woken := a.due == a.at; woken != (n == 0) {
			t.Errorf("frame %d: the timer is set for %v at %v", n, a.due, a.at)
		}
	}
	a.Tend(false)
	if a.due != before {
		t.Errorf("the timer is set for %v, want %v as before", a.due, before)
	}
}

// TestLooped_BetweenStations: frames from a station to another of the same link and VLAN reach it, and nobody is asked.
func TestLooped_BetweenStations(t *testing.T) {
	a := newBed(t, Config{}, at(1, 0, "10.0.0.1/24"), at(2, 0, "10.0.0.2/24"), at(3, 5, "10.0.0.3/24"))
	r := a.prepared("10.0.0.1", "10.0.0.2")
	in := make([]frame.In, 300)
	for range 2 {
		for n := range loopSlots + 10 {
			if a.admit(packet(r, 64+n)) {
				t.Fatal("the frame goes out")
			}
		}
		if n := a.Looped(in); n != loopSlots || len(in[0].Data) != 64 || len(in[9].Data) != 73 || eth.MAC(in[9].Data) != mac(2) ||
			!in[0].Raw || !a.Wants(in[0].Data) {
			t.Fatalf("%d frames of %d bytes come back", n, len(in[0].Data))
		}
		if n := a.Looped(in); n != 0 { // which gives back what was handed out
			t.Fatalf("%d frames come back twice", n)
		}
	}
	if s := a.Stats(); s.ReceiveDrops != 20 || s.SentPackets != 2*loopSlots || len(a.sent()) != 0 {
		t.Errorf("%+v", s)
	}
	a.prepared("10.0.0.1", "10.0.0.3") // of another VLAN: it is looked for on the wire
	if len(a.sent()) != 1 {
		t.Error("a station of another VLAN is taken for a neighbour")
	}
}

// TestRemoveStation_RoutesFromItEnd: nothing leaves for a station that is gone, and the others' routes stay.
func TestRemoveStation_RoutesFromItEnd(t *testing.T) {
	a, b := newBed(t, Config{}, at(1, 0, "10.0.0.1/24"), at(3, 0, "10.0.0.3/24")), newBed(t, Config{}, at(2, 0, "10.0.0.2/24"))
	r, group, other := a.prepared("10.0.0.1", "10.0.0.2"), a.prepared("10.0.0.1", "239.0.0.1"), a.prepared("10.0.0.3", "10.0.0.2")
	carry(a, b)
	if err := a.RemoveStation(mac(1), 0); err != nil {
		t.Fatal(err)
	}
	if a.admit(packet(r, 100)) || a.admit(packet(group, 100)) {
		t.Error("a station that is gone sends")
	}
	for _, r := range []*frame.Route{r, group, other} {
		r.DstMAC = mac(2)
	}
	for range 2 { // the question was on behalf of the one that is gone, or not
		a.admit(packet(other, 100))
		carry(a, b)
	}
	if !a.admit(packet(other, 100)) {
		t.Error("the route of another station ends too")
	}
	h := eth.Ethernet{Dst: mac(1), Src: mac(2), Type: eth.TypeIPv4}
	if a.Wants(append(h.Append(nil), make([]byte, 50)...)) {
		t.Error("frames for it are handed up")
	}
	for _, r := range []*frame.Route{r, group, other} {
		r.Release()
	}
	if len(a.hops) != 0 {
		t.Errorf("%d neighbours are kept without routes", len(a.hops))
	}
}

// TestResolve: it ends when the neighbour is known, and at the end of its time otherwise.
func TestResolve(t *testing.T) {
	a, b := newBed(t, Config{}, at(1, 0, "10.0.0.1/24")), newBed(t, Config{}, at(2, 0, "10.0.0.2/24"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := a.Resolve(ctx, netip.MustParseAddr("10.0.0.2")); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("%v, want ETIMEDOUT", err)
	}
	carry(a, b)
	if err := a.Resolve(ctx, netip.MustParseAddr("10.0.0.2")); err != nil {
		t.Error(err)
	}
	if err := a.Resolve(ctx, netip.MustParseAddr("192.0.2.1")); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("%v, want no route", err)
	}
	if err := a.Resolve(ctx, netip.MustParseAddr("10.0.0.1")); err != nil {
		t.Errorf("an address of the link's own: %v", err)
	}
}

// stack is a system with one address, that knows its neighbours by itself.
type stack struct {
	owns  netip.Addr
	macs  map[netip.Addr]eth.MAC
	able  bool
	asked int
}

func (s *stack) Owns(key neighbour.Key) bool { return key.Addr == s.owns }
func (s *stack) Route(_ neighbour.Key, dst netip.Addr) (netip.Addr, error) {
	return dst, nil
}
func (s *stack) Find(key neighbour.Key, _ netip.Addr) (m eth.MAC, known, able bool) {
	s.asked++
	m, known = s.macs[key.Addr]
	return m, known, s.able
}

// TestSystem_AnswersForItsAddresses: an address of the system is not answered for, its neighbours are the system's, and
// those of the link's own addresses are not.
func TestSystem_AnswersForItsAddresses(t *testing.T) {
	sys := &stack{owns: netip.MustParseAddr("10.0.0.1"), macs: map[netip.Addr]eth.MAC{}, able: true}
	a, b := newBed(t, Config{System: sys}, at(1, 0, "10.0.0.1/24"), at(3, 0, "10.0.0.3/24")), newBed(t, Config{}, at(2, 0, "10.0.0.2/24"))
	b.prepared("10.0.0.2", "10.0.0.1")
	b.prepared("10.0.0.2", "10.0.0.3")
	for _, f := range b.sent() {
		a.Wants(f)
	}
	if n := len(a.sent()); n != 1 {
		t.Errorf("%d answers for an address of the system and one that is not", n)
	}
	r := a.prepared("10.0.0.1", "10.0.0.2")
	if a.admit(packet(r, 100)) || len(a.sent()) != 0 || sys.asked == 0 {
		t.Error("the system is not asked")
	}
	sys.macs[r.Dst] = mac(2)
	a.Tend(true)
	if len(a.sent()) != 1 || r.DstMAC != mac(2) || !a.admit(packet(r, 100)) {
		t.Error("what the system has found is not used")
	}
	delete(sys.macs, r.Dst)
	a.Tend(true)
	a.admit(packet(r, 100))
	a.at += clock.Time(patience)
	a.Tend(false)
	if s := a.Stats(); s.SendErrors != 1 || len(a.sent()) != 0 {
		t.Errorf("a neighbour that the system lost: %+v", s)
	}
}

// TestSystem_Unable: if the system will not look for neighbours, as without the right to change its table, the link does.
func TestSystem_Unable(t *testing.T) {
	sys := &stack{owns: netip.MustParseAddr("10.0.0.1")}
	a, b := newBed(t, Config{System: sys}, at(1, 0, "10.0.0.1/24")), newBed(t, Config{}, at(2, 0, "10.0.0.2/24"))
	r := a.prepared("10.0.0.1", "10.0.0.2")
	carry(a, b)
	if r.DstMAC != mac(2) || !a.admit(packet(r, 100)) {
		t.Errorf("%+v", r)
	}
}

// TestAdmit_NoAllocation: sending to known neighbours and receiving allocates nothing.
func TestAdmit_NoAllocation(t *testing.T) {
	a, b := newBed(t, Config{}, at(1, 0, "10.0.0.1/24")), newBed(t, Config{}, at(2, 0, "10.0.0.2/24"))
	r := a.prepared("10.0.0.1", "10.0.0.2")
	carry(a, b)
	o := packet(r, 1000)
	f := appendFrame(nil, o)
	if n := testing.AllocsPerRun(100, func() { a.admit(o); b.Wants(f); a.Tend(false) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
