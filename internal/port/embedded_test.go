package port

import (
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// hive is a port with an embedded switch, whose functions are cards with RDMA functions beside them.
type hive struct {
	*testing.T
	p  Port
	w  Wire
	sw *eswitch.Switch
}

// bee is one function of a hive.
type bee struct {
	*card
	rdma    *station
	mac     eth.MAC
	carried *Carried
}

func newHive(t *testing.T, cfg eswitch.Config) *hive {
	h := &hive{T: t, sw: eswitch.New(cfg)}
	h.w.Embed(h.sw)
	return h
}

// add adds a function at a port of the switch; vlan is one that it knows nothing of.
func (h *hive) add(at eswitch.Port, last byte, vlan uint16, change func(*eswitch.Function)) *bee {
	h.Helper()
	b := &bee{rdma: stationOn(h.T, &h.p, &h.w, last, vlan), mac: eth.MAC{2, 0, 0, 0, 0, last}, carried: &Carried{}}
	f := eswitch.Function{MACs: []eth.MAC{b.mac}, Link: eswitch.LinkUp, VLAN: eswitch.VLAN{Untagged: vlan == 0}}
	if vlan != 0 {
		f.VLAN.Trunk.Add(vlan)
	}
	if change != nil {
		change(&f)
	}
	if err := h.sw.Set(at, f); err != nil {
		h.Fatal(err)
	}
	b.rdma.s.At = at
	b.card, _ = cardOn(&h.p, &h.w, Station{MAC: b.mac, At: at, Tag: vlan, Carried: b.carried})
	b.head = 64
	return b
}

// from returns a frame of a function.
func (b *bee) from(dst eth.MAC, vlan uint16, t eth.EtherType, payload ...byte) []byte {
	e := eth.Ethernet{Dst: dst, Src: b.mac, Tagged: vlan != 0, TCI: vlan, Type: t}
	return append(e.Append(nil), append(payload, make([]byte, 60)...)...)
}

// sends has a function send a frame, and returns what of it leaves, as it is on the wire; empty: nothing does.
func (h *hive) sends(b *bee, f []byte) (wire string) {
	h.Helper()
	b.send = append(b.send, frame.In{Data: f})
	var out [8]frame.Out
	for n := h.p.Transmit(0, out[:]); n > 0; n = h.p.Transmit(0, out[:]) {
		for i := range out[:n] {
			if o := &out[i]; !o.Inside {
				wire += string(o.Head[o.HeadStart:o.HeadEnd]) + string(o.Payload)
			}
		}
	}
	h.p.Advance(0)
	return wire
}

// gets fails unless functions have got so many frames since the last time.
func (h *hive) gets(what string, want map[*bee]int, all ...*bee) {
	h.Helper()
	for i, b := range all {
		if len(b.in) != want[b] {
			h.Errorf("%s: function %d gets %d frames, want %d", what, i, len(b.in), want[b])
		}
		b.in = nil
	}
}

func anyVLAN(f *eswitch.Function) { f.VLAN, f.AllGroups = eswitch.AnyVLAN(), true }

// TestEmbedded_Forwards: frames between functions stay inside, those to others leave, those to groups do both; neither crosses VLANs,
// and a function of a VLAN does not see its tag.
func TestEmbedded_Forwards(t *testing.T) {
	h := newHive(t, eswitch.Config{})
	pf := h.add(eswitch.PF, 1, 0, anyVLAN)
	a, b := h.add(eswitch.VF(0), 10, 0, nil), h.add(eswitch.VF(1), 11, 0, nil)
	c, d := h.add(eswitch.VF(2), 12, 100, nil), h.add(eswitch.VF(3), 13, 100, nil)
	all := []*bee{pf, a, b, c, d}
	away := eth.MAC{2, 0, 0, 0, 0, 99}
	check := func(what, wire string, leaves string, want map[*bee]int) {
		t.Helper()
		if wire != leaves {
			t.Errorf("%s: %x leaves, want %x", what, wire, leaves)
		}
		h.gets(what, want, all...)
	}
	f := a.from(b.mac, 0, eth.TypeIPv4)
	check("to a function", h.sends(a, f), "", map[*bee]int{b: 1})
	f = a.from(away, 0, eth.TypeIPv4)
	check("to the outside", h.sends(a, f), string(f), nil)
	f = a.from(eth.Broadcast, 0, eth.TypeARP)
	check("to all", h.sends(a, f), string(f), map[*bee]int{pf: 1, b: 1})
	in := func(f []byte, vlan uint16) string {
		e, rest, _ := eth.ParseEthernet(f)
		e.Tagged, e.TCI = true, vlan
		return string(append(e.Append(nil), rest...))
	}
	f = c.from(away, 0, eth.TypeIPv4)
	check("of a VLAN to the outside", h.sends(c, f), in(f, 100), nil)
	f = c.from(d.mac, 0, eth.TypeIPv4)
	if wire := h.sends(c, f); wire != "" || len(d.in) != 1 || string(d.in[0].Data) != string(f) {
		t.Errorf("inside a VLAN %x leaves, and %v arrives", wire, d.in)
	}
	d.in = nil
	f = c.from(eth.Broadcast, 0, eth.TypeARP)
	check("to all of a VLAN", h.sends(c, f), in(f, 100), map[*bee]int{pf: 1, d: 1})
	f = c.from(b.mac, 0, eth.TypeIPv4)
	check("to a function in none", h.sends(c, f), in(f, 100), nil)
	check("of a VLAN with a tag of its own", h.sends(c, c.from(d.mac, 7, eth.TypeIPv4)), "", nil)
	check("without a VLAN with a tag of its own", h.sends(a, a.from(c.mac, 100, eth.TypeIPv4)), "", nil)
	if n := h.sw.Counters(eswitch.VF(0)).Dropped[eswitch.WrongVLAN] + h.sw.Counters(eswitch.VF(2)).Dropped[eswitch.WrongVLAN]; n != 2 {
		t.Errorf("%d frames with wrong tags are counted, want 2", n)
	}
	receive := func(f []byte) { h.p.Receive(0, &h.w, []frame.In{{Data: f, Raw: true}}) }
	receive(ethernetTo(a.mac, 0, 46))
	receive(ethernetTo(c.mac, 100, 46))
	receive(ethernetTo(a.mac, 100, 46)) // not in its VLAN
	receive(ethernetTo(eth.Broadcast, 100, 46))
	if len(c.in) != 2 || len(c.in[0].Data) != eth.EthernetLen+46 {
		t.Errorf("from the wire a function of a VLAN gets %d frames", len(c.in))
	}
	h.gets("from the wire", map[*bee]int{pf: 1, a: 1, c: 2, d: 1}, all...)
}

// TestEmbedded_Spoof: what a virtual function sends with another's MAC, or of a type that it may not send, reaches nobody and is not
// counted as sent; the physical function may send both.
func TestEmbedded_Spoof(t *testing.T) {
	h := newHive(t, eswitch.Config{})
	pf, a, b := h.add(eswitch.PF, 1, 0, anyVLAN), h.add(eswitch.VF(0), 10, 0, nil), h.add(eswitch.VF(1), 11, 0, nil)
	spoofed := a.from(b.mac, 0, eth.TypeIPv4)
	spoofed[11] = 77
	lldp := a.from(b.mac, 0, 0x88cc)
	self := a.from(a.mac, 0, eth.TypeIPv4)
	self[11] = 77
	for _, f := range [][]byte{spoofed, lldp, self, a.from(eth.MAC{1, 0x80, 0xc2, 0, 0, 1}, 0, eth.TypeMACControl)} {
		if wire := h.sends(a, f); wire != "" {
			t.Errorf("%x leaves", wire)
		}
	}
	h.gets("spoofed", nil, pf, a, b)
	c := h.sw.Counters(eswitch.VF(0))
	if c.Dropped[eswitch.SourceMAC] != 2 || c.Dropped[eswitch.EtherType] != 2 ||
		a.carried.Wire.SentFrames+a.carried.Inside.SentFrames != 0 {
		t.Errorf("counted are %v, and %+v as sent", c.Dropped, a.carried)
	}
	h.sends(pf, spoofed)
	h.sends(pf, lldp)
	h.gets("the physical function's", map[*bee]int{b: 2}, pf, a, b)
	if n := len(h.sw.Reports(nil)); n != 2 {
		t.Errorf("%d reports, want one of each kind", n)
	}
}

// TestEmbedded_DHCP: DHCP of virtual functions, from and to them, reaches the physical one alone, if it sees all or the frame is for all,
// also if the frame's headers are in pieces.
func TestEmbedded_DHCP(t *testing.T) {
	h := newHive(t, eswitch.Config{RedirectDHCP: true})
	pf := h.add(eswitch.PF, 1, 0, func(f *eswitch.Function) { anyVLAN(f); f.Promiscuous = true })
	a, b := h.add(eswitch.VF(0), 10, 0, nil), h.add(eswitch.VF(1), 11, 0, nil)
	dhcp := func(from *bee, dst eth.MAC, port uint16) []byte {
		p := make([]byte, eth.IPv4Len+eth.UDPLen)
		eth.IPv4(p).Encode(0, len(p), 1, 64, eth.ProtocolUDP, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2})
		eth.UDP(p[eth.IPv4Len:]).Encode(port, port, eth.UDPLen)
		return from.from(dst, 0, eth.TypeIPv4, p...)
	}
	for _, f := range [][]byte{dhcp(a, eth.Broadcast, 68), dhcp(a, b.mac, 67)} {
		if wire := h.sends(a, f); wire != "" {
			t.Errorf("DHCP leaves: %x", wire)
		}
		h.gets("DHCP of a function", map[*bee]int{pf: 1}, pf, a, b)
	}
	h.sends(a, dhcp(a, b.mac, 53))
	h.gets("other UDP", map[*bee]int{pf: 1, b: 1}, pf, a, b) // the physical function sees all
	h.p.Receive(0, &h.w, []frame.In{{Data: dhcp(&bee{mac: eth.MAC{2, 9}}, a.mac, 68), Raw: true}})
	h.gets("an answer from the wire", map[*bee]int{pf: 1}, pf, a, b)
	h.sends(pf, dhcp(pf, a.mac, 68))
	h.gets("the physical function's answer", map[*bee]int{a: 1}, pf, a, b)
}

// TestEmbedded_RDMA: RoCE goes between RDMA functions of one VLAN, to the outside and from there; a run of packets arrives whole and
// in order.
func TestEmbedded_RDMA(t *testing.T) {
	h := newHive(t, eswitch.Config{})
	h.add(eswitch.PF, 1, 0, anyVLAN)
	a, b, c := h.add(eswitch.VF(0), 10, 0, nil), h.add(eswitch.VF(1), 11, 0, nil), h.add(eswitch.VF(2), 12, 100, nil)
	var out [16]frame.Out
	send := func(x *bee, r *frame.Route, n int) (left int) {
		x.rdma.out[0] = many(n, r)
		for n := h.p.Transmit(0, out[:]); n > 0; n = h.p.Transmit(0, out[:]) {
			for i := range out[:n] {
				if !out[i].Inside {
					left++
				}
			}
		}
		h.p.Advance(0)
		return left
	}
	if left := send(a, a.rdma.to(b.rdma), 100); left != 0 || len(b.rdma.got) != 100 {
		t.Errorf("%d packets leave and %d arrive, want 0 and 100", left, len(b.rdma.got))
	}
	away := a.rdma.to(b.rdma)
	away.DstMAC[5] = 99
	if left := send(a, away, 10); left != 10 {
		t.Errorf("%d packets leave, want 10", left)
	}
	r := a.rdma.to(c.rdma) // its own, tagged as the other's
	if left := send(a, r, 3); left != 0 || len(c.rdma.got) != 0 {
		t.Errorf("in another's VLAN %d packets leave and %d arrive", left, len(c.rdma.got))
	}
	arrive(&h.p, &h.w, a.rdma.e, a.rdma.to(b.rdma), "from outside")
	arrive(&h.p, &h.w, a.rdma.e, a.rdma.to(c.rdma), "from outside")
	if len(b.rdma.got) != 101 || len(c.rdma.got) != 1 || len(b.in)+len(c.in) != 0 {
		t.Errorf("%d and %d packets arrive from the wire, want 1 and 1", len(b.rdma.got)-100, len(c.rdma.got))
	}
}

// TestEmbedded_TakesLarge: a frame is not cut if its way is inside, by VLAN and all.
func TestEmbedded_TakesLarge(t *testing.T) {
	h := newHive(t, eswitch.Config{})
	h.add(eswitch.PF, 1, 0, anyVLAN)
	a, c, d := h.add(eswitch.VF(0), 10, 0, nil), h.add(eswitch.VF(1), 12, 100, nil), h.add(eswitch.VF(2), 13, 100, nil)
	pf := h.w.place(h.p.stations[1]).station
	of := func(b *bee) *Station {
		for _, s := range h.p.stations {
			if s.Kind == Ethernet && s.MAC == b.mac {
				return s
			}
		}
		return nil
	}
	for i, x := range []struct {
		s    *Station
		to   eth.MAC
		vlan uint16
		want bool
	}{{pf, a.mac, 0, true}, {pf, c.mac, 0, false}, {pf, c.mac, 100, true}, {of(a), c.mac, 0, false}, {of(c), d.mac, 0, true},
		{of(c), a.mac, 0, false}} {
		if got := x.s.TakesLarge(x.to, x.vlan); got != x.want {
			t.Errorf("case %d: %v, want %v", i, got, x.want)
		}
	}
}

// TestEmbed_Nil: without the switch the port works as one that never had it.
func TestEmbed_Nil(t *testing.T) {
	h := newHive(t, eswitch.Config{})
	a, b := h.add(eswitch.VF(0), 10, 0, nil), h.add(eswitch.VF(1), 11, 0, nil)
	h.w.Embed(nil)
	h.sends(a, a.from(b.mac, 0, 0x88cc))
	h.gets("without a switch", map[*bee]int{b: 1}, a, b)
}

// BenchmarkTurned: packets from one RDMA function of a port to another, with and without an embedded switch.
func BenchmarkTurned(b *testing.B) {
	for _, embed := range []bool{false, true} {
		name := "plain"
		if embed {
			name = "embedded"
		}
		b.Run(name, func(b *testing.B) { benchmarkTurned(b, embed) })
	}
}

func benchmarkTurned(b *testing.B, embed bool) {
	const batch = 32
	var p Port
	var w Wire
	t := &testing.T{}
	from, to := stationOn(t, &p, &w, 1, 0), stationOn(t, &p, &w, 2, 0)
	if embed {
		sw := eswitch.New(eswitch.Config{})
		for i, x := range []*station{from, to} {
			if err := sw.Set(eswitch.VF(i), eswitch.Function{MACs: []eth.MAC{x.s.MAC}, VLAN: eswitch.VLAN{Untagged: true}}); err != nil {
				b.Fatal(err)
			}
			x.s.At = eswitch.VF(i)
		}
		w.Embed(sw)
	}
	from.due, to.due = clock.Never, clock.Never
	routes := many(batch, from.to(to))
	var out [batch]frame.Out
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		from.out[0] = routes
		n += p.Transmit(0, out[:])
		p.Advance(0)
		to.got = to.got[:0]
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "packets/s")
}
