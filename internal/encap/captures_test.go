package encap

import (
	"bytes"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/captures"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

const recordedFrames = 569

func recorded(t *testing.T, f func(name string, frame []byte)) {
	t.Helper()
	all, err := captures.All()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range all {
		for _, b := range r.Frames {
			n++
			f(r.Name, b)
		}
	}
	if n != recordedFrames {
		t.Errorf("%d frames, want %d", n, recordedFrames)
	}
}

// TestRecordedFramesComeBack: each recorded frame, parsed into its fields and built again from their values, is the
// same frame, ICRC included.
func TestRecordedFramesComeBack(t *testing.T) {
	recorded(t, func(name string, b []byte) {
		e2, packet, err := eth.ParseEthernet(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := e2.Append(nil)
		var s ib.ICRCScratch
		var udp eth.UDP
		var data []byte
		var seed func(ip, udp, bth []byte) uint32
		ipAt := len(got)
		switch e2.Type {
		case eth.TypeIPv4:
			h, payload, err := eth.ParseIPv4(packet)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if udp, data, err = eth.ParseUDP(payload); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got = append(got, make([]byte, eth.IPv4Len)...)
			eth.IPv4(got[ipAt:]).Encode(h.ToS(), h.TotalLen(), h.ID(), h.TTL(), h.Protocol(), h.Src().As4(), h.Dst().As4())
			seed = func(ip, udp, bth []byte) uint32 { return ib.ICRCSeedIPv4(&s, ip, udp, bth) }
		case eth.TypeIPv6:
			h, payload, err := eth.ParseIPv6(packet)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if udp, data, err = eth.ParseUDP(payload); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got = append(got, make([]byte, eth.IPv6Len)...)
			eth.IPv6(got[ipAt:]).Encode(h.TrafficClass(), h.FlowLabel(), h.PayloadLen(), h.NextHeader(), h.HopLimit(), h.Src().As16(),
				h.Dst().As16())
			seed = func(ip, udp, bth []byte) uint32 { return ib.ICRCSeedIPv6(&s, ip, udp, bth) }
		default:
			t.Fatalf("%s: ethernet type %#x", name, e2.Type)
		}
		udpAt := len(got)
		got = append(got, make([]byte, eth.UDPLen)...)
		eth.UDP(got[udpAt:]).Encode(udp.SrcPort(), udp.DstPort(), udp.Length())
		eth.UDP(got[udpAt:]).SetChecksum(udp.Checksum())
		p, err := ib.ParsePacket(data[:len(data)-ib.ICRCLen])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		bthAt := len(got)
		got = rebuild(got, p)
		crc := ib.ICRCUpdate(seed(got[ipAt:udpAt], got[udpAt:bthAt], got[bthAt:bthAt+ib.BTHLen]), got[bthAt+ib.BTHLen:])
		got = append(got, make([]byte, ib.ICRCLen)...)
		ib.PutICRC(got[len(got)-ib.ICRCLen:], crc)
		if !bytes.Equal(got, b) {
			t.Errorf("%s:\n% x comes back as\n% x", name, b, got)
		}
	})
}

// rebuild appends the packet made from the values of p's fields to b.
func rebuild(b []byte, p ib.Packet) []byte {
	next := func(n int) []byte {
		b = append(b, make([]byte, n)...)
		return b[len(b)-n:]
	}
	h := ib.BTH(next(ib.BTHLen))
	h.Encode(p.BTH.Opcode(), p.BTH.Solicited(), p.BTH.AckReq(), p.BTH.PadCount(), p.BTH.PKey(), p.BTH.DestQP(), p.BTH.PSN())
	h.SetMigReq(p.BTH.MigReq())
	h.SetFECN(p.BTH.FECN())
	h.SetBECN(p.BTH.BECN())
	if x := p.DETH; x != nil {
		ib.DETH(next(ib.DETHLen)).Encode(x.QKey(), x.SrcQP())
	}
	if x := p.RETH; x != nil {
		ib.RETH(next(ib.RETHLen)).Encode(x.VA(), x.RKey(), x.DMALen())
	}
	if x := p.AtomicETH; x != nil {
		ib.AtomicETH(next(ib.AtomicETHLen)).Encode(x.VA(), x.RKey(), x.SwapAdd(), x.Compare())
	}
	if x := p.AETH; x != nil {
		ib.AETH(next(ib.AETHLen)).Encode(x.Syndrome(), x.MSN())
	}
	if x := p.AtomicAck; x != nil {
		ib.AtomicAckETH(next(ib.AtomicAckETHLen)).SetOriginal(x.Original())
	}
	if x := p.ImmDt; x != nil {
		ib.ImmDt(next(ib.ImmDtLen)).SetValue(x.Value())
	}
	if x := p.IETH; x != nil {
		ib.IETH(next(ib.IETHLen)).SetRKey(x.RKey())
	}
	b = append(b, p.Payload...)
	return append(b, p.Pad...)
}

// TestRecordedFramesOpen: frames that Linux sent open on a link that shows whole frames, and on a socket, where the
// identification is solved for and agrees with the frame's.
func TestRecordedFramesOpen(t *testing.T) {
	var numbered, inferred uint64
	recorded(t, func(name string, b []byte) {
		_, packet, _ := eth.ParseEthernet(b)
		var in frame.In
		var id uint16
		if packet[0]>>4 == 4 {
			h, payload, _ := eth.ParseIPv4(packet)
			udp, data, _ := eth.ParseUDP(payload)
			in = frame.In{Src: h.Src(), Dst: h.Dst(), SrcPort: udp.SrcPort(), Data: data}
			id = h.ID()
		} else {
			h, payload, _ := eth.ParseIPv6(packet)
			udp, data, _ := eth.ParseUDP(payload)
			in = frame.In{Src: h.Src(), Dst: h.Dst(), SrcPort: udp.SrcPort(), Data: data}
		}
		r := open(t, RoCEv2, raw, in.Dst)
		whole := []frame.In{{Data: b, Raw: true}}
		if r.Open(whole) != 1 || r.Counters() != (Counters{}) {
			t.Errorf("%s: the frame does not open: %+v", name, r.Counters())
		}
		if whole[0].ID != id {
			t.Errorf("%s: identification %#x, want %#x", name, whole[0].ID, id)
		}
		s := open(t, RoCEv2, socket, in.Dst)
		if batch := []frame.In{in}; s.Open(batch) != 1 || !bytes.Equal(batch[0].Data, whole[0].Data) {
			t.Errorf("%s: the datagram does not open: %+v", name, s.Counters())
		}
		inferred += s.Counters().ICRCIDInferred
		if id == 0 {
			return
		}
		numbered++
		crc := s.unnumbered(in)
		if got, ok := ib.SolveID(crc, ib.ICRC(in.Data[len(in.Data)-4:]), bytesAfterID(len(in.Data))); !ok || got != id {
			t.Errorf("%s: identification %#x is solved as %#x, %v", name, id, got, ok)
		}
	})
	if numbered == 0 || numbered != inferred {
		t.Errorf("%d packets have an identification, %d were inferred", numbered, inferred)
	}
	t.Logf("%d packets with an identification", numbered)
}

// TestRecordedExchangesOpen: the packets of a recorded exchange open one after the other on sockets, and only the first
// of a sender need an open guess: Linux numbers its packets.
func TestRecordedExchangesOpen(t *testing.T) {
	const each = 600 * time.Millisecond // the recordings are of a slow guest, and show no times
	e := map[string]*Encap{}
	now := clock.Time(0)
	recorded(t, func(name string, b []byte) {
		_, packet, _ := eth.ParseEthernet(b)
		if packet[0]>>4 != 4 {
			return
		}
		h, payload, _ := eth.ParseIPv4(packet)
		udp, data, _ := eth.ParseUDP(payload)
		to := name + " " + h.Dst().String()
		if e[to] == nil {
			e[to] = open(t, RoCEv2, socket, h.Dst())
		}
		now = now.Add(each)
		e[to].Tick(now)
		if !accepts(e[to], frame.In{Src: h.Src(), Dst: h.Dst(), SrcPort: udp.SrcPort(), Data: data}) {
			t.Errorf("%s: identification %d from %v to %v is refused", name, h.ID(), h.Src(), h.Dst())
		}
	})
	for name, e := range e {
		if c := e.Counters(); c.ICRCIDInferred > 0 && c.ICRCIDOpen > 1 {
			t.Errorf("%s: %d open guesses among %d inferred identifications", name, c.ICRCIDOpen, c.ICRCIDInferred)
		}
	}
}

// unnumbered returns the ICRC of a datagram with identification 0.
func (e *Encap) unnumbered(p frame.In) uint32 {
	body := p.Data[:len(p.Data)-ib.ICRCLen]
	crc, n := e.begin(&flow{p.Src, p.Dst, p.SrcPort, e.port}, len(p.Data), 0, body, nil)
	return ib.ICRCUpdate(crc, body[n:])
}
