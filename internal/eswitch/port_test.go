package eswitch

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestSet_Refused: what cannot be is refused by its name, and nothing has changed then.
func TestSet_Refused(t *testing.T) {
	s := house(t, Config{})
	for name, c := range map[string]struct {
		p     Port
		f     Function
		field string
	}{
		"the wire":                    {Wire, Function{}, "port"},
		"no port":                     {Port(mostPorts), Function{}, "port"},
		"a group's address":           {VF(9), Function{MACs: []eth.MAC{group(1)}}, "address"},
		"address 0":                   {VF(9), Function{MACs: []eth.MAC{{}}}, "address"},
		"an address twice":            {VF(9), Function{MACs: []eth.MAC{mac(9), mac(9)}}, "address"},
		"another's address":           {VF(9), Function{MACs: []eth.MAC{mac(10)}, VLAN: trunk(0)}, "address"},
		"another's, by its trunk":     {VF(9), Function{MACs: []eth.MAC{mac(14)}, VLAN: VLAN{ID: 20}}, "address"},
		"the PF's, which has all":     {VF(9), Function{MACs: []eth.MAC{mac(1)}, VLAN: trunk(7)}, "address"},
		"too many addresses":          {VF(9), Function{MACs: make([]eth.MAC, mostMACs+1)}, "number of addresses"},
		"a VLAN that there is not":    {VF(9), Function{VLAN: VLAN{ID: 4095}}, "VLAN"},
		"a priority that there isn't": {VF(9), Function{VLAN: VLAN{ID: 1, Priority: 8}}, "priority of the VLAN"},
		"a priority without a VLAN":   {VF(9), Function{VLAN: VLAN{Priority: 1}}, "priority of the VLAN"},
		"a VLAN and a trunk":          {VF(9), Function{VLAN: VLAN{ID: 1, Trunk: bridge.AllVLANs()}}, "VLAN"},
		"a link that there is not":    {VF(9), Function{Link: 3}, "link"},
	} {
		var e *FieldError
		if err := s.Set(c.p, c.f); !errors.As(err, &e) || e.Field != c.field || e.Want == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.Counters(VF(9)) != nil {
		t.Error("the port is there nevertheless")
	}
	for name, err := range map[string]error{
		"groups of no port":  s.Subscribe(VF(9), nil),
		"groups of the wire": s.Subscribe(Wire, nil),
		"no group":           s.Subscribe(VF(0), []eth.MAC{mac(1)}),
		"too many groups":    s.Subscribe(VF(0), make([]eth.MAC, mostGroups+1)),
	} {
		var e *FieldError
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSet_SameAddress: an address may be there once in each VLAN, and again when its owner is gone.
func TestSet_SameAddress(t *testing.T) {
	s := house(t, Config{})
	f := Function{MACs: []eth.MAC{mac(12)}, VLAN: VLAN{ID: 11}} // that of VF 2 in VLAN 10
	if err := s.Set(VF(9), f); err != nil {
		t.Fatal(err)
	}
	if out, _ := got(s, Wire, tagged(mac(12), mac(99), 11, ip)); len(out) != 1 || out[VF(9)] == "" {
		t.Errorf("%q", out)
	}
	f.VLAN.ID = 10
	if s.Set(VF(9), f) == nil {
		t.Error("an address twice in a VLAN")
	}
	s.Remove(VF(2))
	s.Remove(VF(2))
	if err := s.Set(VF(9), f); err != nil {
		t.Fatal(err)
	}
	if len(s.stations[number(f.MACs[0][:])]) != 1 {
		t.Error("an address of one that is gone is still there")
	}
}

// TestSubscribe: a subscription replaces the one before, and ends with its port.
func TestSubscribe(t *testing.T) {
	s := house(t, Config{})
	frame := func(n byte) []byte { return bare(group(n), mac(99), ip) }
	for _, list := range [][]eth.MAC{{group(1)}, {group(2), group(2), group(3)}} {
		if err := s.Subscribe(VF(0), list); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range []int{1: 0, 2: 1, 3: 1} {
		if out, _ := got(s, Wire, frame(byte(n))); n > 0 && len(out) != want {
			t.Errorf("group %d: %q", n, out)
		}
	}
	s.Remove(VF(0))
	if len(s.groups) != 0 {
		t.Errorf("%d groups are left", len(s.groups))
	}
}

// TestSet_Set: what a set holds, up to the last port.
func TestSet_Set(t *testing.T) {
	var s Set
	last := VPort(MostVPorts - 1)
	s.Add(Wire)
	s.Add(last)
	if s.Len() != 2 || !s.Has(last) || s.Has(VPort(0)) || s.Has(9999) {
		t.Errorf("%v", s)
	}
	s.Drop(Wire)
	s.Drop(last)
	if !s.Empty() {
		t.Errorf("%v", s)
	}
	if virtual.Len() != MostVFs || virtual.Has(VPort(0)) || !virtual.Has(VF(MostVFs-1)) {
		t.Error("the ports of VFs are others")
	}
}
