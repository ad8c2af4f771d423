package packetdirect

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/verbs"
)

// TestRules: a filter looks at the fields that it gives, in frames of the protocols that these fields are of, and at nothing else.
func TestRules(t *testing.T) {
	mac, all := [6]byte{2, 0, 0, 0, 0, 1}, [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	const ethernet, v4, v6 = verbs.FlowEthernet, verbs.FlowEthernet | verbs.FlowIPv4, verbs.FlowEthernet | verbs.FlowIPv6
	for _, c := range []struct {
		name        string
		f           Filter
		layers      []verbs.FlowLayers
		value, mask verbs.FlowKey
	}{
		{"everything", Filter{}, []verbs.FlowLayers{ethernet}, verbs.FlowKey{}, verbs.FlowKey{}},
		{"MACs", Filter{Dst: mac, Src: mac}, []verbs.FlowLayers{ethernet}, verbs.FlowKey{Dst: mac, Src: mac}, verbs.FlowKey{Dst: all, Src: all}},
		{"a VLAN, of whatever priority", Filter{VLAN: 7}, []verbs.FlowLayers{ethernet}, verbs.FlowKey{VLAN: 7}, verbs.FlowKey{VLAN: 0xfff}},
		{"ports of both families", Filter{Protocol: 17, SrcPort: 5, DstPort: 9}, []verbs.FlowLayers{v4 | verbs.FlowUDP, v6 | verbs.FlowUDP},
			verbs.FlowKey{Protocol: 17, SrcPort: 5, DstPort: 9}, verbs.FlowKey{Protocol: 0xff, SrcPort: 0xffff, DstPort: 0xffff}},
		{"a protocol of one", Filter{Protocol: 1, EtherType: 0x800}, []verbs.FlowLayers{v4},
			verbs.FlowKey{Protocol: 1, EtherType: 0x800}, verbs.FlowKey{Protocol: 0xff, EtherType: 0xffff}},
		{"a network, by what is in it", Filter{DstNet: netip.MustParsePrefix("10.1.2.3/20")}, []verbs.FlowLayers{v4},
			verbs.FlowKey{DstAddr: [16]byte{10, 1, 0}}, verbs.FlowKey{DstAddr: [16]byte{0xff, 0xff, 0xf0}}},
		{"TCP to an address", Filter{DstNet: netip.MustParsePrefix("fd00::9/128"), Protocol: 6, DstPort: 80},
			[]verbs.FlowLayers{v6 | verbs.FlowTCP}, verbs.FlowKey{DstAddr: [16]byte{0: 0xfd, 15: 9}, Protocol: 6, DstPort: 80},
			verbs.FlowKey{DstAddr: netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").As16(), Protocol: 0xff, DstPort: 0xffff}},
	} {
		rules, err := c.f.rules()
		if err != nil || len(rules) != len(c.layers) {
			t.Errorf("%s: %d rules, want %d (%v)", c.name, len(rules), len(c.layers), err)
			continue
		}
		for i, r := range rules {
			if r.Layers != c.layers[i] || r.Value != c.value || r.Mask != c.mask || r.Type != verbs.FlowNormal {
				t.Errorf("%s: rule %+v", c.name, r)
			}
		}
	}
	types := map[Kind]verbs.FlowType{Rest: verbs.FlowAllDefault, RestOfGroups: verbs.FlowMulticastDefault, Copies: verbs.FlowSniffer}
	for kind, want := range types {
		f := Filter{Kind: kind}
		if rules, err := f.rules(); err != nil || len(rules) != 1 || rules[0] != (verbs.FlowConfig{Type: want}) {
			t.Errorf("kind %d: %+v, %v", kind, rules, err)
		}
	}
}

// TestNetwork: an address has the bits of a rule exactly if it is in the filter's network.
func TestNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")))
		if rapid.Bool().Draw(t, "IPv4") {
			b := a.As16()
			a = netip.AddrFrom4([4]byte(b[:4]))
		}
		p := netip.PrefixFrom(a, rapid.IntRange(0, a.BitLen()).Draw(t, "bits"))
		other := a.AsSlice()
		bit := rapid.IntRange(0, a.BitLen()-1).Draw(t, "changed bit")
		other[bit/8] ^= 0x80 >> (bit % 8)
		x, _ := netip.AddrFromSlice(other)
		var value, mask [16]byte
		network(p, &value, &mask)
		matches := true
		for i := range other {
			matches = matches && (other[i]^value[i])&mask[i] == 0
		}
		if matches != p.Contains(x) {
			t.Fatalf("%v in %v: the rule says %v", x, p, matches)
		}
	})
}
