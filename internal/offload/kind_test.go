package offload

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// TestKind_InTunnel: what is said of a large frame in a tunnel comes back from a system's header, also from that of a packet socket,
// which says nothing of the tunnel; the frame is cut as the tunnel's is, and counts as what it is cut into.
func TestKind_InTunnel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, header := drawOuter(t)
		v6 := rapid.Bool().Draw(t, "IPv6 inside")
		payload := bytes.Repeat([]byte("softvpi"), rapid.IntRange(1, 5000).Draw(t, "size"))
		segment := rapid.IntRange(max(1, len(payload)/50), 9000).Draw(t, "segment")
		_, p := large(v6, 1, flagACK, nil, payload, segment)
		b := o.Append(nil, header, framed(p))
		plain := Task{Kind: TCPv4, Segment: uint16(segment), Sums: MakeTransport}
		if v6 {
			plain.Kind = TCPv6
		}
		task := plain
		task.Kind = plain.Kind.Around(found(t, b).Outer.Version)
		if !task.Kind.InTunnel() || task.Kind.Inner() != plain.Kind || task.Kind.TCP() || plain.Kind.InTunnel() {
			t.Fatalf("kind %x of %x", task.Kind, plain.Kind)
		}
		var want, got Segments
		var e eth.Headers
		e.Parse(b)
		if err := want.BeginTunnel(plain, found(t, b), b); err != nil {
			t.Fatal(err)
		}
		if err := got.BeginFrame(task, &e, b); err != nil {
			t.Fatal(err)
		}
		n, bytesOf := 0, 0
		for head, body, ok := want.Next(); ok; head, body, ok = want.Next() {
			h, x, _ := got.Next()
			if !bytes.Equal(h, head) || !bytes.Equal(x, body) {
				t.Fatalf("segment %d is\n%x, want\n%x", n, h, head)
			}
			n, bytesOf = n+1, bytesOf+len(head)+len(body)
		}
		heads := len(b) - len(payload)
		if frames, sum := task.OnWire(b[:heads], len(b)); frames != n || sum != bytesOf {
			t.Errorf("it counts as %d frames, %d bytes, want %d, %d", frames, sum, n, bytesOf)
		}
		if k, ok := task.HeadersOf(b[:heads]); !ok || k != heads {
			t.Errorf("headers of %d bytes, %v, want %d", k, ok, heads)
		}
		h, ok := task.HeaderOf(b[:heads])
		if ok != (header.Kind == tunnel.VXLAN) {
			t.Fatalf("a header for %v: %v", header.Kind, ok)
		}
		if ok {
			v := append(bytes.Repeat([]byte{0xff}, TunnelHeaderLen), b...)
			h.PutTunnel(v)
			again, rest, err := ParseTunnelHeader(v)
			if err != nil || again != h || len(rest) != len(b) || h.OuterSum != o.Sum {
				t.Fatalf("%+v comes back as %+v, %v", h, again, err)
			}
			if back, err := again.TaskOf(&e, b); err != nil || back != task {
				t.Errorf("%+v comes back as %+v, %v", task, back, err)
			}
		}
		f := found(t, b)
		socket := Header{NeedsChecksum: true, Kind: plain.Kind, Segment: segment, ChecksumStart: f.Inner.Transport, ChecksumAt: tcpChecksum}
		if back, err := socket.TaskOf(&e, b); err != nil || back != task {
			t.Errorf("from a packet socket: %+v, %v, want %+v", back, err, task)
		}
		socket.ChecksumStart++
		if _, err := socket.TaskOf(&e, b); err == nil {
			t.Error("a checksum elsewhere is taken")
		}
	})
}

// TestTunnelHeader: headers of packets in no tunnel come back, and what no system means is refused.
func TestTunnelHeader(t *testing.T) {
	for _, h := range []Header{{}, {ChecksumValid: true}, {NeedsChecksum: true, ChecksumStart: 34, ChecksumAt: 16},
		{NeedsChecksum: true, Kind: UDP, Segment: 9, Headers: 42, ChecksumStart: 34, ChecksumAt: 6}} {
		b := bytes.Repeat([]byte{0xff}, TunnelHeaderLen+1)
		h.PutTunnel(b)
		if got, rest, err := ParseTunnelHeader(b); err != nil || got != h || len(rest) != 1 {
			t.Errorf("%+v comes back as %+v, %v", h, got, err)
		}
	}
	for name, b := range map[string][]byte{"no checksum": {0, 0x21}, "both versions": {1, 0x61}, "datagrams": {1, 0x25}, "nothing": {1, 0x20},
		"unknown": {1, 2}, "short": nil} {
		if b != nil {
			b = append(b, make([]byte, TunnelHeaderLen)...)
		}
		if h, _, err := ParseTunnelHeader(b); err == nil {
			t.Errorf("%s: taken as %+v", name, h)
		}
	}
}

// TestKind_Anything: whatever bytes there are, nothing is found beyond them.
func TestKind_Anything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, header := drawOuter(t)
		b := o.Append(nil, header, framed(tcpPacket(rapid.Bool().Draw(t, "IPv6"), 1, flagACK, nil, make([]byte, 9))))
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		b = b[:rapid.IntRange(0, len(b)).Draw(t, "length")]
		task := Task{Kind: rapid.SampledFrom([]Kind{Whole, TCPv4, TCPv6, UDP, TCPv4 | Tunnel4, TCPv6 | Tunnel6}).Draw(t, "kind"), Segment: 5}
		if n, ok := task.HeadersOf(b); ok && n > len(b) {
			t.Fatalf("%d bytes of headers in %d", n, len(b))
		}
		task.HeaderOf(b)
		task.OnWire(b, 60000)
		var e eth.Headers
		if e.Parse(b) {
			var s Segments
			if s.BeginFrame(task, &e, b) == nil {
				s.Next()
			}
			_, _ = Header{NeedsChecksum: true, Kind: task.Kind, Segment: 5, ChecksumStart: rapid.IntRange(0, 200).Draw(t, "start")}.TaskOf(&e, b)
		}
	})
}
