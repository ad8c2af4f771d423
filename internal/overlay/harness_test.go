package overlay

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// The host of the tests with its two adapters of red and one of blue, and another host with one of each. Red and blue have the same
// customer addresses; green is another subnet of red's routing domain.
const (
	red, blue, green       = 5001, 5002, 5003
	redA, redB, blueA Port = 2, 3, 4
	second                 = clock.Time(1e9)
)

func mac(n byte) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, n} }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

var (
	hostA, hostB, gate = addr("192.0.2.1"), addr("192.0.2.2"), addr("192.0.2.254")
	macA, macB         = mac(0xa0), mac(0xb0) // of the hosts
)

// tables of the tests, as the host with that address has them.
func tables(own netip.Addr, k tunnel.Kind) Tables {
	return Tables{
		Records: []Record{
			{red, addr("10.0.0.11"), mac(11), hostA}, {red, addr("10.0.0.12"), mac(12), hostA}, {red, addr("10.0.0.21"), mac(21), hostB},
			{red, addr("fd00::21"), mac(21), hostB}, {blue, addr("10.0.0.11"), mac(13), hostA}, {blue, addr("10.0.0.21"), mac(22), hostB},
			{green, addr("10.0.1.23"), mac(23), hostB}},
		Routes: []CustomerRoute{
			{"corp", red, netip.MustParsePrefix("10.0.0.0/24"), addr("0.0.0.0"), 255},
			{"corp", green, netip.MustParsePrefix("10.0.1.0/24"), addr("0.0.0.0"), 255},
			{"corp", red, netip.MustParsePrefix("0.0.0.0/0"), addr("10.0.0.21"), 255}},
		Addresses: []ProviderAddress{{netip.PrefixFrom(own, 24), 0, k}},
		Providers: []ProviderRoute{{netip.MustParsePrefix("0.0.0.0/0"), gate, 1}},
	}
}

// host is an engine of the tests.
type host struct {
	*testing.T
	*Engine
}

// newHost returns host A with its adapters; it knows host B's MAC if that is to be.
func newHost(t *testing.T, k tunnel.Kind, known bool) *host {
	t.Helper()
	h := &host{t, New(Config{MAC: macA, MTU: 1500})}
	h.can(h.SetTables(tables(hostA, k)),
		h.SetTenant(redA, red, mac(11)), h.SetTenant(redB, red, mac(12)), h.SetTenant(blueA, blue, mac(13)))
	h.drain()
	if known {
		h.way(0, hostB)
		h.learn(hostB, macB)
		h.drain()
	}
	return h
}

func (h *host) can(errs ...error) {
	h.Helper()
	for _, err := range errs {
		if err != nil {
			h.Fatal(err)
		}
	}
}

// learn brings the answer of who has an address.
func (h *host) learn(a netip.Addr, m eth.MAC) {
	e := eth.Ethernet{Dst: macA, Src: m, Type: eth.TypeARP}
	r := eth.ARP{Operation: eth.ARPReply, SenderMAC: m, SenderIP: a, TargetMAC: macA, TargetIP: hostA}
	h.Arrive(0, r.Append(e.Append(nil)), false)
}

// drain returns the frames that the engine sends itself.
func (h *host) drain() (list [][]byte) {
	for b := h.Next(); b != nil; b = h.Next() {
		list = append(list, b)
	}
	return list
}

// send sends a frame in two pieces, and returns what leaves in place of it.
func (h *host) send(from Port, b []byte) (v Verdict, wire []byte) {
	b = append([]byte(nil), b...)
	cut := min(len(b), 60)
	f := Frame{Head: b[:cut], Body: b[cut:]}
	if v = h.Send(0, from, &f); v.Outer != nil {
		wire = join(v.Outer, &f)
	}
	return v, wire
}

// packet returns a UDP datagram of n bytes of payload in a frame.
func packet(dst, src eth.MAC, to, from string, n int, tos, ttl uint8) []byte {
	s, d := addr(from), addr(to)
	e := eth.Ethernet{Dst: dst, Src: src, Type: eth.TypeIPv4}
	udp := make([]byte, eth.UDPLen+n)
	eth.UDP(udp).Encode(1000, 2000, len(udp))
	eth.UDP(udp).SetChecksum(eth.UDPChecksum(s, d, udp))
	if s.Is6() {
		e.Type = eth.TypeIPv6
		var ip [eth.IPv6Len]byte
		eth.IPv6(ip[:]).Encode(tos, 0, len(udp), eth.ProtocolUDP, ttl, s.As16(), d.As16())
		return append(append(e.Append(nil), ip[:]...), udp...)
	}
	var ip [eth.IPv4Len]byte
	eth.IPv4(ip[:]).Encode(tos, len(ip)+len(udp), 7, ttl, eth.ProtocolUDP, s.As4(), d.As4())
	return append(append(e.Append(nil), ip[:]...), udp...)
}

// plain is a packet of red's first adapter to the one on the other host.
func plain(n int) []byte { return packet(mac(21), mac(11), "10.0.0.21", "10.0.0.11", n, 0, 64) }

// tunnelled returns a frame of the other host in a tunnel.
func tunnelled(h tunnel.Header, inner []byte, change func(*tunnel.Outer)) []byte {
	o := tunnel.Outer{Ethernet: eth.Ethernet{Dst: macA, Src: macB}, Src: hostB, Dst: hostA, TTL: 9, SrcPort: 50000, DstPort: tunnel.Port}
	if change != nil {
		change(&o)
	}
	return o.Append(nil, h, inner)
}
