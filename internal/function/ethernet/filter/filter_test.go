package filter

import (
	"slices"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

var (
	own   = eth.MAC{2, 0, 0, 0, 0, 1}
	other = eth.MAC{2, 0, 0, 0, 0, 2}
	group = eth.MAC{1, 0, 0x5e, 0, 0, 1}
	many  = eth.MAC{1, 0, 0x5e, 0, 0, 2}
)

// frame is a frame from another station, of n bytes without its tags.
func frame(dst, src eth.MAC, n int, tags ...uint16) []byte {
	b := append(dst[:], src[:]...)
	for _, tci := range tags {
		b = append(b, 0x81, 0, byte(tci>>8), byte(tci))
	}
	b = append(b, 8, 6)
	return append(b, make([]byte, n-eth.EthernetLen)...)
}

func TestJudge(t *testing.T) {
	plain := Config{MAC: own, Groups: 1, MaxFrame: 1514, Tags: 3}
	set := func(change func(c *Config)) Config {
		c := plain
		change(&c)
		return c
	}
	inVLAN := set(func(c *Config) { c.VLAN = 7 })
	for _, c := range []struct {
		name  string
		cfg   Config
		mode  Mode
		frame []byte
		want  Verdict
	}{
		{"to the function", plain, Usual, frame(own, other, 60), Pass},
		{"to another", plain, Usual, frame(other, many, 60), OtherMAC},
		{"to another, promiscuous", plain, Promiscuous, frame(other, many, 60), Pass},
		{"not directed", plain, Broadcast, frame(own, other, 60), OtherMAC},
		{"to everybody", plain, Usual, frame(eth.Broadcast, other, 60), Pass},
		{"to everybody, not asked for", plain, Directed | AllMulticast, frame(eth.Broadcast, other, 60), OtherMAC},
		{"to a group on the list", plain, Usual, frame(group, other, 60), Pass},
		{"to another group", plain, Usual, frame(many, other, 60), OtherMAC},
		{"to any group", plain, AllMulticast, frame(many, other, 60), Pass},
		{"groups not asked for", plain, Directed, frame(group, other, 60), OtherMAC},
		{"in a VLAN", plain, Usual, frame(own, other, 60, 9), OtherVLAN},
		{"a priority only", plain, Usual, frame(own, other, 60, 5<<13), Pass},
		{"in a VLAN that was added", plain, Usual, frame(own, other, 60, 5<<13|8), Pass},
		{"PromiscuousVlan", set(func(c *Config) { c.AnyVLAN = true }), Usual, frame(own, other, 60, 9), Pass},
		{"in VlanId", inVLAN, Usual, frame(own, other, 60, 7), Pass},
		{"not in VlanId", inVLAN, Usual, frame(own, other, 60, 9), OtherVLAN},
		{"without a tag, not in VlanId", inVLAN, Usual, frame(own, other, 60), OtherVLAN},
		{"a priority only, not in VlanId", inVLAN, Usual, frame(own, other, 60, 1<<13), OtherVLAN},
		{"*PriorityVLANTag 1: no VLANs", set(func(c *Config) { c.Tags = 1 }), Usual, frame(own, other, 60, 8), OtherVLAN},
		{"*PriorityVLANTag 0: no tags", set(func(c *Config) { c.Tags = 0 }), Usual, frame(own, other, 60, 1<<13), OtherVLAN},
		{"a tag in one with a priority only", plain, Usual, frame(own, other, 60, 1<<13, 8), OtherVLAN},
		{"as long as *JumboPacket", plain, Usual, frame(own, other, 1514), Pass},
		{"longer", plain, Usual, frame(own, other, 1515), TooLong},
		{"as long, and its tag", plain, Usual, frame(own, other, 1514, 8), Pass},
		{"the function's own", plain, Usual, frame(own, own, 60), Own},
	} {
		f := New(c.cfg)
		f.AddVLAN(8)
		f.SetMode(c.mode)
		f.SetGroups([]eth.MAC{group})
		var h eth.Headers
		if !h.Parse(c.frame) {
			t.Fatal("no frame")
		}
		if got := f.Judge(&h, c.frame, true); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
		}
	}
}

// TestGroups: with more groups than are filtered frames to any group pass, and the host filters (WinOF 5.50, 4.6.3,
// MaxNumOfMCList).
func TestGroups(t *testing.T) {
	f := New(Config{MAC: own, Groups: 2, MaxFrame: 1514})
	var h eth.Headers
	b := frame(many, other, 60)
	h.Parse(b)
	if f.SetGroups([]eth.MAC{group, group, own}) || f.Judge(&h, b, true) != OtherMAC {
		t.Error("two groups, one of them twice, are too many, or all pass")
	}
	if !f.SetGroups([]eth.MAC{group, other, own}) || f.Judge(&h, b, true) != Pass {
		t.Error("three groups are not too many for two, or others do not pass")
	}
	f.AddVLAN(5)
	f.AddVLAN(4095)
	if got := f.VLANs(); !slices.Equal(got, []uint16{5, 4095}) {
		t.Errorf("the VLANs are %d, want 5 and 4095", got)
	}
	f.RemoveVLAN(5)
	tagged := frame(own, other, 60, 5)
	h.Parse(tagged)
	if f.Judge(&h, tagged, true) != OtherVLAN {
		t.Error("a VLAN that was removed passes")
	}
	f = New(Config{MAC: own, MaxFrame: 1514, Tags: 3, VLAN: 5})
	if f.RemoveVLAN(5); f.Judge(&h, tagged, true) != Pass {
		t.Error("the VLAN of all frames was removed")
	}
}

func BenchmarkJudge(b *testing.B) {
	f := New(Config{MAC: own, Groups: 128, MaxFrame: 1514, Tags: 3})
	x := frame(own, other, 60)
	var h eth.Headers
	h.Parse(x)
	b.ReportAllocs()
	for b.Loop() {
		if f.Judge(&h, x, true) != Pass {
			b.Fatal("it does not pass")
		}
	}
}
