package station

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// largeInTunnel returns a frame in a tunnel with n bytes of TCP payload, and what Linux says of it.
func largeInTunnel(kind tunnel.Kind, port uint16, sum bool, n int) (offload.Header, []byte) {
	e := eth.Ethernet{Dst: eth.MAC{2, 5: 2}, Src: eth.MAC{2, 5: 1}, Type: eth.TypeIPv4}
	inner := e.Append(nil)
	ip := make([]byte, eth.IPv4Len)
	eth.IPv4(ip).Encode(0, eth.IPv4Len+eth.TCPLen+n, 1, 64, eth.ProtocolTCP, [4]byte{10, 7, 0, 1}, [4]byte{10, 7, 0, 2})
	eth.IPv4(ip).SetChecksum()
	inner = append(append(inner, ip...), 0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 0, 5<<4, 0x10, 1, 0, 0, 0, 0, 0)
	for i := range n {
		inner = append(inner, byte(i*7))
	}
	o := tunnel.Outer{Ethernet: e, Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), TTL: 64, SrcPort: 50000,
		DstPort: port, Sum: sum}
	b := o.Append(nil, tunnel.Header{Kind: kind, ID: 7}, inner)
	at := len(b) - n - eth.TCPLen
	return offload.Header{NeedsChecksum: true, Kind: offload.TCPv4, Segment: 1400, Headers: len(b) - n, ChecksumStart: at,
		ChecksumAt: 16}, b
}

// TestCutter_Tunnel: a large frame in a tunnel, which Linux describes by what is inside, is cut into the frames that it stands for, each
// with its tunnel, whatever VXLAN's port is; what the description does not fit is counted and lost.
func TestCutter_Tunnel(t *testing.T) {
	for name, c := range map[string]struct {
		kind tunnel.Kind
		port uint16
		sum  bool
	}{
		"VXLAN": {tunnel.VXLAN, tunnel.Port, false}, "VXLAN with a checksum": {tunnel.VXLAN, tunnel.Port, true},
		"VXLAN at Linux's port": {tunnel.VXLAN, 8472, true}, "NVGRE": {tunnel.NVGRE, 0, false},
	} {
		const n, frames = 10000, (10000 + 1399) / 1400
		b := newBed(t, Config{})
		h, f := largeInTunnel(c.kind, c.port, c.sum, n)
		var cut Cutter
		cut.Grow(1500)
		in := make([]frame.In, 2*frames)
		cut.Begin(b.Set, h, f)
		got := cut.Hand(b.Set, in)
		var joined []byte
		for _, p := range in[:got] {
			var e eth.Headers
			var x tunnel.Frame
			if !e.Parse(p.Data) || !x.Find(&e, p.Data, tunnel.Recognition{VXLANPort: c.port, NVGRE: true}) {
				t.Fatalf("%s: no tunnel in %x", name, p.Data)
			}
			outer, inner := offload.CheckTunnel(&x, p.Data)
			if want := offload.GoodIP | offload.GoodTransport; inner != want || c.sum && outer != want || outer&offload.GoodIP == 0 {
				t.Errorf("%s: checksums %b outside, %b inside", name, outer, inner)
			}
			joined = append(joined, p.Data[x.Inner.Data:x.Inner.End]...)
		}
		if got != frames || !bytes.Equal(joined, f[len(f)-n:]) || b.Counted().ReceiveTruncated != 0 {
			t.Errorf("%s: %d frames with %d bytes, want %d with %d", name, got, len(joined), frames, n)
		}
		h.ChecksumStart -= 2
		cut.Begin(b.Set, h, f)
		if k := cut.Hand(b.Set, in); k != 0 || b.Counted().ReceiveTruncated != 1 {
			t.Errorf("%s: %d frames of one whose description is another's", name, k)
		}
	}
}
