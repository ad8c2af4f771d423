package device

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestCaptureWhileTrafficRuns: a capture moves a running connection to the wire, shows each of its packets in both
// directions with a correct ICRC, and lets the connection return to its path when it stops.
func TestCaptureWhileTrafficRuns(t *testing.T) {
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			c := pairs(t, n, AdapterConfig{})
			operations(t, c)
			tap, err := capture.NewTap(0, 64<<20)
			if err != nil {
				t.Fatal(err)
			}
			p := c.a.p
			// A packet may come or go while the capture begins or ends: one that is sent again or acknowledged late, or one of the fabric.
			counted := func() link.Stats { return p.host.Snapshot().Adapters[p.adapter].Link }
			var began, ended [2]link.Stats
			began[0] = counted()
			p.check(p.host.StartCapture(p.adapter, tap))
			began[1] = counted()
			if path := c.a.info().Path; path != 1 {
				t.Errorf("path %d under a capture, want 1 (wire)", path)
			}
			operations(t, c)
			ended[0] = counted()
			p.check(p.host.StopCapture(p.adapter, tap))
			ended[1] = counted()
			operations(t, c)
			out, in := readCapture(t, tap)
			least, most := ended[0].SentPackets-began[1].SentPackets, ended[1].SentPackets-began[0].SentPackets
			if out < least || out > most || least == 0 {
				t.Errorf("the capture shows %d packets sent, want %d to %d and some", out, least, most)
			}
			least, most = ended[0].ReceivedPackets-began[1].ReceivedPackets, ended[1].ReceivedPackets-began[0].ReceivedPackets
			if in < least || in > most || least == 0 {
				t.Errorf("the capture shows %d packets received, want %d to %d and some", in, least, most)
			}
		})
	}
}

func readCapture(t *testing.T, tap *capture.Tap) (out, in uint64) {
	t.Helper()
	var p capture.Packet
	for tap.Next(&p) {
		if p.Ethernet && len(p.Data) > 14 && [2]byte(p.Data[12:14]) == [2]byte{8, 6} {
			continue // the link asks for neighbours when it likes
		}
		if p.Outbound {
			out++
		} else {
			in++
		}
		if p.Length != len(p.Data) || p.Missed != 0 {
			t.Fatalf("the capture holds %d of a packet's %d bytes and missed %d packets, want whole packets and none missed", len(p.Data),
				p.Length, p.Missed)
		}
		data := p.Data
		if p.Ethernet {
			var err error
			if _, data, err = eth.ParseEthernet(data); err != nil {
				t.Fatal(err)
			}
		}
		if p.InfiniBand {
			wantInfiniBand(t, data)
			continue
		}
		ip, rest, err := eth.ParseIPv4(data)
		if err != nil {
			t.Fatal(err)
		}
		udp, payload, err := eth.ParseUDP(rest)
		if err != nil {
			t.Fatal(err)
		}
		var s ib.ICRCScratch
		body := payload[:len(payload)-ib.ICRCLen]
		crc := ib.ICRCUpdate(ib.ICRCSeedIPv4(&s, ip, udp, body[:ib.BTHLen]), body[ib.BTHLen:])
		if crc != ib.ICRC(payload[len(body):]) {
			t.Fatalf("packet %d out, %d in: ICRC %#x, want %#x", out, in, ib.ICRC(payload[len(body):]), crc)
		}
	}
	return out, in
}

// wantInfiniBand checks an InfiniBand packet's length, ICRC and VCRC.
func wantInfiniBand(t *testing.T, data []byte) {
	t.Helper()
	body, vcrc := data[:len(data)-2], data[len(data)-2:]
	var b [2]byte
	if ib.PutVCRC(b[:], ib.VCRC(body)); string(b[:]) != string(vcrc) || ib.LRH(body).PktLen()*4 != len(body) {
		t.Fatalf("VCRC %x, want %x", vcrc, b)
	}
	var s ib.ICRCScratch
	front := body[:len(body)-ib.ICRCLen]
	crc := ib.ICRCUpdate(ib.ICRCSeedLRH(&s, front[:ib.LRHLen], nil, front[ib.LRHLen:ib.LRHLen+ib.BTHLen]), front[ib.LRHLen+ib.BTHLen:])
	if crc != ib.ICRC(body[len(front):]) {
		t.Fatalf("ICRC %#x, want %#x", ib.ICRC(body[len(front):]), crc)
	}
}

func TestCaptureLimit(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	i := h.add(t, AdapterConfig{Addr: loopback.Addr()})
	tap, err := capture.NewTap(64, capture.MinRing)
	if err != nil {
		t.Fatal(err)
	}
	for range maxTaps {
		if err := h.StartCapture(i, tap); err != nil {
			t.Fatal(err)
		}
	}
	var refused *command.Error
	if err := h.StartCapture(i, tap); !errors.As(err, &refused) || refused.Code != command.Exhausted {
		t.Errorf("one capture more: %v, want %v", err, command.Exhausted)
	}
}
