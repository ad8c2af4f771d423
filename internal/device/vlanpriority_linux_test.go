package device

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestVLAN_Priority: RoCE of a VLAN interface has its priority in the tag on the wire, of data and of acknowledgements, and the adapter's
// own has no tag (WinOF 5.50, 4.1.6.5: Vlan Priority).
func TestVLAN_Priority(t *testing.T) {
	one, _, third := threeEnds(t)
	add := func(p *program, last, priority byte) *program {
		t.Helper()
		index, err := p.host.AddVLAN(VLANConfig{Owner: p.adapter, Name: "prio" + itoa(uint32(last)), VLAN: 100, Priority: priority,
			Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 80, 0, last}), 24)})
		p.check(err)
		return newProgram(t, p.host, index)
	}
	a, b := add(one, 10, 5), add(third, 11, 2)
	tap, err := capture.NewTap(0, 4<<20)
	one.check(err)
	one.check(one.host.StartCapture(one.adapter, tap))
	tapA, err := capture.NewTap(0, 4<<20)
	one.check(err)
	one.check(one.host.StartCapture(a.adapter, tapA))
	exchange(t, connect(a.qp(command.CreateQP{}, a.cq(64)), b.qp(command.CreateQP{}, b.cq(64))), 20000)
	exchange(t, connect(one.qp(command.CreateQP{}, one.cq(64)), third.qp(command.CreateQP{}, third.cq(64))), 100)
	seen := map[uint16]int{}
	await.Eventually(t, "RoCE of all three kinds", func() bool {
		for _, tap := range []*capture.Tap{tap, tapA} {
			var p capture.Packet
			for tap.Next(&p) {
				if tci, roce := tagOfRoCE(p.Data); roce {
					seen[tci]++
					if want := map[bool]uint16{true: 5<<13 | 100, false: 2<<13 | 100}[p.Outbound]; tci != 0 && tci != want {
						t.Fatalf("outbound %t: the tag is %#04x, want %#04x", p.Outbound, tci, want)
					}
				}
			}
		}
		return seen[0] > 0 && seen[5<<13|100] > 0 && seen[2<<13|100] > 0
	})
}

// tagOfRoCE returns the tag of a frame of RoCE v2 over IPv4; 0: it has none.
func tagOfRoCE(b []byte) (tci uint16, ok bool) {
	at := 12
	if binary.BigEndian.Uint16(b[at:]) == 0x8100 {
		tci, at = binary.BigEndian.Uint16(b[at+2:]), at+4
	}
	if binary.BigEndian.Uint16(b[at:]) != 0x0800 || len(b) < at+2+28 || b[at+2+9] != 17 {
		return 0, false
	}
	return tci, binary.BigEndian.Uint16(b[at+2+22:]) == 4791
}
