package team

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// FuzzFrame: whatever a frame is, Send and Receive of any type change nothing of it but addresses and a checksum, Send names a member that
// sends, or none, and what the team has to say for it is bounded.
func FuzzFrame(f *testing.F) {
	pdu := lacp.PDU{}
	for _, b := range [][]byte{sentFrom(1), sentTo(stationMAC), sentTo(memberMAC(1)), arp(2, strangeMAC, stationMAC, stationV4, peerV4),
		arp(2, stationMAC, strangeMAC, peerV4, stationV4), arp(1, eth.Broadcast, strangeMAC, peerV4, stationV4),
		advertisement(strangeMAC, stationMAC, stationV6, peerV6), everybody(stationV6, stationMAC, 7), switchesOnly(stationMAC, 7),
		pdu.Frame(strangeMAC),
		datagram(stationMAC, strangeMAC, netip.AddrPortFrom(stationV6, 1), netip.AddrPortFrom(peerV6, 2))} {
		f.Add(b, uint8(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint8) {
		for kind := AFT; kind <= SLA; kind++ {
			m := teamOf(t, kind, 2)
			drain(m)
			sent, got := bytes.Clone(b), bytes.Clone(b)
			if i := m.Send(0, sent, len(sent)); i < -1 || i >= 2 || i >= 0 && m.Status(i).Role != Active {
				t.Errorf("%v: it leaves by member %d", kind, i)
			}
			m.Receive(0, int(at%2), got)
			if len(m.queue) > 2 {
				t.Errorf("%v: %d frames follow it", kind, len(m.queue))
			}
			if len(b) > eth.EthernetLen && kindOf(b) != eth.TypeARP && kindOf(b) != eth.TypeIPv6 && kindOf(b) != eth.TypeVLAN {
				if !bytes.Equal(sent[12:], b[12:]) || !bytes.Equal(got[6:], b[6:]) {
					t.Errorf("%v: more than an address has changed", kind)
				}
			}
		}
	})
}

// FuzzNotice: what is read of a packet of ARP or neighbour discovery can be replaced, and is read again as it was put.
func FuzzNotice(f *testing.F) {
	for _, b := range [][]byte{arp(2, strangeMAC, stationMAC, stationV4, peerV4), advertisement(strangeMAC, stationMAC, stationV6, peerV6),
		everybody(stationV4, stationMAC, 7), told(peerKey{7, stationV6, peerV6}, strangeMAC, stationMAC)} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var x, y notice
		if !x.parse(b) {
			return
		}
		was := x
		x.say(b, memberMAC(3))
		if !y.parse(b) || y.mac != memberMAC(3) || from(b) != memberMAC(3) {
			t.Fatalf("it says %+v, want %v", y, memberMAC(3))
		}
		if y.addr != was.addr || y.to != was.to || y.answer != was.answer || y.vlan != was.vlan {
			t.Errorf("it says %+v instead of %+v", y, was)
		}
	})
}
