package offload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
)

// tcpPacket returns a TCP packet over IPv4 or IPv6 with correct checksums.
func tcpPacket(v6 bool, sequence uint32, flags byte, options, payload []byte) []byte {
	at := eth.IPv4Len
	if v6 {
		at = eth.IPv6Len
	}
	tcp := make([]byte, tcpLen, tcpLen+len(options)+len(payload))
	binary.BigEndian.PutUint16(tcp, 4000)
	binary.BigEndian.PutUint16(tcp[2:], 5201)
	binary.BigEndian.PutUint32(tcp[tcpSequence:], sequence)
	binary.BigEndian.PutUint32(tcp[tcpAck:], 77)
	tcp[tcpOffset], tcp[tcpFlags] = byte((tcpLen+len(options))/4)<<4, flags
	binary.BigEndian.PutUint16(tcp[14:], 512)
	tcp = append(append(tcp, options...), payload...)
	p := make([]byte, at)
	if v6 {
		eth.IPv6(p).Encode(0, 0x12345, len(tcp), eth.ProtocolTCP, 64, netip.MustParseAddr("fd00::1").As16(),
			netip.MustParseAddr("fd00::2").As16())
	} else {
		eth.IPv4(p).Encode(0, at+len(tcp), 9, 64, eth.ProtocolTCP, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2})
	}
	p = append(p, tcp...)
	checksum(p, at)
	return p
}

// checksum sets the TCP checksum with the arithmetic of package eth.
func checksum(p []byte, at int) {
	src, dst := eth.IPv4(p).Src, eth.IPv4(p).Dst
	if p[0]>>4 == 6 {
		src, dst = eth.IPv6(p).Src, eth.IPv6(p).Dst
	}
	p[at+tcpChecksum], p[at+tcpChecksum+1] = 0, 0
	binary.BigEndian.PutUint16(p[at+tcpChecksum:], eth.PseudoChecksum(src(), dst(), eth.ProtocolTCP, p[at:]))
}

// large returns a packet as the system hands it over for segmentation, and its header.
func large(v6 bool, sequence uint32, flags byte, options, payload []byte, segment int) (Header, []byte) {
	p := tcpPacket(v6, sequence, flags, options, payload)
	h := Header{NeedsChecksum: true, Kind: TCPv4, Segment: segment, ChecksumStart: eth.IPv4Len, ChecksumAt: tcpChecksum}
	if v6 {
		h.Kind, h.ChecksumStart = TCPv6, eth.IPv6Len
	}
	h.Headers = h.ChecksumStart + tcpLen + len(options)
	binary.BigEndian.PutUint16(p[h.ChecksumStart+tcpChecksum:], fold(pseudo(p, eth.ProtocolTCP, len(p)-h.ChecksumStart)))
	return h, p
}

func headersOf(p []byte) *eth.Headers {
	h := new(eth.Headers)
	h.ParseIP(p)
	return h
}

func cut(t interface{ Fatal(...any) }, h Header, p []byte) (list [][]byte) {
	var s Segments
	if err := s.Begin(h, p); err != nil {
		t.Fatal(err)
	}
	for head, body, ok := s.Next(); ok; head, body, ok = s.Next() {
		list = append(list, append(bytes.Clone(head), body...))
	}
	return list
}

// Segments have the sequence numbers, lengths, identifications and checksums of separate packets. FIN and PSH are set
// in the last one only, and CWR in the first one only.
func TestCut(t *testing.T) {
	payload := bytes.Repeat([]byte("abcdefg"), 300) // 2100
	for _, v6 := range []bool{false, true} {
		h, p := large(v6, 1<<32-1000, flagACK|flagPSH|flagFIN|flagCWR, []byte{1, 1, 1, 0}, payload, 1000)
		got := cut(t, h, p)
		var want [][]byte
		for n, x := range []struct {
			flags    byte
			from, to int
		}{{flagACK | flagCWR, 0, 1000}, {flagACK, 1000, 2000}, {flagACK | flagPSH | flagFIN, 2000, 2100}} {
			w := tcpPacket(v6, uint32(1<<32-1000+x.from), x.flags, []byte{1, 1, 1, 0}, payload[x.from:x.to])
			if !v6 {
				eth.IPv4(w).SetID(uint16(9 + n))
				eth.IPv4(w).SetChecksum()
			}
			want = append(want, w)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("IPv6 %v: %s", v6, d)
		}
	}
}

// TestCut_UDP: a burst is cut into datagrams with the lengths, identifications and checksums of separate ones, or without
// checksums if it has none.
func TestCut_UDP(t *testing.T) {
	payload := bytes.Repeat([]byte("abcdefg"), 300) // 2100
	for _, v6 := range []bool{false, true} {
		for _, summed := range []bool{true, false} {
			got := cut(t, Header{Kind: UDP, Segment: 1000}, datagram(v6, 9, payload, summed))
			var want [][]byte
			for n, body := range [][]byte{payload[:1000], payload[1000:2000], payload[2000:]} {
				want = append(want, datagram(v6, uint16(9+n), body, summed))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("IPv6 %v, with checksums %v: %s", v6, summed, d)
			}
		}
	}
	var s Segments
	if s.Begin(Header{Kind: TCPv4, Segment: 10}, datagram(false, 0, payload, true)) == nil {
		t.Error("a datagram is cut as TCP")
	}
}

// datagram returns a UDP datagram in an IP packet.
func datagram(v6 bool, id uint16, payload []byte, summed bool) []byte {
	d := eth.Datagram{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 1, DstPort: 2, HopLimit: 9, ID: id}
	if v6 {
		d.Src, d.Dst = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	}
	b := make([]byte, d.HeaderLen())
	d.Put(b, len(payload))
	b = append(b, payload...)
	if udp := eth.UDP(b[d.IPLen():]); summed {
		udp.SetChecksum(eth.UDPChecksum(d.Src, d.Dst, udp))
	}
	return b
}

// Joining the segments of a packet gives the packet again, with a header by which the system can segment it.
func TestJoinIsTheReverseOfCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6 := rapid.Bool().Draw(t, "v6")
		segment := rapid.IntRange(1, 5000).Draw(t, "segment")
		payload := make([]byte, rapid.IntRange(1, min(60000, 40*segment)).Draw(t, "payload"))
		for n := range payload {
			payload[n] = byte(n * 7)
		}
		options := make([]byte, 4*rapid.IntRange(0, 10).Draw(t, "options"))
		for n := range options {
			options[n] = 1
		}
		h, p := large(v6, rapid.Uint32().Draw(t, "sequence"), flagACK|rapid.SampledFrom([]byte{0, flagPSH}).Draw(t, "flags"), options,
			payload, segment)
		list := cut(t, h, bytes.Clone(p))
		j := Joiner{Join4: true, Join6: true}
		for round := range 2 { // the second round shows what a batch leaves behind
			j.Reset()
			for _, x := range list {
				if Check(headersOf(x), x)&GoodTransport == 0 {
					t.Fatalf("the checksum of a segment is wrong")
				}
				j.Add(bytes.Clone(x))
			}
			out := j.Packets()
			if len(out) != 1 {
				t.Fatalf("%d segments became %d packets", len(list), len(out))
			}
			got := bytes.Join(out[0].Parts, nil)
			if len(list) == 1 {
				if !bytes.Equal(got, list[0]) || out[0].Header != (Header{ChecksumValid: true}) {
					t.Fatalf("round %d: a single segment changed: %+v", round, out[0].Header)
				}
				continue
			}
			if h := h; !bytes.Equal(got, p) || out[0].Header != h {
				t.Fatalf("round %d: %+v, want %+v, the same bytes: %v", round, out[0].Header, h, bytes.Equal(got, p))
			}
		}
	})
}

// Segments that do not follow each other are not joined, and the packets of a connection keep their order.
func TestNotJoined(t *testing.T) {
	a := bytes.Repeat([]byte{1}, 100)
	at := func(sequence uint32, flags byte, change func(p []byte), payload []byte) []byte {
		p := tcpPacket(false, sequence, flags, nil, payload)
		if change != nil {
			change(p)
			checksum(p, eth.IPv4Len)
			eth.IPv4(p).SetChecksum()
		}
		return p
	}
	wrong := at(100, flagACK, nil, a)
	wrong[50] ^= 1
	for name, c := range map[string]struct {
		packets [][]byte
		want    []int // how many segments each packet is joined from
	}{
		"in order":     {[][]byte{at(0, flagACK, nil, a), at(100, flagACK, nil, a), at(200, flagACK, nil, a)}, []int{3}},
		"a gap":        {[][]byte{at(0, flagACK, nil, a), at(200, flagACK, nil, a), at(300, flagACK, nil, a)}, []int{1, 2}},
		"turned round": {[][]byte{at(100, flagACK, nil, a), at(0, flagACK, nil, a), at(200, flagACK, nil, a)}, []int{1, 1, 1}},
		"pushed":       {[][]byte{at(0, flagACK, nil, a), at(100, flagACK|flagPSH, nil, a), at(200, flagACK, nil, a)}, []int{2, 1}},
		"shorter":      {[][]byte{at(0, flagACK, nil, a), at(100, flagACK, nil, a[:50]), at(150, flagACK, nil, a)}, []int{2, 1}},
		"longer":       {[][]byte{at(0, flagACK, nil, a[:50]), at(50, flagACK, nil, a)}, []int{1, 1}},
		"the end between": {[][]byte{at(0, flagACK, nil, a), at(100, flagACK|flagFIN, nil, a), at(200, flagACK, nil, a)},
			[]int{1, 1, 1}},
		"an ACK between":    {[][]byte{at(0, flagACK, nil, a), at(100, flagACK, nil, nil), at(100, flagACK, nil, a)}, []int{1, 1, 1}},
		"another window":    {[][]byte{at(0, flagACK, nil, a), at(100, flagACK, func(p []byte) { p[35]++ }, a)}, []int{1, 1}},
		"another ACK":       {[][]byte{at(0, flagACK, nil, a), at(100, flagACK, func(p []byte) { p[31]++ }, a)}, []int{1, 1}},
		"a congestion mark": {[][]byte{at(0, flagACK, nil, a), at(100, flagACK, func(p []byte) { p[1] = 3 }, a)}, []int{1, 1}},
		"another port": {[][]byte{at(0, flagACK, nil, a), at(100, flagACK, func(p []byte) { p[21]++ }, a),
			at(100, flagACK, nil, a)}, []int{2, 1}},
		"another address": {[][]byte{at(0, flagACK, nil, a), at(100, flagACK, func(p []byte) { p[15]++ }, a)}, []int{1, 1}},
		"may be fragmented": {[][]byte{at(0, flagACK, func(p []byte) { p[6] = 0 }, a), at(100, flagACK, func(p []byte) { p[6] = 0 }, a)},
			[]int{1, 1}},
		"a wrong checksum":     {[][]byte{at(0, flagACK, nil, a), wrong, at(200, flagACK, nil, a)}, []int{1, 1, 1}},
		"padding behind":       {[][]byte{append(at(0, flagACK, nil, a), 0, 0), append(at(100, flagACK, nil, a), 0, 0)}, []int{2}},
		"a header that is cut": {[][]byte{at(0, flagACK, nil, a)[:30], {0x45}, {0x60}, {0}}, []int{1, 1, 1, 1}},
	} {
		j := Joiner{Join4: true, Join6: true}
		for _, p := range c.packets {
			j.Add(p)
		}
		var got []int
		for _, p := range j.Packets() {
			got = append(got, len(p.Parts))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
		if want := map[bool]int{true: 1}[name == "a wrong checksum"]; j.Wrong() != want {
			t.Errorf("%s: %d wrong checksums, want %d", name, j.Wrong(), want)
		}
	}
	off := Joiner{}
	off.Add(at(0, flagACK, nil, a))
	off.Add(at(100, flagACK, nil, a))
	if p := off.Packets(); len(p) != 2 || p[0].Header.ChecksumValid {
		t.Errorf("without the offload: %+v, want two packets with unchecked checksums", p)
	}
}

// A partial checksum of the system is completed; a UDP checksum that comes to 0 is written as 0xffff (RFC 768).
func TestComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := append([]byte{0, 1, 0, 2, 0, 0, 0, 0}, rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "body")...)
		p := make([]byte, eth.IPv4Len)
		eth.IPv4(p).Encode(0, len(p)+len(body), 1, 64, eth.ProtocolUDP, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2})
		p = append(p, body...)
		binary.BigEndian.PutUint16(p[24:], uint16(len(body)))
		binary.BigEndian.PutUint16(p[26:], fold(pseudo(p, eth.ProtocolUDP, len(body))))
		if err := Complete(Header{ChecksumStart: 20, ChecksumAt: 6}, p); err != nil {
			t.Fatal(err)
		}
		if Check(headersOf(p), p)&GoodTransport == 0 || binary.BigEndian.Uint16(p[26:]) == 0 {
			t.Fatalf("the checksum %x is wrong, or 0", p[26:28])
		}
		p[len(p)-1] ^= 1
		if Check(headersOf(p), p)&BadTransport == 0 {
			t.Fatal("the checksum of a changed packet is correct")
		}
	})
	var bad *formatError
	if err := Complete(Header{ChecksumStart: 20, ChecksumAt: 6}, make([]byte, 27)); !errors.As(err, &bad) {
		t.Errorf("a checksum beyond the end of the packet: %v, want a refusal", err)
	}
}

func TestHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 65535)
		h := Header{NeedsChecksum: rapid.Bool().Draw(t, "needs"), ChecksumValid: rapid.Bool().Draw(t, "valid"),
			Kind: rapid.SampledFrom([]Kind{Whole, TCPv4, TCPv6, UDP}).Draw(t, "kind"), Headers: n.Draw(t, "headers"),
			Segment: n.Draw(t, "segment"), ChecksumStart: n.Draw(t, "start"), ChecksumAt: n.Draw(t, "at")}
		b := append(make([]byte, HeaderLen), 1, 2, 3)
		h.Put(b)
		got, rest, err := ParseHeader(b)
		if err != nil || got != h || !bytes.Equal(rest, []byte{1, 2, 3}) {
			t.Fatalf("the header comes back as %+v, %v; want %+v", got, err, h)
		}
	})
	if h, _, err := ParseHeader([]byte{0, 0x81, 9: 0}); err != nil || h.Kind != TCPv4 {
		t.Errorf("a packet with congestion notification is of kind %d, %v", h.Kind, err)
	}
	for _, b := range [][]byte{nil, make([]byte, 9), {0, 3, 9: 0}, {0, 0x83, 9: 0}} {
		if _, _, err := ParseHeader(b); err == nil {
			t.Errorf("the header %x is accepted", b)
		}
	}
}

// Nothing panics, whatever comes from the system or from the fabric, and segments are whole packets of at most the
// size that was asked for.
func FuzzOffload(f *testing.F) {
	for _, v6 := range []bool{false, true} {
		h, p := large(v6, 5, flagACK, nil, bytes.Repeat([]byte{7}, 500), 100)
		var b [HeaderLen]byte
		h.Put(b[:])
		f.Add(append(b[:], p...))
	}
	f.Add(append([]byte{0, byte(UDP), 0, 0, 100, 0, 0, 0, 0, 0}, datagram(false, 1, bytes.Repeat([]byte{7}, 500), true)...))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 20, 0, 6, 0, 0x45, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, p, err := ParseHeader(b)
		if err != nil {
			return
		}
		j := Joiner{Join4: true, Join6: true}
		j.Add(bytes.Clone(p))
		j.Add(bytes.Clone(p))
		total := 0
		for _, x := range j.Packets() {
			total += len(x.Parts)
		}
		if len(p) > 0 && total != 2 {
			t.Fatalf("%d packets come out, want the 2 that went in", total)
		}
		_ = Complete(h, bytes.Clone(p))
		var s Segments
		if s.Begin(h, p) != nil {
			return
		}
		for head, body, ok := s.Next(); ok; head, body, ok = s.Next() {
			x := append(bytes.Clone(head), body...)
			sum := Check(headersOf(x), x)
			if len(body) > h.Segment || sum&BadTransport != 0 || sum&GoodTransport == 0 && h.Kind != UDP {
				t.Fatalf("a segment of %d bytes is too long, or its checksum is wrong", len(body))
			}
		}
	})
}

func BenchmarkCut(b *testing.B) {
	h, p := large(false, 1, flagACK, make([]byte, 12), make([]byte, 60000), 4040)
	b.SetBytes(int64(len(p)))
	var s Segments
	for b.Loop() {
		if err := s.Begin(h, p); err != nil {
			b.Fatal(err)
		}
		for _, _, ok := s.Next(); ok; _, _, ok = s.Next() {
		}
	}
}
