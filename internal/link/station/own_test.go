package station

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestOwn: what a link sends and receives itself for a station is counted for that station: its announcement, a question for its
// address and the answer; what is handed up is not.
func TestOwn(t *testing.T) {
	var sent int
	s := New(Config{Name: "test link", MTU: 1500, Wire: func(b []byte) { sent += len(b) }})
	mac, other := eth.MAC{2, 0, 0, 0, 0, 1}, eth.MAC{2, 0, 0, 0, 0, 2}
	addr := netip.MustParseAddr("10.0.0.1")
	for _, m := range []eth.MAC{mac, other} {
		if err := s.SetStation(link.Station{MAC: m, Prefixes: []netip.Prefix{netip.PrefixFrom(addr, 24)}}); err != nil {
			t.Fatal(err)
		}
		addr = addr.Next()
	}
	began := s.Own(mac)
	if began.SentPackets != 1 || began.ReceivedPackets != 0 || s.Own(other).SentPackets != 1 {
		t.Fatalf("after the announcements: %+v, %+v", began, s.Own(other))
	}
	ask := eth.ARP{Operation: eth.ARPRequest, SenderMAC: eth.MAC{2, 9}, SenderIP: netip.MustParseAddr("10.0.0.9"),
		TargetIP: netip.MustParseAddr("10.0.0.1")}
	question := ask.Append((&eth.Ethernet{Dst: mac, Src: ask.SenderMAC, Type: eth.TypeARP}).Append(nil))
	for i := range 3 {
		if s.Wants(question) {
			t.Fatal("a question for the link is handed up")
		}
		o, n := s.Own(mac), uint64(i+1)
		if o.SentPackets != n+1 || o.ReceivedPackets != n || o.ReceivedBytes != n*uint64(len(question)) {
			t.Errorf("after %d questions: %+v", i+1, o)
		}
	}
	if !s.Wants(append((&eth.Ethernet{Dst: mac, Src: ask.SenderMAC, Type: 0x88b5}).Append(nil), make([]byte, 46)...)) {
		t.Error("a frame for the station is not")
	}
	if o, p := s.Own(mac), s.Own(other); o.ReceivedPackets != 3 || p.ReceivedPackets != 0 || o.SentBytes+p.SentBytes != uint64(sent) {
		t.Errorf("in the end: %+v, %+v, %d bytes sent", o, p, sent)
	}
}
