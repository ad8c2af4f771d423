package raw

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// guard owns 10.1.2.3 and fe80::1.
func guard() *Guard {
	return &Guard{UDPPort: eth.PortRoCEv2, Owns: func(a netip.Addr) bool {
		return a == netip.MustParseAddr("10.1.2.3") || a == netip.MustParseAddr("fe80::1")
	}}
}

// roce returns a packet of RoCE v2 from an address, and v1 one of RoCE v1.
func roce(from string) []byte {
	if a := netip.MustParseAddr(from); a.Is4() {
		b := append([]byte(nil), ipv4...)
		b[9] = eth.ProtocolUDP
		copy(b[12:], a.AsSlice())
		b = append(b, 0, 8, 0, 0)
		binary.BigEndian.PutUint16(b[22:], eth.PortRoCEv2)
		return b
	}
	return v6(from, eth.PortRoCEv2)
}

func v6(from string, port uint16) []byte {
	b := make([]byte, 48)
	b[0], b[6] = 0x60, eth.ProtocolUDP
	copy(b[8:], netip.MustParseAddr(from).AsSlice())
	binary.BigEndian.PutUint16(b[42:], port)
	return b
}

// TestGuard: RoCE with another's GID is dropped and counted, behind tags too; all else passes.
func TestGuard(t *testing.T) {
	stranger := frameOf("\x88\xb5", make([]byte, 50)...)
	stranger[11] = 9
	for _, c := range []struct {
		name   string
		frame  []byte
		forged uint64
	}{
		{"its own", frameOf("\x88\xb5", make([]byte, 50)...), 0},
		{"another's MAC", stranger, 0},
		{"no whole header", stranger[:13], 0},
		{"RoCE v2 of its own", frameOf("\x08\x00", roce("10.1.2.3")...), 0},
		{"RoCE v2 of another", frameOf("\x08\x00", roce("10.1.2.4")...), 1},
		{"RoCE v2 of another in a VLAN", frameOf("\x81\x00\x00\x0c\x08\x00", roce("10.1.2.4")...), 1},
		{"IPv6 of its own", frameOf("\x86\xdd", roce("fe80::1")...), 0},
		{"IPv6 of another", frameOf("\x86\xdd", roce("fe80::2")...), 1},
		{"RoCE v1 of its own", frameOf("\x89\x15", v6("fe80::1", 0)...), 0},
		{"RoCE v1 of another", frameOf("\x89\x15", v6("fe80::2", 0)...), 1},
		{"other UDP with another's address", frameOf("\x86\xdd", v6("fe80::2", 53)...), 0},
		{"UDP too short to tell", frameOf("\x86\xdd", roce("fe80::2")[:42]...), 1},
	} {
		g := guard()
		passes := g.passes(c.frame)
		if passes != (c.forged == 0) || g.Forged != c.forged {
			t.Errorf("%s: passes %v with %d forged, want %d", c.name, passes, g.Forged, c.forged)
		}
	}
}

// TestGuard_Keep: what passes stays in order.
func TestGuard_Keep(t *testing.T) {
	out := make([]frame.Out, 5)
	for i := range out {
		from := "10.1.2.3"
		if i%2 == 1 {
			from = "10.1.2.4"
		}
		f := append(frameOf("\x08\x00", roce(from)...), byte(i))
		out[i].HeadEnd = uint16(copy(out[i].Head[:], f))
	}
	n := guard().keep(out)
	if n != 3 {
		t.Fatalf("%d frames are left, want 3", n)
	}
	for i := range out[:n] {
		if got := out[i].Head[out[i].HeadEnd-1]; int(got) != 2*i {
			t.Errorf("frame %d is number %d, want %d", i, got, 2*i)
		}
	}
}

// FuzzGuard: whatever the bytes are, RoCE v1 that passes has the function's GID.
func FuzzGuard(f *testing.F) {
	f.Add(frameOf("\x08\x00", roce("10.1.2.4")...))
	f.Add(frameOf("\x86\xdd", roce("fe80::1")...))
	f.Add(frameOf("\x89\x15", v6("fe80::2", 0)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		const grh, sgid = 14, 14 + 8
		if !guard().passes(b) || len(b) < grh+40 || b[12] != 0x89 || b[13] != 0x15 {
			return
		}
		if netip.AddrFrom16([16]byte(b[sgid:])) != netip.MustParseAddr("fe80::1") {
			t.Errorf("%x passes", b)
		}
	})
}
