package eswitch

import (
	"maps"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

const ip = eth.TypeIPv4

// TestForward: where frames go, and with which tags, by the rule.
func TestForward(t *testing.T) {
	outside := mac(99)
	toVF1 := bare(mac(11), mac(10), ip, 1)
	all := bare(eth.Broadcast, mac(10), eth.TypeARP, 2)
	in10 := tagged(eth.Broadcast, outside, 10, ip, 3)
	bare10 := bare(eth.Broadcast, outside, ip, 3)
	some := bare(group(1), outside, ip, 4)
	priority := tagged(mac(11), mac(10), 5<<13, ip, 5)
	pause := bare(eth.PauseMAC, mac(1), eth.TypeMACControl, 0, 1)
	for name, c := range map[string]struct {
		from  Port
		frame []byte
		want  map[Port]string
		why   Reason
	}{
		"to another VF, and not to the wire":         {VF(0), toVF1, everywhere(toVF1, VF(1)), 0},
		"to the PF":                                  {VF(0), bare(mac(1), mac(10), ip), everywhere(bare(mac(1), mac(10), ip), PF), 0},
		"to one of the addresses of a vPort":         {PF, bare(mac(21), mac(1), ip), everywhere(bare(mac(21), mac(1), ip), VPort(0)), 0},
		"to an address that is not here":             {VF(0), bare(outside, mac(10), ip), everywhere(bare(outside, mac(10), ip), Wire), 0},
		"from the wire to an address that is not":    {Wire, bare(mac(98), outside, ip), nil, Nobody},
		"from the wire to a VF":                      {Wire, bare(mac(10), outside, ip), everywhere(bare(mac(10), outside, ip), VF(0)), 0},
		"to itself":                                  {VF(0), bare(mac(10), mac(10), ip), nil, ToItself},
		"broadcast, to the VLAN alone":               {VF(0), all, everywhere(all, Wire, PF, VF(1), VPort(0)), 0},
		"group, to those that subscribe":             {Wire, some, everywhere(some, VF(0), VPort(0)), 0},
		"group, from a subscriber":                   {VF(0), bare(group(1), mac(10), ip), everywhere(bare(group(1), mac(10), ip), Wire, VPort(0)), 0},
		"group without subscribers, from the wire":   {Wire, bare(group(2), outside, ip), nil, Nobody},
		"a priority without a VLAN is no VLAN":       {VF(0), priority, everywhere(priority, VF(1)), 0},
		"an address in another VLAN is not here":     {VF(0), bare(mac(12), mac(10), ip), everywhere(bare(mac(12), mac(10), ip), Wire), 0},
		"VLAN from the wire, taken out for some":     {Wire, in10, and(everywhere(in10, PF, VF(4)), everywhere(bare10, VF(2), VF(3))), 0},
		"VLAN put in, with its priority":             {VF(2), bare(outside, mac(12), ip, 6), everywhere(tagged(outside, mac(12), 3<<13|10, ip, 6), Wire), 0},
		"VLAN put in, to one that uses tags":         {VF(2), bare(mac(14), mac(12), ip), everywhere(tagged(mac(14), mac(12), 3<<13|10, ip), VF(4)), 0},
		"VLAN of both, never seen":                   {VF(2), bare(mac(13), mac(12), ip), everywhere(bare(mac(13), mac(12), ip), VF(3)), 0},
		"VLAN put in, over a priority":               {VF(2), tagged(outside, mac(12), 7<<13, ip), everywhere(tagged(outside, mac(12), 3<<13|10, ip), Wire), 0},
		"a priority is taken out with the VLAN":      {VF(2), tagged(mac(13), mac(12), 7<<13, ip), everywhere(bare(mac(13), mac(12), ip), VF(3)), 0},
		"a tag of its own from one that has none":    {VF(2), tagged(outside, mac(12), 10, ip), nil, WrongVLAN},
		"a tag of the trunk":                         {VF(4), tagged(outside, mac(14), 20, ip), everywhere(tagged(outside, mac(14), 20, ip), Wire), 0},
		"a tag that is not of the trunk":             {VF(4), tagged(outside, mac(14), 30, ip), nil, WrongVLAN},
		"no tag, where the trunk has none":           {VF(4), bare(outside, mac(14), ip), nil, WrongVLAN},
		"a VLAN ID that there is not":                {VF(4), tagged(outside, mac(14), 4095, ip), nil, WrongVLAN},
		"two tags are a type of their own":           {VF(4), tagged(outside, mac(14), 20, eth.TypeVLAN, 0, 9, 8, 0), nil, EtherType},
		"a source that is not its own":               {VF(0), bare(mac(1), mac(11), ip), nil, SourceMAC},
		"a source that is a group":                   {VF(0), bare(mac(1), group(1), ip), nil, SourceMAC},
		"a source that is a group, from the wire":    {Wire, bare(mac(1), group(1), ip), nil, Malformed},
		"any source from the PF":                     {PF, bare(mac(11), outside, ip), everywhere(bare(mac(11), outside, ip), VF(1)), 0},
		"any source from a vPort":                    {VPort(0), bare(mac(11), outside, ip), everywhere(bare(mac(11), outside, ip), VF(1)), 0},
		"a type that is not allowed":                 {VF(0), bare(mac(1), mac(10), 0x88cc), nil, EtherType},
		"a type that is not allowed behind a tag":    {VF(4), tagged(mac(1), mac(14), 20, 0x88cc), nil, EtherType},
		"a pause from a VF":                          {VF(0), bare(eth.PauseMAC, mac(10), eth.TypeMACControl, 0, 1), nil, EtherType},
		"a pause from a vPort":                       {VPort(0), bare(eth.PauseMAC, mac(20), eth.TypeMACControl, 0, 1), nil, Control},
		"a pause from the wire":                      {Wire, bare(eth.PauseMAC, outside, eth.TypeMACControl, 0, 1), nil, Control},
		"a pause from the PF, for the wire alone":    {PF, pause, everywhere(pause, Wire), 0},
		"a pause of the PF to a VF, which is a wire": {PF, bare(mac(10), mac(1), eth.TypeMACControl), everywhere(bare(mac(10), mac(1), eth.TypeMACControl), Wire), 0},
		"a header that is cut off":                   {VF(0), make([]byte, 13), nil, Malformed},
		"a tag that is cut off":                      {VF(4), tagged(mac(1), mac(14), 20, ip)[:17], nil, Malformed},
		"a port that there is not":                   {VF(9), toVF1, nil, NoPort},
		"a port that there cannot be":                {4000, toVF1, nil, NoPort},
	} {
		t.Run(name, func(t *testing.T) {
			s := house(t, Config{})
			for _, p := range []Port{VF(0), VPort(0), VF(2)} {
				if err := s.Subscribe(p, []eth.MAC{group(1)}); err != nil {
					t.Fatal(err)
				}
			}
			out, why := got(s, c.from, c.frame)
			if why != c.why || !maps.Equal(out, c.want) {
				t.Errorf("%s: %q\nwant %s: %q", why, out, c.why, c.want)
			}
			if n := s.Counters(c.from); n != nil && c.why != 0 && n.Dropped[c.why] != 1 {
				t.Errorf("it is not counted: %+v", n)
			}
		})
	}
}

// TestForward_Promiscuous: the PF and trusted VFs get what is for others, in their VLANs; VFs that are not trusted ask in vain.
func TestForward_Promiscuous(t *testing.T) {
	s := house(t, Config{})
	frame := bare(mac(11), mac(99), ip)
	groups := bare(group(7), mac(99), ip)
	f := Function{MACs: []eth.MAC{mac(10)}, VLAN: trunk(0), Promiscuous: true, AllGroups: true}
	for _, trusted := range []bool{false, true} {
		f.Trusted = trusted
		if err := s.Set(VF(0), f); err != nil {
			t.Fatal(err)
		}
		want, wantGroups := everywhere(frame, VF(1)), map[Port]string{}
		if trusted {
			want, wantGroups = everywhere(frame, VF(0), VF(1)), everywhere(groups, VF(0))
		}
		if out, _ := got(s, Wire, frame); !maps.Equal(out, want) {
			t.Errorf("trusted %v: %q", trusted, out)
		}
		if out, _ := got(s, Wire, groups); !maps.Equal(out, wantGroups) {
			t.Errorf("trusted %v: a group: %q", trusted, out)
		}
		if out, _ := got(s, VF(4), tagged(mac(99), mac(14), 20, ip)); len(out) != 1 {
			t.Errorf("trusted %v: another VLAN is seen: %q", trusted, out)
		}
	}
	s.Remove(VF(0))
	if out, _ := got(s, Wire, frame); !maps.Equal(out, everywhere(frame, VF(1))) {
		t.Errorf("after it is gone: %q", out)
	}
}

// TestForward_Link: what has no link neither sends nor gets; functions follow the wire unless they are told otherwise.
func TestForward_Link(t *testing.T) {
	s := house(t, Config{})
	set := func(p Port, m eth.MAC, l Link) {
		if err := s.Set(p, Function{MACs: []eth.MAC{m}, VLAN: trunk(0), Link: l}); err != nil {
			t.Fatal(err)
		}
	}
	set(VF(0), mac(10), LinkUp)
	set(VF(1), mac(11), LinkDown)
	if _, why := got(s, VF(1), bare(mac(10), mac(11), ip)); why != NoPort {
		t.Errorf("from one that is down: %s", why)
	}
	if _, why := got(s, VF(0), bare(mac(11), mac(10), ip)); why != Nobody {
		t.Errorf("to one that is down: %s", why)
	}
	set(VF(1), mac(11), LinkUp)
	s.SetWire(false)
	if out, _ := got(s, VF(0), bare(mac(11), mac(10), ip)); len(out) != 1 {
		t.Errorf("without the wire two that stay up reach each other: %q", out)
	}
	if out, why := got(s, VF(0), bare(mac(1), mac(10), ip)); why != Nobody || s.Up(PF) {
		t.Errorf("the PF follows the wire: %q, %s", out, why)
	}
	s.SetWire(true)
	if !s.Up(PF) || !s.Up(Wire) {
		t.Error("the PF does not come back with the wire")
	}
}

// TestForward_Counters: what a port sends and gets is counted, with the tags that it sees.
func TestForward_Counters(t *testing.T) {
	s := house(t, Config{CountSpoofed: true})
	got(s, VF(2), bare(mac(99), mac(12), ip)) // 14 bytes, 18 on the wire
	got(s, Wire, tagged(mac(12), mac(99), 10, ip))
	got(s, VF(2), bare(mac(99), mac(77), ip)) // spoofed, and counted as sent
	if c := s.Counters(VF(2)); c.In != (Traffic{2, 28}) || c.Out != (Traffic{1, 14}) || c.Dropped[SourceMAC] != 1 {
		t.Errorf("%+v", c)
	}
	if c := s.Counters(Wire); c.Out != (Traffic{1, 18}) || c.In != (Traffic{1, 18}) {
		t.Errorf("wire: %+v", c)
	}
	s.Configure(Config{})
	got(s, VF(2), bare(mac(99), mac(77), ip))
	if c := s.Counters(VF(2)); c.In.Frames != 2 || c.Dropped[SourceMAC] != 2 {
		t.Errorf("%+v", c)
	}
	if s.Counters(VF(50)) != nil || s.Counters(5000) != nil {
		t.Error("ports that there are not have counters")
	}
}

// TestForward_Allocations: a frame costs no allocation.
func TestForward_Allocations(t *testing.T) {
	s := house(t, Config{RedirectDHCP: true})
	list := make([]Delivery, 0, 16)
	frames := [][]byte{bare(mac(11), mac(10), ip, datagram(1, 2)...), bare(eth.Broadcast, mac(10), ip, datagram(68, 67)...)}
	if n := testing.AllocsPerRun(100, func() {
		for _, f := range frames {
			list, _ = s.Forward(VF(0), f, list[:0])
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
