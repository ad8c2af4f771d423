package eswitch

import (
	"maps"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

// TestProtection: which types virtual functions may send, by the keys.
func TestProtection(t *testing.T) {
	const fcoe, fip, lldp, pause = 0x8906, 0x8914, 0x88cc, 0x8808
	full := []eth.EtherType{1536, 1537, 1538, 1539, 1540, 1541, 1542, fip}
	for name, c := range map[string]struct {
		on      bool
		list    []eth.EtherType
		yes, no []eth.EtherType
	}{
		"default table":             {true, nil, []eth.EtherType{0x800, 0x806, 0x86dd}, []eth.EtherType{lldp, pause, 0x8100, 0x88a8, 100, 0, fcoe}},
		"one entry replaces it":     {true, []eth.EtherType{lldp}, []eth.EtherType{lldp}, []eth.EtherType{0x800, 0x806, 0x86dd, pause}},
		"pauses cannot be listed":   {true, []eth.EtherType{pause, 0x800}, []eth.EtherType{0x800}, []eth.EtherType{pause}},
		"FCoE allows its other":     {true, []eth.EtherType{fcoe}, []eth.EtherType{fcoe, fip}, []eth.EtherType{0x800}},
		"and the other way around":  {true, full, full[:8:8], []eth.EtherType{0x800, 1543}},
		"with eight entries, FCoE":  {true, full, []eth.EtherType{fcoe, fip}, nil},
		"LLC by an entry of 0":      {true, []eth.EtherType{LLC, 0x800}, []eth.EtherType{0, 3, 1500, 0x5ff, 0x800}, []eth.EtherType{0x600, 0x806}},
		"off leaves pauses refused": {false, []eth.EtherType{0x800}, []eth.EtherType{0x800, lldp, 5, 0x8100, fcoe}, []eth.EtherType{pause}},
	} {
		p, err := NewProtection(c.on, c.list)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, y := range c.yes {
			if !p.Allows(y) {
				t.Errorf("%s: 0x%04x is refused", name, y)
			}
		}
		for _, n := range c.no {
			if p.Allows(n) {
				t.Errorf("%s: 0x%04x is allowed", name, n)
			}
		}
	}
	if (&Protection{}).Allows(lldp) || !(&Protection{}).Allows(0x800) {
		t.Error("the zero value is not the default")
	}
	if _, err := NewProtection(true, make([]eth.EtherType, 9)); err == nil || !strings.Contains(err.Error(), "at most 8") {
		t.Errorf("nine entries: %v", err)
	}
}

// TestReports: what is to be logged is one report for each function and rule, however many frames there were, and each frame once.
func TestReports(t *testing.T) {
	s := house(t, Config{})
	for range 1000 {
		got(s, VF(0), bare(mac(1), mac(66), ip))
	}
	got(s, VF(1), bare(mac(1), mac(11), 0x88cc))
	want := []string{
		"VF 0 sent 1000 frames from an address that is not its own, the last from 02:00:00:00:00:42: they were dropped",
		"VF 1 sent 1 frames of an EtherType that is not allowed, the last 0x88cc: they were dropped",
	}
	list := s.Reports(nil)
	if len(list) != 2 || list[0].String() != want[0] || list[1].String() != want[1] {
		t.Errorf("%v", list)
	}
	if again := s.Reports(nil); len(again) != 0 {
		t.Errorf("again: %v", again)
	}
	if VPort(3).String() != "vPort 3" || Wire.String() != "wire" || PF.String() != "PF" {
		t.Error("other ports have other names")
	}
}

// TestRedirect: DHCP that virtual functions send or should get goes to the PF, if it hears it, and what the PF sends to them.
func TestRedirect(t *testing.T) {
	request := bare(eth.Broadcast, mac(10), ip, datagram(68, 67)...)
	unicast := bare(mac(99), mac(10), ip, datagram(68, 67)...)
	offer := bare(mac(10), mac(99), ip, datagram(67, 68)...)
	offerAll := bare(eth.Broadcast, mac(99), ip, datagram(67, 68)...)
	fromPF := bare(mac(10), mac(1), ip, datagram(67, 68)...)
	other := bare(mac(11), mac(10), ip, datagram(69, 66)...)
	later := bare(mac(11), mac(10), ip, datagram(68, 67)...)
	later[14+7] = 4 // an offset: a later fragment
	tcp := bare(mac(11), mac(10), ip, datagram(68, 67)...)
	tcp[14+9] = eth.ProtocolTCP
	inVLAN := tagged(mac(99), mac(14), 20, ip, datagram(68, 67)...)
	toPort := bare(mac(20), mac(99), ip, datagram(67, 68)...)
	for name, c := range map[string]struct {
		promiscuous bool
		from        Port
		frame       []byte
		want        map[Port]string
		why         Reason
	}{
		"sent to all":                       {false, VF(0), request, everywhere(request, PF), 0},
		"sent to one":                       {true, VF(0), unicast, everywhere(unicast, PF), 0},
		"sent to one, unheard":              {false, VF(0), unicast, nil, Unheard},
		"received":                          {true, Wire, offer, everywhere(offer, PF), 0},
		"received, unheard":                 {false, Wire, offer, nil, Unheard},
		"received for all":                  {false, Wire, offerAll, everywhere(offerAll, PF, VPort(0)), 0},
		"from the PF":                       {false, PF, fromPF, everywhere(fromPF, VF(0)), 0},
		"ports beside them":                 {false, VF(0), other, everywhere(other, VF(1)), 0},
		"a later fragment":                  {false, VF(0), later, everywhere(later, VF(1)), 0},
		"not UDP":                           {false, VF(0), tcp, everywhere(tcp, VF(1)), 0},
		"for a vPort, which is the PF's":    {false, Wire, toPort, everywhere(toPort, VPort(0)), 0},
		"in a VLAN that the function knows": {true, VF(4), inVLAN, everywhere(inVLAN, PF), 0},
	} {
		s := house(t, Config{RedirectDHCP: true})
		if err := s.Set(PF, Function{MACs: []eth.MAC{mac(1)}, VLAN: AnyVLAN(), Promiscuous: c.promiscuous}); err != nil {
			t.Fatal(err)
		}
		out, why := got(s, c.from, c.frame)
		if c.promiscuous && c.from == PF {
			delete(out, PF)
		}
		if why != c.why || !maps.Equal(out, c.want) {
			t.Errorf("%s: %s: %q\nwant %s: %q", name, why, out, c.why, c.want)
		}
	}
	s := house(t, Config{})
	if out, _ := got(s, VF(0), request); !maps.Equal(out, everywhere(request, Wire, PF, VF(1), VPort(0))) {
		t.Errorf("off: %q", out)
	}
	if n := s.Counters(VF(0)).Redirected; n != 0 {
		t.Errorf("off: %d redirected", n)
	}
}
