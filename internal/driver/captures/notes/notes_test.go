package notes

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

const own, peer = 0x11, 0x22

var start = time.Unix(1700000000, 0)

// captured returns a packet as a capture of sockets has it: IP, UDP, BTH, payload and ICRC.
func captured(dest uint32, psn ib.PSN, mark uint32, payload string) *capture.Packet {
	p := &capture.Packet{Time: start, Mark: mark, Outbound: dest != own}
	body := make([]byte, ib.BTHLen, 200)
	ib.BTH(body).Encode(ib.RCSendOnly, false, false, 0, 0xffff, ib.QPN(dest), psn)
	body = append(body, payload...)
	d := eth.Datagram{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), SrcPort: 50000,
		DstPort: eth.PortRoCEv2, HopLimit: 16}
	p.Data = make([]byte, d.HeaderLen())
	d.Put(p.Data, len(body)+ib.ICRCLen)
	var s ib.ICRCScratch
	crc := ib.ICRCUpdate(ib.ICRCSeedIPv4(&s, p.Data[:eth.IPv4Len], p.Data[eth.IPv4Len:], body[:ib.BTHLen]), body[ib.BTHLen:])
	p.Data = append(p.Data, body...)
	p.Data = append(p.Data, byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24))
	p.Length = len(p.Data)
	return p
}

func sent(psn ib.PSN, mark uint32, r transport.Reason) *capture.Packet {
	return noted(transport.PacketNote{Mark: mark, Dest: peer, PSN: psn, Opcode: ib.RCSendOnly, Sent: true, Reason: r})
}

func arrived(psn ib.PSN, v transport.Verdict) *capture.Packet {
	return noted(transport.PacketNote{Dest: own, PSN: psn, Opcode: ib.RCSendOnly, Verdict: v})
}

func noted(n transport.PacketNote) *capture.Packet {
	return &capture.Packet{Time: start, Note: true, Data: n.Append(nil)}
}

func damaged(p *capture.Packet) *capture.Packet {
	p.Data[len(p.Data)-5] ^= 1
	return p
}

func cut(p *capture.Packet, n int) *capture.Packet {
	p.Data = p.Data[:n]
	return p
}

// TestJoiner: each packet of the queue pair has the note that belongs to it, in the order of the capture, and packets of others are
// left out.
func TestJoiner(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []*capture.Packet
		want []string
	}{
		{"others'", []*capture.Packet{captured(0x33, 5, 9, "x"), captured(peer, 5, 0, "x"), sent(5, 1, transport.First),
			captured(0x33, 5, 1, "x"), {Data: []byte("no packet of RDMA"), Length: 17}}, nil},
		{"a packet that the link has lost leaves its note behind, and the one sent again has its own",
			[]*capture.Packet{sent(5, 1, transport.First), sent(5, 2, transport.AgainProbe), captured(peer, 5, 2, "x")},
			[]string{"sent: retransmission, probe"}},
		{"a packet that the link has delayed until another one was sent again",
			[]*capture.Packet{sent(5, 1, transport.First), sent(5, 2, transport.Again), captured(peer, 5, 2, "x"), captured(peer, 5, 1, "x")},
			[]string{"sent: retransmission", "sent: request"}},
		{"one that the link has doubled", []*capture.Packet{sent(5, 1, transport.First), captured(peer, 5, 1, "x"), captured(peer, 5, 1, "x")},
			[]string{"sent: request", "sent: request" + commentTwice}},
		{"one that its link kept, without a mark", []*capture.Packet{sent(5, 1, transport.First), captured(peer, 5, 77, "x")},
			[]string{"sent: request"}},
		{"arrivals", []*capture.Packet{captured(own, 5, 0, "x"), captured(own, 6, 0, "x"), arrived(5, transport.CarriedOut),
			arrived(6, transport.AheadNAK)}, []string{"arrived: carried out", "arrived: ahead of a missing packet: NAK sequence error"}},
		{"a damaged one before a good one", []*capture.Packet{damaged(captured(own, 5, 0, "x")), captured(own, 5, 0, "x"),
			arrived(5, transport.CarriedOut)}, []string{commentDamaged, "arrived: carried out"}},
		{"a part of one", []*capture.Packet{cut(captured(own, 5, 0, "a longer payload"), 44), arrived(5, transport.CarriedOut)},
			[]string{"arrived: carried out"}},
		{"one that nobody judges", []*capture.Packet{captured(own, 5, 0, "x"), captured(own, 6, 0, "x"), arrived(6, transport.CarriedOut)},
			[]string{commentUnknown, "arrived: carried out"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := New(own)
			for _, p := range c.in {
				if err := j.Add(p); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			var p capture.Packet
			for text, ok := j.Rest(&p); ok; text, ok = j.Rest(&p) {
				got = append(got, text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if len(j.waiting) != 0 || j.bytes != 0 {
				t.Errorf("%d packets, %d bytes are kept for nothing", len(j.waiting), j.bytes)
			}
		})
	}
}

// TestPatience: a packet without a note, and those behind it, wait for so long, and no longer.
func TestPatience(t *testing.T) {
	j := New(own)
	for _, p := range []*capture.Packet{captured(own, 5, 0, "x"), captured(own, 6, 0, "x"), arrived(6, transport.CarriedOut)} {
		if err := j.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	var p capture.Packet
	if text, ok := j.Next(start.Add(Patience), &p); ok {
		t.Fatalf("%q was not waited for", text)
	}
	for _, want := range []string{commentUnknown, "arrived: carried out"} {
		if text, ok := j.Next(start.Add(Patience+1), &p); !ok || text != want {
			t.Errorf("%q, %v; want %q", text, ok, want)
		}
	}
}

// TestBounds: however many notes have no packets, and packets no notes, what is kept has a limit.
func TestBounds(t *testing.T) {
	j := New(own)
	for i := range uint32(3 * mostNotes) {
		if err := j.Add(sent(ib.PSN(i), i+1, transport.First)); err != nil {
			t.Fatal(err)
		}
	}
	if len(j.sent) > mostNotes || len(j.byMark) > mostNotes || len(j.byKey) > mostNotes {
		t.Errorf("%d, %d and %d notes are kept", len(j.sent), len(j.byMark), len(j.byKey))
	}
	big := captured(own, 5, 0, string(make([]byte, 8000)))
	var p capture.Packet
	for range 2 * mostWaiting / len(big.Data) {
		if err := j.Add(big); err != nil {
			t.Fatal(err)
		}
		for _, ok := j.Next(start, &p); ok; _, ok = j.Next(start, &p) {
		}
	}
	if j.bytes > mostWaiting {
		t.Errorf("%d bytes of packets wait", j.bytes)
	}
}

// FuzzAdd: no packet and no note, of whatever bytes, ends the capture otherwise than by an error.
func FuzzAdd(f *testing.F) {
	f.Add(captured(own, 5, 0, "x").Data, uint8(0))
	f.Add(arrived(5, transport.CarriedOut).Data, uint8(8))
	f.Fuzz(func(t *testing.T, b []byte, flags uint8) {
		j := New(own)
		p := capture.Packet{Data: b, Length: len(b) + int(flags>>6), Outbound: flags&1 != 0, Ethernet: flags&2 != 0,
			InfiniBand: flags&4 != 0, Note: flags&8 != 0}
		if j.Add(&p) == nil {
			j.Rest(&p)
		}
	})
}
