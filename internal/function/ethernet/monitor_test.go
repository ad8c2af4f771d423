package ethernet

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/wire/eth"
)

// vxlan returns a flow's frame that carries another frame in VXLAN (RFC 7348, 5).
func vxlan(outer flow, inner []byte) []byte {
	b := outer.udp().frame(slices.Concat([]byte{8, 0, 0, 0, 0, 0x12, 0x34, 0}, inner))
	var h eth.Headers
	h.Parse(b)
	binary.BigEndian.PutUint16(b[h.Transport+2:], 4789)
	return b
}

// nvgre returns a flow's IPv4 frame that carries another frame in NVGRE (RFC 7637, 3.2).
func nvgre(outer flow, inner []byte) []byte {
	b := outer.udp().frame(slices.Concat(inner, make([]byte, 8)))
	var h eth.Headers
	h.Parse(b)
	b[h.Network+9] = 47
	copy(b[h.Transport:], []byte{0x20, 0, 0x65, 0x58, 0, 0, 1, 0})
	copy(b[h.Transport+8:], inner)
	eth.IPv4(b[h.Network:]).SetChecksum()
	return b
}

// TestRSSCounters: the kinds of "Mellanox Adapter Rss Counters" (WinOF 5.50, 4.9.4.4.2): what has a hash by what was hashed, what
// has none by its headers, and both in tunnels and not.
func TestRSSCounters(t *testing.T) {
	x := tcpFlow()
	tcp, udp6 := x.frame(nil), x.v6().udp().frame(counting(9))
	arp := append(x.frame(nil)[:12], 8, 6)
	for name, c := range map[string]struct {
		frame []byte
		types rss.Types
		want  int
	}{
		"TCP":                   {tcp, rss.All, bare + hashed + kindIPv4TCP},
		"TCP by addresses":      {tcp, rss.IPv4, bare + hashed + kindIPv4},
		"TCP without a hash":    {tcp, 0, bare + kindIPv4TCP},
		"UDP over IPv6":         {udp6, rss.All, bare + hashed + kindIPv6UDP},
		"no IP":                 {arp, rss.All, bare + kindMisc},
		"VXLAN":                 {vxlan(x, tcp), rss.All, hashed + kindIPv4TCP},
		"VXLAN by addresses":    {vxlan(x, tcp), rss.IPv4, hashed + kindIPv4},
		"VXLAN without a hash":  {vxlan(x, udp6), 0, kindIPv6UDP},
		"VXLAN of ARP":          {vxlan(x, arp), rss.All, kindMisc},
		"VXLAN of nothing":      {vxlan(x, nil), 0, bare + kindIPv4UDP},
		"NVGRE":                 {nvgre(x, tcp), rss.All, hashed + kindIPv4TCP},
		"NVGRE without a hash":  {nvgre(x, tcp), 0, kindIPv4TCP},
		"another kind of GRE":   {append(nvgre(x, tcp)[:34], append([]byte{0x30, 0}, nvgre(x, tcp)[36:]...)...), 0, bare + kindIPv4},
		"UDP of no tunnel":      {x.udp().frame(tcp), 0, bare + kindIPv4UDP},
		"VXLAN over IPv6":       {vxlan(x.v6(), tcp), 0, kindIPv4TCP},
		"VXLAN, short of eight": {vxlan(x, nil)[:46], 0, bare + kindIPv4UDP},
	} {
		if name == "VXLAN, short of eight" { // its lengths say so too
			b := c.frame
			binary.BigEndian.PutUint16(b[16:], uint16(len(b)-14))
			binary.BigEndian.PutUint16(b[38:], uint16(len(b)-34))
		}
		card := alone(t, plain(macB, func(c *Config) { c.RssMonitoringEnabled, c.RssCountersActivatedAtStartup = 1, 1 }))
		card.SetHash(&rss.DefaultKey, c.types)
		card.arrive(0, c.frame)
		var want RSSCounters
		want[c.want] = 1
		if got := rssCounters(card); got != want {
			t.Errorf("%s: %v, want one of kind %d", name, got, c.want)
		}
	}
}

// TestRSSCounters_Begin: RssMonitoringEnabled allows the counters, which begin at the adapter's start or when somebody looks
// (WinOF 5.50, 4.9.4.4.2.1: RssCountersActivatedAtStartup).
func TestRSSCounters_Begin(t *testing.T) {
	for _, c := range []struct{ enabled, atStart, before, after int }{{0, 0, 0, 0}, {0, 1, 0, 0}, {1, 0, 0, 1}, {1, 1, 1, 2}} {
		card := alone(t, plain(macB, func(f *Config) { f.RssMonitoringEnabled, f.RssCountersActivatedAtStartup = c.enabled, c.atStart }))
		counted := func() int {
			card.arrive(0, tcpFlow().frame(nil))
			n := rssCounters(card)
			return int(n[bare+hashed+kindIPv4TCP])
		}
		if n := counted(); n != c.before {
			t.Errorf("%+v: %d frames before anybody looks", c, n)
		}
		card.WatchRSS()
		if n := counted(); n != c.after {
			t.Errorf("%+v: %d frames after", c, n)
		}
	}
}
