package raw

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// frameOf returns a frame with these tags and EtherType in front of a packet.
func frameOf(head string, packet ...byte) []byte {
	return append([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02"+head), packet...)
}

var (
	ipv4 = []byte{0x45, 0x68, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 1, 2, 3, 10, 4, 5, 6, 0x12, 0x34, 0, 80}
	ipv6 = append(append([]byte{0x61, 0x2a, 0xbc, 0xde, 0, 8, 17, 7}, make([]byte, 32)...), 0, 53, 0x12, 0xb5)
)

// TestParse: what rules look at is found behind tags, IPv4 options and in IPv6, as far as the frame goes; parts of a datagram
// behind the first have no ports.
func TestParse(t *testing.T) {
	options := append([]byte{0x46}, ipv4[1:20]...)
	options = append(append(options, 1, 1, 1, 1), ipv4[20:]...)
	part := append([]byte(nil), ipv4...)
	part[7] = 1
	all := command.FlowEthernet | command.FlowIPv4 | command.FlowTCP
	for _, c := range []struct {
		name   string
		frame  []byte
		layers command.FlowLayers
		port   uint16
		vlan   uint16
	}{
		{"TCP", frameOf("\x08\x00", ipv4...), all, 80, 0},
		{"in a VLAN", frameOf("\x81\x00\xac\x0c\x08\x00", ipv4...), all, 80, 0xac0c},
		{"in two", frameOf("\x88\xa8\x00\x05\x81\x00\x00\x07\x08\x00", ipv4...), all, 80, 5},
		{"options", frameOf("\x08\x00", options...), all, 80, 0},
		{"a part", frameOf("\x08\x00", part...), command.FlowEthernet | command.FlowIPv4, 0, 0},
		{"cut off ports", frameOf("\x08\x00", ipv4[:23]...), command.FlowEthernet | command.FlowIPv4, 0, 0},
		{"cut off header", frameOf("\x08\x00", ipv4[:19]...), command.FlowEthernet, 0, 0},
		{"UDP in IPv6", frameOf("\x86\xdd", ipv6...), command.FlowEthernet | command.FlowIPv6 | command.FlowUDP, 4789, 0},
		{"IPv6 said to be IPv4", frameOf("\x08\x00", ipv6...), command.FlowEthernet, 0, 0},
		{"no packet", frameOf("\x88\xb5"), command.FlowEthernet, 0, 0},
	} {
		var f fields
		if !f.parse(c.frame) || f.layers != c.layers || f.DstPort != c.port || f.VLAN != c.vlan {
			t.Errorf("%s: layers %#x, port %d, VLAN %#x; want %#x, %d and %#x", c.name, f.layers, f.DstPort, f.VLAN, c.layers, c.port, c.vlan)
		}
	}
	if f := new(fields); f.parse(make([]byte, 13)) {
		t.Error("13 bytes are taken for a frame")
	}
}

// filled returns a key with all bits set.
func filled() (k command.FlowKey) {
	b := bytes.Repeat([]byte{0xff}, binary.Size(k))
	_ = binary.Read(bytes.NewReader(b), binary.LittleEndian, &k)
	return k
}

// TestMatches: every bit of a mask counts, and no bit outside it.
func TestMatches(t *testing.T) {
	var f fields
	f.parse(frameOf("\x81\x00\x00\x05\x86\xdd", ipv6...))
	whole := command.CreateFlow{Layers: f.layers, Value: f.FlowKey}
	for _, mask := range []func(*command.FlowKey){
		func(m *command.FlowKey) { m.Dst[5] = 1 }, func(m *command.FlowKey) { m.Src[0] = 2 },
		func(m *command.FlowKey) { m.EtherType = 1 }, func(m *command.FlowKey) { m.VLAN = 4 },
		func(m *command.FlowKey) { m.SrcPort = 1 }, func(m *command.FlowKey) { m.DstPort = 0x8000 },
		func(m *command.FlowKey) { m.Protocol = 1 }, func(m *command.FlowKey) { m.Class = 0x10 }, func(m *command.FlowKey) { m.Hops = 1 },
		func(m *command.FlowKey) { m.IPFlags = 1 }, func(m *command.FlowKey) { m.FlowLabel = 0x80000 },
		func(m *command.FlowKey) { m.SrcAddr[15] = 1 }, func(m *command.FlowKey) { m.DstAddr[0] = 0x80 },
	} {
		r := whole
		mask(&r.Mask)
		if !f.match(terms(&r)) {
			t.Errorf("mask %+v: the frame does not match its own fields", r.Mask)
		}
		zero, ones := fields{layers: f.layers}, fields{layers: f.layers, FlowKey: filled()}
		if zero.match(terms(&r)) == ones.match(terms(&r)) {
			t.Errorf("mask %+v: it does not matter what a frame has there", r.Mask)
		}
		if r.Mask = (command.FlowKey{}); !ones.match(terms(&r)) {
			t.Errorf("without a mask a frame of the layers does not match")
		}
	}
	if r := (command.CreateFlow{Layers: command.FlowIPv4}); f.match(terms(&r)) {
		t.Error("a rule for IPv4 matches IPv6")
	}
}

// TestSame: two frames have the same exactly if all words that rules look at are equal.
func TestSame(t *testing.T) {
	base := frameOf("\x81\x00\x00\x05\x86\xdd", ipv6...)
	for _, base := range [][]byte{base, frameOf("\x08\x00", ipv4...), frameOf("\x88\xb5 some")} {
		var a, b fields
		a.parse(base)
		for bit := range 8 * len(base) {
			other := bytes.Clone(base)
			other[bit/8] ^= 1 << (bit % 8)
			b.parse(other)
			if got, want := a.same(&b), *a.words() == *b.words(); got != want {
				t.Errorf("bit %d of %x: same is %t, want %t", bit, base, got, want)
			}
		}
	}
}

// FuzzRules: whatever a program and a peer say, a rule that is accepted can be compared with every frame.
func FuzzRules(f *testing.F) {
	f.Add(uint32(0), uint8(3), uint16(80), frameOf("\x08\x00", ipv4...))
	f.Add(uint32(3), uint8(0), uint16(0), frameOf("\x86\xdd", ipv6...))
	f.Fuzz(func(t *testing.T, typ uint32, layers uint8, port uint16, frame []byte) {
		r := command.CreateFlow{Type: command.FlowType(typ), Layers: command.FlowLayers(layers)}
		r.Mask.DstPort, r.Value.DstPort = port, port
		if err := Check(&r); err != nil {
			var refused *command.Error
			if !errors.As(err, &refused) || refused.Code != command.Invalid {
				t.Fatalf("%v is no Invalid", err)
			}
			return
		}
		var x fields
		if x.parse(frame) && x.match(terms(&r)) && r.Layers&^x.layers != 0 {
			t.Error("a frame without the layers of a rule matches it")
		}
	})
}
