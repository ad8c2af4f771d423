package tap

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// inTunnel puts a large frame into a tunnel.
func inTunnel(o frame.Out, dst eth.MAC, k tunnel.Kind, sum bool) frame.Out {
	x := tunnel.Outer{Ethernet: eth.Ethernet{Dst: dst, Src: farMAC}, Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"),
		TTL: 9, SrcPort: 50000, DstPort: tunnel.Port}
	if dst == farMAC {
		x.Ethernet.Src = stationMAC
	}
	head := x.AppendHead(nil, tunnel.Header{Kind: k, ID: 5001}, o.Len())
	o.HeadStart -= uint16(len(head))
	copy(o.Head[o.HeadStart:], head)
	if o.Task.Kind = o.Task.Kind.Around(4); sum {
		ip := o.Head[o.HeadStart+eth.EthernetLen:]
		eth.UDP(ip[eth.IPv4Len:]).SetChecksum(offload.PartialSum(ip, o.Len()-eth.EthernetLen-eth.IPv4Len))
	}
	return o
}

// receiveTunnels returns what of TCP arrives in tunnels, until it has n bytes of payload; the checksums of complete frames are right.
func (b *largeBed) receiveTunnels(at link.Link, n int) (payload []byte, frames int) {
	b.t.Helper()
	in, none := make([]frame.In, 7), make([]link.Unreachable, 4)
	await.Eventually(b.t, "the frames arrive", func() bool {
		at.Errors(none)
		k, err := at.Receive(in)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, p := range in[:k] {
			var h eth.Headers
			var f tunnel.Frame
			if !h.Parse(p.Data) || !f.Find(&h, p.Data, tunnel.Recognition{VXLANPort: tunnel.Port, NVGRE: true}) {
				continue
			}
			if p.Task.Kind == offload.Whole {
				outer, inner := offload.CheckTunnel(&f, p.Data)
				if outer&offload.BadTransport != 0 || inner != offload.GoodIP|offload.GoodTransport {
					b.t.Errorf("%d bytes: checksums %v outside, %v inside", len(p.Data), outer, inner)
				}
			} else if p.Task.Kind != offload.TCPv4|offload.Tunnel4 || p.Task.Segment != segment {
				b.t.Errorf("%d bytes, %+v", len(p.Data), p.Task)
			}
			payload = append(payload, p.Data[f.Inner.Data:f.Inner.End]...)
			frames++
		}
		return len(payload) >= n
	})
	return payload, frames
}

// TestLarge_Tunnel: a super-frame in VXLAN is handed to the system as it is, if that knows such, and arrives so where it is taken so, by
// a packet socket that says nothing of tunnels; in NVGRE it goes frame by frame. A packet socket sends it frame by frame.
func TestLarge_Tunnel(t *testing.T) {
	systemtest.Mark(t)
	b := newLargeBed(t)
	const n = 20000
	const parts = (n + segment - 1) / segment
	for _, large := range []bool{true, false} {
		b.listen(b.far, farMAC, large)
		b.listen(b.near, stationMAC, large)
		for name, c := range map[string]struct {
			kind tunnel.Kind
			sum  bool
		}{"VXLAN": {tunnel.VXLAN, false}, "VXLAN with a checksum": {tunnel.VXLAN, true}, "NVGRE": {tunnel.NVGRE, false}} {
			out := inTunnel(tcp(stationMAC, farMAC, n, cut), farMAC, c.kind, c.sum)
			before := b.near.Stats()
			b.send(b.near, out)
			payload, frames := b.receiveTunnels(b.far, n)
			want := parts
			if large && c.kind == tunnel.VXLAN && b.near.(*tapLink).tunnels {
				want = 1
			}
			if frames != want || !bytes.Equal(payload, out.Payload) {
				t.Errorf("%s, taken large %v: %d bytes in %d frames, want %d in %d", name, large, len(payload), frames, n, want)
			}
			if s := b.near.Stats(); s.SentPackets-before.SentPackets != parts || s.SendErrors != before.SendErrors {
				t.Errorf("%s: %d frames sent, %d lost", name, s.SentPackets-before.SentPackets, s.SendErrors-before.SendErrors)
			}
			back := inTunnel(tcp(farMAC, stationMAC, n, cut), stationMAC, c.kind, c.sum)
			short := tcp(farMAC, stationMAC, 700, summed)
			b.send(b.far, short, back, short, back)
			if payload, frames := b.receiveTunnels(b.near, 2*n); frames != 2*parts || !bytes.Equal(payload[n:], back.Payload) {
				t.Errorf("%s, from a packet socket: %d bytes in %d frames, want %d in %d", name, len(payload), frames, 2*n, 2*parts)
			}
		}
	}
	if s := b.far.Stats(); s.SendErrors != 0 {
		t.Errorf("%+v", s)
	}
	lost := tcp(stationMAC, farMAC, 10, cut) // in no tunnel
	lost.Task.Kind = lost.Task.Kind.Around(4)
	b.send(b.near, lost)
	b.send(b.far, lost)
	if b.near.Stats().SendErrors != 1 || b.far.Stats().SendErrors != 1 {
		t.Error("what is in no tunnel is sent")
	}
}

// TestLarge_TunnelNoAllocation: a large frame in a tunnel allocates nothing on its way.
func TestLarge_TunnelNoAllocation(t *testing.T) {
	systemtest.Mark(t)
	b := newLargeBed(t)
	b.listen(b.near, stationMAC, true)
	b.listen(b.far, farMAC, true)
	there := []frame.Out{inTunnel(tcp(stationMAC, farMAC, 20000, cut), farMAC, tunnel.VXLAN, true),
		inTunnel(tcp(stationMAC, farMAC, 20000, cut), farMAC, tunnel.NVGRE, false)}
	back := []frame.Out{inTunnel(tcp(farMAC, stationMAC, 20000, cut), stationMAC, tunnel.VXLAN, true)}
	in := make([]frame.In, 64)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = b.near.Send(there)
		_, _ = b.far.Send(back)
		_, _ = b.near.Receive(in)
		_, _ = b.far.Receive(in)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
