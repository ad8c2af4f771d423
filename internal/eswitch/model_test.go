package eswitch

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
)

// model is a switch without tables: for every port it asks by the rules whether a frame is for it.
type model struct {
	functions map[Port]Function
	groups    map[Port][]eth.MAC
	allowed   []eth.EtherType
	off, dhcp bool
}

// may reports whether a port may send a frame, and returns the frame with its VLAN's tag.
func (m *model) may(from Port, b []byte) ([]byte, bool) {
	if len(b) < 14 || b[12] == 0x81 && b[13] == 0 && len(b) < 18 || b[6]&1 != 0 {
		return nil, false
	}
	vid, t := vlanOf(b), binary.BigEndian.Uint16(b[12:])
	isTagged := t == 0x8100
	if isTagged {
		t = binary.BigEndian.Uint16(b[16:])
	}
	if t == 0x8808 {
		return b, from == PF && !m.functions[PF].Blocked
	}
	if from == Wire {
		return b, true
	}
	f := m.functions[from]
	if f.Blocked {
		return nil, false
	}
	if from.IsVF() {
		listed := slices.Contains(m.allowed, eth.EtherType(t))
		if t < 0x600 { // a length: LLC stands for them all
			listed = slices.Contains(m.allowed, LLC)
		}
		if !slices.Contains(f.MACs, eth.MAC(b[6:])) || !m.off && !listed {
			return nil, false
		}
	}
	if f.VLAN.ID == 0 {
		return b, m.member(f, vid)
	}
	if vid != 0 {
		return nil, false
	}
	rest := b[12:]
	if isTagged {
		rest = b[16:]
	}
	tci := uint16(f.VLAN.Priority)<<13 | f.VLAN.ID
	return slices.Concat(b[:12], []byte{0x81, 0, byte(tci >> 8), byte(tci)}, rest), true
}

func (m *model) member(f Function, vid uint16) bool {
	if f.VLAN.ID != 0 {
		return vid == f.VLAN.ID
	}
	return vid == 0 && f.VLAN.Untagged || vid != 0 && f.VLAN.Trunk.Has(vid)
}

// wants reports whether a function would have a frame that is in its VLAN.
func (m *model) wants(p Port, f Function, dst eth.MAC) bool {
	trusted := f.Trusted || !p.IsVF()
	switch {
	case trusted && f.Promiscuous, dst == eth.Broadcast, slices.Contains(f.MACs, dst):
		return true
	}
	return dst[0]&1 != 0 && (f.Unlisted || trusted && f.AllGroups || slices.Contains(m.groups[p], dst))
}

// forward returns what every port gets of a frame.
func (m *model) forward(from Port, frame []byte) map[Port]string {
	out := map[Port]string{}
	b, ok := m.may(from, frame)
	if !ok {
		return out
	}
	dst, vid := eth.MAC(b), vlanOf(b)
	if b[12] == 0x88 && b[13] == 8 || b[12] == 0x81 && b[16] == 0x88 && b[17] == 8 {
		return everywhere(b, Wire)
	}
	here := false
	for p, f := range m.functions {
		if !m.member(f, vid) {
			continue
		}
		owner := dst[0]&1 == 0 && slices.Contains(f.MACs, dst)
		if owner && p == from {
			return map[Port]string{}
		}
		here = here || owner
		if p == from || f.Blocked || !m.wants(p, f, dst) {
			continue
		}
		out[p] = string(b)
		if f.VLAN.ID != 0 && b[12] == 0x81 && b[13] == 0 {
			out[p] = string(b[:12]) + string(b[16:])
		}
	}
	if from != Wire && !here {
		out[Wire] = string(b)
	}
	if m.dhcp && from != PF && m.isDHCP(b) {
		m.redirect(from, out)
	}
	return out
}

// isDHCP is for the frames of this test: those of IPv4 have a header of 20 bytes and are no fragments.
func (m *model) isDHCP(b []byte) bool {
	if b[12] == 0x81 && b[13] == 0 {
		b = b[4:]
	}
	if b[12] != 8 || b[13] != 0 || len(b) < 38 || b[23] != 17 {
		return false
	}
	return b[34] == 0 && (b[35] == 67 || b[35] == 68) || b[36] == 0 && (b[37] == 67 || b[37] == 68)
}

func (m *model) redirect(from Port, out map[Port]string) {
	for p := range out {
		if from.IsVF() && p != PF || p.IsVF() {
			delete(out, p)
		}
	}
}

var (
	someTypes = []eth.EtherType{0x800, 0x806, 0x86dd, 0x88cc, 0x8808, 100, 0x8100, 0x88a8}
	someMACs  = []eth.MAC{mac(1), mac(2), mac(3), mac(4), mac(5), mac(99), eth.Broadcast, group(1), group(2)}
	someVIDs  = []uint16{0, 1, 2, 4094, 4095}
	somePorts = []Port{Wire, PF, VF(0), VF(1), VF(61), VF(62), VF(126), VPort(0), VPort(126)}
)

func drawFunction(t *rapid.T) (f Function) {
	f.MACs = rapid.SliceOfNDistinct(rapid.SampledFrom(someMACs[:5]), 0, 2, rapid.ID).Draw(t, "addresses")
	if rapid.Bool().Draw(t, "transparent") {
		f.VLAN.ID, f.VLAN.Priority = rapid.SampledFrom(someVIDs[1:4]).Draw(t, "vlan"), rapid.Uint8Range(0, 7).Draw(t, "priority")
	} else {
		f.VLAN = trunk(rapid.SliceOfN(rapid.SampledFrom(someVIDs[:4]), 0, 4).Draw(t, "trunk")...)
	}
	f.Trusted, f.Promiscuous = rapid.Bool().Draw(t, "trusted"), rapid.Bool().Draw(t, "promiscuous")
	f.AllGroups, f.Unlisted = rapid.Bool().Draw(t, "all groups"), rapid.IntRange(0, 3).Draw(t, "unlisted") == 0
	f.Blocked = rapid.IntRange(0, 4).Draw(t, "blocked") == 0
	return f
}

func drawFrame(t *rapid.T, m *model, from Port) []byte {
	h := eth.Ethernet{Dst: rapid.SampledFrom(someMACs).Draw(t, "to"), Src: rapid.SampledFrom(someMACs).Draw(t, "from")}
	if own := m.functions[from].MACs; len(own) > 0 && rapid.IntRange(0, 3).Draw(t, "honest") > 0 {
		h.Src = own[0]
	}
	h.Tagged = rapid.Bool().Draw(t, "tagged")
	h.TCI = rapid.SampledFrom(someVIDs).Draw(t, "id") | rapid.Uint16Range(0, 7).Draw(t, "frame's priority")<<13
	h.Type = rapid.SampledFrom(someTypes).Draw(t, "type")
	payload := []byte{0, 1, 2, 3}
	if h.Type == eth.TypeIPv4 {
		port := rapid.SampledFrom([]uint16{66, 67, 68, 69})
		payload = datagram(port.Draw(t, "source port"), port.Draw(t, "port"))
	}
	b := append(h.Append(nil), payload...)
	return b[:len(b)-rapid.SampledFrom([]int{0, 0, 0, 0, 5, 7}).Draw(t, "cut off")]
}

// TestForward_Model: a frame reaches exactly those whom the rules say, as they say, while functions come, change and go.
func TestForward_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(rapid.SampledFrom(someTypes), 0, 4, rapid.ID).Draw(t, "allowed")
		m := &model{functions: map[Port]Function{}, groups: map[Port][]eth.MAC{}, allowed: list, off: rapid.Bool().Draw(t, "off"),
			dhcp: rapid.Bool().Draw(t, "dhcp")}
		p, err := NewProtection(!m.off, list)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			m.allowed = someTypes[:3]
		}
		s := New(Config{Protection: p, RedirectDHCP: m.dhcp})
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			step(t, s, m)
		}
	})
}

func step(t *rapid.T, s *Switch, m *model) {
	p := rapid.SampledFrom(somePorts).Draw(t, "port")
	_, there := m.functions[p]
	switch rapid.IntRange(0, 7).Draw(t, "step") {
	case 0, 1, 2:
		if f := drawFunction(t); s.Set(p, f) == nil {
			m.functions[p] = f
		}
	case 3:
		if p != Wire {
			s.Remove(p)
			delete(m.functions, p)
			delete(m.groups, p)
		}
	case 4:
		groups := rapid.SliceOfN(rapid.SampledFrom(someMACs[6:]), 0, 2).Draw(t, "groups")
		if s.Subscribe(p, groups) == nil {
			m.groups[p] = groups
		}
	default:
		if p != Wire && !there {
			return
		}
		frame := drawFrame(t, m, p)
		want := m.forward(p, frame)
		out, why := got(s, p, frame)
		if !maps.Equal(out, want) || (why == 0) != (len(want) > 0) {
			t.Fatalf("%s sends %x: %s: %x\nwant %x", p, frame, why, out, want)
		}
	}
}
