package offload

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// drawOuter draws what a tunnel puts before a frame.
func drawOuter(t *rapid.T) (tunnel.Outer, tunnel.Header) {
	o := tunnel.Outer{
		Ethernet: eth.Ethernet{Dst: eth.MAC{2, 1}, Src: eth.MAC{2, 2}, Tagged: rapid.Bool().Draw(t, "tagged"), TCI: 7},
		Src:      netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), TTL: 9, ID: 65535, SrcPort: 50000,
		DstPort: tunnel.Port, Sum: rapid.Bool().Draw(t, "sum outside"),
	}
	if rapid.Bool().Draw(t, "IPv6 outside") {
		o.Src, o.Dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	}
	h := tunnel.Header{Kind: rapid.SampledFrom([]tunnel.Kind{tunnel.VXLAN, tunnel.NVGRE}).Draw(t, "kind"), ID: 0xabcdef}
	return o, h
}

// found returns the tunnel in a frame.
func found(t *rapid.T, b []byte) *tunnel.Frame {
	var h eth.Headers
	f := new(tunnel.Frame)
	if !h.Parse(b) || !f.Find(&h, b, tunnel.Recognition{VXLANPort: tunnel.Port, NVGRE: true}) {
		t.Fatalf("no tunnel in %x", b)
	}
	return f
}

// TestBeginTunnel: a large frame in a tunnel is cut into those that would be sent one by one, in tunnels of their own, and their
// payloads together are the large one's.
func TestBeginTunnel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, header := drawOuter(t)
		v6 := rapid.Bool().Draw(t, "IPv6 inside")
		payload := bytes.Repeat([]byte("softvpi"), rapid.IntRange(1, 5000).Draw(t, "size"))
		segment := rapid.IntRange(max(1, len(payload)/50), 9000).Draw(t, "segment")
		_, p := large(v6, 1<<32-1000, flagACK|flagPSH|flagCWR, []byte{1, 1, 1, 0}, payload, segment)
		b := o.Append(nil, header, framed(p))
		task := Task{Kind: TCPv4, Segment: uint16(segment)}
		if v6 {
			task.Kind = TCPv6
		}
		var s Segments
		if err := s.BeginTunnel(task, found(t, b), b); err != nil {
			t.Fatal(err)
		}
		var joined []byte
		n := 0
		for head, body, ok := s.Next(); ok; head, body, ok = s.Next() {
			flags := byte(flagACK)
			if n == 0 {
				flags |= flagCWR
			}
			if len(joined)+len(body) == len(payload) {
				flags |= flagPSH
			}
			w := tcpPacket(v6, uint32(1<<32-1000+len(joined)), flags, []byte{1, 1, 1, 0}, body)
			if !v6 {
				eth.IPv4(w).SetID(uint16(9 + n))
				eth.IPv4(w).SetChecksum()
			}
			q := o
			q.ID += uint16(n)
			if want, got := q.Append(nil, header, framed(w)), append(bytes.Clone(head), body...); !bytes.Equal(want, got) {
				t.Fatalf("segment %d is\n%x, want\n%x", n, got, want)
			}
			joined = append(joined, body...)
			n++
		}
		if !bytes.Equal(joined, payload) || n != (len(payload)+segment-1)/segment {
			t.Fatalf("%d segments with %d bytes, of %d", n, len(joined), len(payload))
		}
		// The same Segments cut a frame without a tunnel as ever.
		var plain eth.Headers
		plain.Parse(framed(p))
		if err := s.BeginFrame(task, &plain, framed(p)); err != nil {
			t.Fatal(err)
		}
		if head, body, ok := s.Next(); !ok || len(head) != 18+len(p)-len(payload) || len(body) != min(segment, len(payload)) {
			t.Fatalf("%d and %d bytes", len(head), len(body))
		}
	})
}

// TestBeginTunnel_Refused: what cannot be cut is refused.
func TestBeginTunnel_Refused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, header := drawOuter(t)
		b := o.Append(nil, header, framed(tcpPacket(false, 1, flagACK, nil, make([]byte, 100))))
		f := found(t, b)
		var s Segments
		for name, task := range map[string]Task{
			"another protocol": {Kind: UDP, Segment: 10}, "another version": {Kind: TCPv6, Segment: 10}, "no size": {Kind: TCPv4}, "whole": {Segment: 1},
		} {
			if s.BeginTunnel(task, f, b) == nil {
				t.Errorf("%s", name)
			}
		}
		f.Outer.Fragment = true
		if s.BeginTunnel(Task{Kind: TCPv4, Segment: 10}, f, b) == nil {
			t.Error("a fragment")
		}
		f.Outer.Fragment, f.Inner.Data = false, MaxTunnelHeaders+1
		if s.BeginTunnel(Task{Kind: TCPv4, Segment: 10}, f, b) == nil {
			t.Error("long headers")
		}
	})
}

// TestMakeTunnel: checksums that are made are those that are found right, inside and outside, and a bit that is wrong inside
// is found there, and outside if there is a checksum that covers it.
func TestMakeTunnel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, header := drawOuter(t)
		v6 := rapid.Bool().Draw(t, "IPv6 inside")
		want := o.Append(nil, header, framed(tcpPacket(v6, 1, flagACK, nil, rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "payload"))))
		b := bytes.Clone(want)
		f := found(t, b)
		binary.BigEndian.PutUint16(b[f.Inner.Transport+tcpChecksum:], rapid.Uint16().Draw(t, "what was there"))
		if !v6 {
			eth.IPv4(b[f.Inner.Network:]).PutChecksum(1)
		}
		if f.Outer.Version == 4 {
			eth.IPv4(b[f.Outer.Network:]).PutChecksum(1)
		}
		MakeTunnel(MakeIP|MakeTransport, f, b)
		if !bytes.Equal(b, want) {
			t.Fatalf("%x\nwant %x", b, want)
		}
		outer, inner := CheckTunnel(f, b)
		goodOuter, goodInner := Sums(0), GoodTransport
		if f.Outer.Version == 4 {
			goodOuter = GoodIP
		}
		if summed := header.Kind == tunnel.VXLAN && o.Sum; summed {
			goodOuter |= GoodTransport
		}
		if !v6 {
			goodInner |= GoodIP
		}
		if outer != goodOuter || inner != goodInner {
			t.Fatalf("found %b outside, want %b, and %b inside, want %b", outer, goodOuter, inner, goodInner)
		}
		b[f.Inner.Data] ^= 1
		if outer, inner = CheckTunnel(f, b); inner&BadTransport == 0 || outer&BadTransport != 0 != (goodOuter&GoodTransport != 0) {
			t.Fatalf("a wrong bit: %b outside, %b inside", outer, inner)
		}
	})
}

// TestSegments_TunnelAllocations: cutting costs no allocation.
func TestSegments_TunnelAllocations(t *testing.T) {
	o := tunnel.Outer{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), DstPort: tunnel.Port, Sum: true}
	b := o.Append(nil, tunnel.Header{Kind: tunnel.VXLAN}, framed(tcpPacket(false, 1, flagACK, nil, make([]byte, 30000))))
	var s Segments
	if n := testing.AllocsPerRun(50, func() {
		var h eth.Headers
		var f tunnel.Frame
		h.Parse(b)
		if !f.Find(&h, b, tunnel.Recognition{VXLANPort: tunnel.Port}) || s.BeginTunnel(Task{Kind: TCPv4, Segment: 1400}, &f, b) != nil {
			t.Fatal("it is not cut")
		}
		for _, _, ok := s.Next(); ok; _, _, ok = s.Next() {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
