package eswitch

import (
	"maps"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

// TestBlocked: a blocked port sends nothing, whoever makes its headers, and gets nothing; both are counted, also of frames that others
// get; its link stays up, and with the block gone all is as before (WinOF-2 24.4, Using PacketDirect for VM).
func TestBlocked(t *testing.T) {
	s := house(t, Config{})
	f := Function{MACs: []eth.MAC{mac(11)}, VLAN: trunk(0), Blocked: true}
	if err := s.Set(VF(1), f); err != nil {
		t.Fatal(err)
	}
	from, to, all := bare(mac(10), mac(11), ip), bare(mac(11), mac(10), ip), bare(eth.Broadcast, mac(10), eth.TypeARP)
	for _, c := range []struct {
		name  string
		from  Port
		frame []byte
		want  map[Port]string
		why   Reason
	}{
		{"from it", VF(1), from, nil, Blocked},
		{"from it, in another's name", VF(1), bare(mac(10), mac(12), ip), nil, Blocked},
		{"for it", VF(0), to, nil, Blocked},
		{"for it, from the wire", Wire, bare(mac(11), mac(99), ip), nil, Blocked},
		{"for all", VF(0), all, everywhere(all, Wire, PF, VPort(0)), 0},
	} {
		if out, why := got(s, c.from, c.frame); why != c.why || !maps.Equal(out, c.want) {
			t.Errorf("%s: %q %q, want %q %q", c.name, why, out, c.why, c.want)
		}
	}
	var r Recent
	for range 3 {
		if why := s.Follow(VF(0), all, len(all), &r); why != 0 || r.To.Has(VF(1)) {
			t.Errorf("for all, again: %s, to it: %t", why, r.To.Has(VF(1)))
		}
	}
	made := Recent{Made: true}
	if why := s.Follow(VF(1), from, len(from), &made); why != Blocked {
		t.Errorf("RoCE from it: %s", why)
	}
	if why := s.Admit(VF(1), bare(mac(11), mac(11), ip), false); why != Blocked {
		t.Errorf("to itself: %s", why)
	}
	c := s.Counters(VF(1))
	if c.Dropped[Blocked] != 4 || c.Held != 6 || c.Dropped[SourceMAC] != 0 || c.In != (Traffic{}) || c.Out != (Traffic{}) || !s.Up(VF(1)) {
		t.Errorf("counted %+v, its link is up: %t", *c, s.Up(VF(1)))
	}
	f.Blocked = false
	if err := s.Set(VF(1), f); err != nil {
		t.Fatal(err)
	}
	if why := s.Follow(VF(1), from, len(from), &made); why != 0 {
		t.Errorf("without the block: %s", why)
	}
	if why := s.Follow(VF(0), all, len(all), &r); why != 0 || !r.To.Has(VF(1)) {
		t.Errorf("for all without the block: %s, to it: %t", why, r.To.Has(VF(1)))
	}
}
