package raw

import (
	"encoding/binary"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// fields are what rules look at in a frame. They are compared as words.
type fields struct {
	_ [0]uint64
	command.FlowKey
	layers command.FlowLayers
	pad    [3]uint8
}

// words is how many words fields are. This does not compile unless they fill them.
const (
	words = 8
	_     = -(unsafe.Sizeof(fields{}) ^ 8*words)
)

func (f *fields) words() *[words]uint64 { return (*[words]uint64)(unsafe.Pointer(f)) }

// term is a word of a rule.
type term struct {
	at          uint8
	value, mask uint64
}

// terms returns a rule as the words that it looks at.
func terms(r *command.CreateFlow) (list []term) {
	value, mask := fields{FlowKey: r.Value, layers: r.Layers}, fields{FlowKey: r.Mask, layers: r.Layers}
	for i, m := range mask.words() {
		if m != 0 {
			list = append(list, term{uint8(i), value.words()[i] & m, m})
		}
	}
	return list
}

// match reports whether a frame has what a rule asks for.
func (f *fields) match(list []term) bool {
	w := f.words()
	for i := range list {
		if t := &list[i]; w[t.at&(words-1)]&t.mask != t.value {
			return false
		}
	}
	return true
}

// same reports whether two frames have the same in all that rules look at. Field by field: loads that are wider than the stores
// that parse has just made would have to wait for them.
func (f *fields) same(o *fields) bool {
	switch {
	case f.Dst != o.Dst || f.Src != o.Src || f.EtherType != o.EtherType || f.VLAN != o.VLAN || f.layers != o.layers:
		return false
	case f.layers == command.FlowEthernet: // the rest is 0
		return true
	}
	return f.SrcAddr == o.SrcAddr && f.DstAddr == o.DstAddr && f.SrcPort == o.SrcPort && f.DstPort == o.DstPort &&
		f.Protocol == o.Protocol && f.Class == o.Class && f.Hops == o.Hops && f.IPFlags == o.IPFlags && f.FlowLabel == o.FlowLabel
}

// parse looks at a frame as a card does: it does not ask whether lengths and checksums are right. It returns false for a frame
// without a whole Ethernet header.
func (f *fields) parse(b []byte) bool {
	*f = fields{}
	at := eth.EthernetLen - 2
	for tags := 0; ; tags++ {
		if len(b) < at+2 {
			return false
		}
		f.EtherType = binary.BigEndian.Uint16(b[at:])
		t := eth.EtherType(f.EtherType)
		if t != eth.TypeVLAN && t != eth.TypeServiceVLAN || tags == eth.MaxTags || len(b) < at+eth.VLANLen+2 {
			break
		}
		if tags == 0 {
			f.VLAN = binary.BigEndian.Uint16(b[at+2:])
		}
		at += eth.VLANLen
	}
	copy(f.Dst[:], b)
	copy(f.Src[:], b[6:])
	f.layers = command.FlowEthernet
	switch b = b[at+2:]; eth.EtherType(f.EtherType) {
	case eth.TypeIPv4:
		f.ipv4(b)
	case eth.TypeIPv6:
		f.ipv6(b)
	}
	return true
}

// packet reports whether a frame carries an IP packet.
func (f *fields) packet() bool { return f.layers&(command.FlowIPv4|command.FlowIPv6) != 0 }

// good reports whether a frame carries TCP or UDP whose checksum, and that of IPv4, are right, as known already or found now.
func (f *fields) good(known offload.Sums, b []byte) bool {
	if f.layers&(command.FlowTCP|command.FlowUDP) == 0 || known&(offload.BadIP|offload.BadTransport) != 0 {
		return false
	}
	want := offload.GoodTransport
	if f.layers&command.FlowIPv4 != 0 {
		want |= offload.GoodIP
	}
	if known&want == want {
		return true
	}
	var h eth.Headers
	return h.Parse(b) && offload.Check(&h, b)&want == want
}

func (f *fields) ipv4(b []byte) {
	if len(b) < eth.IPv4Len || b[0]>>4 != 4 {
		return
	}
	f.layers |= command.FlowIPv4
	f.Class, f.Hops, f.Protocol, f.IPFlags = b[1], b[8], b[9], b[6]>>5
	copy(f.SrcAddr[:4], b[12:])
	copy(f.DstAddr[:4], b[16:])
	n := int(b[0]&0xf) * 4
	if rest := binary.BigEndian.Uint16(b[6:]) & 0x1fff; rest == 0 && n >= eth.IPv4Len && len(b) >= n {
		f.ports(b[n:])
	}
}

// ipv6 looks at no extension headers.
func (f *fields) ipv6(b []byte) {
	if len(b) < eth.IPv6Len || b[0]>>4 != 6 {
		return
	}
	f.layers |= command.FlowIPv6
	first := binary.BigEndian.Uint32(b)
	f.Class, f.FlowLabel, f.Protocol, f.Hops = uint8(first>>20), first&0xfffff, b[6], b[7]
	copy(f.SrcAddr[:], b[8:])
	copy(f.DstAddr[:], b[24:])
	f.ports(b[eth.IPv6Len:])
}

func (f *fields) ports(b []byte) {
	if len(b) < 4 {
		return
	}
	switch f.Protocol {
	case eth.ProtocolTCP:
		f.layers |= command.FlowTCP
	case eth.ProtocolUDP:
		f.layers |= command.FlowUDP
	default:
		return
	}
	f.SrcPort, f.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
}

// Check returns an error unless a rule can be: a *command.Error that names the field.
func Check(r *command.CreateFlow) error {
	const known = command.FlowEthernet | command.FlowIPv4 | command.FlowIPv6 | command.FlowTCP | command.FlowUDP
	l := r.Layers
	switch {
	case r.Type > command.FlowSniffer:
		return command.Errorf(command.Invalid, "Type is %d, want 0 (normal), 1 (all default), 2 (multicast default) or 3 (sniffer)", r.Type)
	case r.Type != command.FlowNormal && (l != 0 || r.Priority != 0 || r.Value != command.FlowKey{} || r.Mask != command.FlowKey{}):
		return command.Errorf(command.Invalid, "Layers, Priority, Value or Mask is not 0: only a normal flow has a rule")
	case r.Type != command.FlowNormal:
		return nil
	case l == 0 || l&^known != 0:
		return command.Errorf(command.Invalid, "Layers is %#x, want at least one bit of %#x", uint8(l), uint8(known))
	case l&command.FlowIPv4 != 0 && l&command.FlowIPv6 != 0:
		return command.Errorf(command.Invalid, "Layers is %#x: a frame is not of both IPv4 and IPv6", uint8(l))
	case l&command.FlowTCP != 0 && l&command.FlowUDP != 0:
		return command.Errorf(command.Invalid, "Layers is %#x: a frame is not of both TCP and UDP", uint8(l))
	}
	return checkFields(r)
}

// checkFields refuses masks of fields whose layer the rule does not ask for.
func checkFields(r *command.CreateFlow) error {
	m := r.Mask
	if r.Layers&command.FlowEthernet == 0 && (m.Dst != [6]byte{} || m.Src != [6]byte{} || m.EtherType != 0 || m.VLAN != 0) {
		return missing(r, "Ethernet", "Dst, Src, EtherType or VLAN")
	}
	ip := r.Layers & (command.FlowIPv4 | command.FlowIPv6)
	if ip == 0 && (m.SrcAddr != [16]byte{} || m.DstAddr != [16]byte{} || m.Protocol|m.Class|m.Hops != 0) {
		return missing(r, "IPv4 or IPv6", "SrcAddr, DstAddr, Protocol, Class or Hops")
	}
	if ip != command.FlowIPv4 && m.IPFlags != 0 {
		return missing(r, "IPv4", "IPFlags")
	}
	if ip != command.FlowIPv6 && m.FlowLabel != 0 {
		return missing(r, "IPv6", "FlowLabel")
	}
	if r.Layers&(command.FlowTCP|command.FlowUDP) == 0 && m.SrcPort|m.DstPort != 0 {
		return missing(r, "TCP or UDP", "SrcPort or DstPort")
	}
	return nil
}

func missing(r *command.CreateFlow, layer, what string) error {
	return command.Errorf(command.Invalid, "Layers is %#x without %s, but Mask has bits of %s", uint8(r.Layers), layer, what)
}
