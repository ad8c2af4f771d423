package team

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestReceive_FaultTolerant: only the active member's frames are for the stations, and what the team itself has sent is not.
func TestReceive_FaultTolerant(t *testing.T) {
	for _, kind := range []Type{AFT, SFT} {
		m := teamOf(t, kind, 2)
		for i, want := range []bool{true, false} {
			if got := m.Receive(0, i, sentTo(stationMAC)); got != want {
				t.Errorf("%v: member %d takes a frame: %v, want %v", kind, i, got, want)
			}
		}
		if m.Receive(0, 0, sentFrom(1)) {
			t.Errorf("%v: a frame of the station itself comes back to it", kind)
		}
		if c := m.Counters(); c.StoodBy != 1 || c.Returned != 1 {
			t.Errorf("%v: counted %+v", kind, c)
		}
	}
}

// TestReceive_Balanced: what a switch floods is taken once; what is for a member's own address there, for the station.
func TestReceive_Balanced(t *testing.T) {
	for _, kind := range []Type{SLB, RLB, ALB} {
		m := teamOf(t, kind, 3)
		for _, dst := range []eth.MAC{stationMAC, eth.Broadcast, strangeMAC} {
			for i := range 3 {
				if got := m.Receive(0, i, sentTo(dst)); got != (i == 0) {
					t.Errorf("%v: member %d takes a frame to %v: %v", kind, i, dst, got)
				}
			}
		}
		for i := range 3 {
			b := sentTo(m.Own(i))
			if !m.Receive(0, i, b) || eth.MAC(b) != stationMAC {
				t.Errorf("%v: a frame to member %d's address is to %v at the station", kind, i, eth.MAC(b))
			}
			if m.Receive(0, (i+1)%3, sentTo(m.Own(i))) && i != 2 { // the active one hands up all else
				t.Errorf("%v: a frame to member %d's address is taken at another", kind, i)
			}
		}
	}
}

// TestReceive_Stations: with several stations in a VLAN what is sent to a member's address goes to that which has the IP address, and to
// none if none has it.
func TestReceive_Stations(t *testing.T) {
	m := teamOf(t, ALB, 2)
	second := eth.MAC{0x02, 0xaa, 0, 0, 0, 2}
	other := netip.MustParseAddr("10.0.0.9")
	m.SetStations([]Station{{MAC: stationMAC, Addrs: []netip.Addr{stationV4}}, {MAC: second, Addrs: []netip.Addr{other}}})
	for to, want := range map[netip.Addr]eth.MAC{stationV4: stationMAC, other: second, peerV4: {}} {
		b := datagram(strangeMAC, m.Own(1), netip.AddrPortFrom(peerV4, 1), netip.AddrPortFrom(to, 2))
		if taken := m.Receive(0, 1, b); taken != (want != eth.MAC{}) || taken && eth.MAC(b) != want {
			t.Errorf("a frame for %v is taken: %v, by %v, want %v", to, taken, eth.MAC(b), want)
		}
	}
	if c := m.Counters(); c.Strange != 1 {
		t.Errorf("%d frames for nobody, want 1", c.Strange)
	}
}

// TestOwn: a member whose address a station has taken sends from another one.
func TestOwn(t *testing.T) {
	m := teamOf(t, SLB, 2)
	m.SetStations([]Station{{MAC: memberMAC(1)}})
	if m.Own(0) != memberMAC(0) || m.Own(1) == memberMAC(1) || m.Own(1) == m.Own(0) || m.Own(1)[0]&1 != 0 {
		t.Errorf("members have %v and %v beside a station %v", m.Own(0), m.Own(1), memberMAC(1))
	}
}

// TestSend_Balanced: a frame that leaves by a member that is not active comes from its own address; groups, questions and what is no IP
// leave by the active one, as the station has made them.
func TestSend_Balanced(t *testing.T) {
	for _, kind := range []Type{SLB, RLB, ALB} {
		m := teamOf(t, kind, 3)
		for p := range uint16(64) {
			b := sentFrom(p)
			i := m.Send(0, b, len(b))
			want := stationMAC
			if i != 0 {
				want = m.Own(i)
			}
			if from(b) != want {
				t.Errorf("%v: a frame by member %d is from %v, want %v", kind, i, from(b), want)
			}
		}
		lldp := append(header(strangeMAC, stationMAC, 0, 0x88cc), 0, 0)
		for _, b := range [][]byte{arp(eth.ARPRequest, eth.Broadcast, stationMAC, stationV4, peerV4), lldp,
			arp(eth.ARPRequest, strangeMAC, stationMAC, stationV4, peerV4)} {
			if i := m.Send(0, b, len(b)); i != 0 || from(b) != stationMAC {
				t.Errorf("%v: %x leaves by member %d from %v", kind, kindOf(b), i, from(b))
			}
		}
	}
}

// TestAnswers: with RLB and ALB answers to peers name the members in turn, each leaves by the member that it names, and a peer gets the
// same answer again; with SLB all name the station.
func TestAnswers(t *testing.T) {
	for _, kind := range []Type{SLB, RLB, ALB} {
		m := teamOf(t, kind, 3)
		count := map[eth.MAC]int{}
		for round := range 2 {
			for p := range 30 {
				peer := netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + p)})
				b := arp(eth.ARPReply, strangeMAC, stationMAC, stationV4, peer)
				i := m.Send(0, b, len(b))
				a, err := eth.ParseARP(b[eth.EthernetLen:])
				if err != nil || a.SenderMAC != from(b) || i > 0 && from(b) != m.Own(i) || i == 0 && from(b) != stationMAC {
					t.Fatalf("%v: an answer by member %d says %v from %v: %v", kind, i, a.SenderMAC, from(b), err)
				}
				count[a.SenderMAC]++
			}
			want := (round + 1) * 10
			if kind == SLB {
				want *= 3
			}
			if count[stationMAC] != want {
				t.Errorf("%v: %d answers name the station, want %d of %v", kind, count[stationMAC], want, count)
			}
		}
	}
}

// TestAnswers_Discovery: an advertisement names the member in its option, and has the checksum of what it says then.
func TestAnswers_Discovery(t *testing.T) {
	m := teamOf(t, ALB, 2)
	seen := map[eth.MAC]bool{}
	for p := range 8 {
		peer := peerV6.As16()
		peer[15] = byte(10 + p)
		b := advertisement(strangeMAC, stationMAC, stationV6, netip.AddrFrom16(peer))
		i := m.Send(0, b, len(b))
		var x notice
		if !x.parse(b) { // which checks the sum
			t.Fatalf("an answer by member %d cannot be read: %x", i, b)
		}
		if x.mac != from(b) || !x.answer || x.addr != stationV6 {
			t.Errorf("an answer by member %d from %v says %+v", i, from(b), x)
		}
		seen[x.mac] = true
	}
	if !seen[stationMAC] || !seen[m.Own(1)] {
		t.Errorf("answers name %v, want both members", seen)
	}
}

// TestPeers_Bounded: however many ask, so many are known as there is room for, and the one that has asked longest ago is forgotten.
func TestPeers_Bounded(t *testing.T) {
	m := teamOf(t, RLB, 2)
	for p := range mostPeers + 100 {
		b := arp(eth.ARPReply, strangeMAC, stationMAC, stationV4, netip.AddrFrom4([4]byte{10, 1, byte(p >> 8), byte(p)}))
		m.Send(0, b, len(b))
	}
	if n := len(m.peers.known); n != mostPeers {
		t.Errorf("%d peers are known, want %d", n, mostPeers)
	}
	if m.peers.known[peerKey{0, stationV4, netip.MustParseAddr("10.1.0.0")}] != nil {
		t.Error("the first one is still known")
	}
}

// TestAnswered: a peer that answers has heard the station's own address, and is told another if the active member has its share.
func TestAnswered(t *testing.T) {
	m := teamOf(t, ALB, 2)
	pass(m, clock.Never) // the announcements of the start
	for p := range 2 {
		peer := netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + p)})
		if !m.Receive(0, 0, arp(eth.ARPReply, stationMAC, strangeMAC, peer, stationV4)) {
			t.Fatal("an answer is not taken")
		}
	}
	m.Advance(clock.Time(retellAfter))
	got := drain(m)
	if len(got) != 1 || got[0].member != 1 || from(got[0].frame) != m.Own(1) || eth.MAC(got[0].frame) != strangeMAC {
		t.Errorf("told %v, want one of two peers the second member", got)
	}
}
