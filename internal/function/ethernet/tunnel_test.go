package ethernet

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// TestTunnels_Spread: RSS spreads what comes in one tunnel by the flows inside, whatever UseRSSForUDP says, and sends take the queue
// of their flow's other direction; where a tunnel is not recognized its own addresses and ports count.
func TestTunnels_Spread(t *testing.T) {
	at := func(port int) func(*Config) { return func(c *Config) { c.VxlanUDPPort = port } }
	off := func(c *Config) { c.TunnelNVGRE, c.TunnelVXLAN = 0, 0 }
	for name, c := range map[string]struct {
		tunnel func(flow, []byte) []byte
		change func(*Config)
		queues int
	}{
		"VXLAN":                      {vxlan, func(*Config) {}, 8},
		"VXLAN, UseRSSForUDP 0":      {vxlan, func(c *Config) { c.UseRSSForUDP = 0 }, 8},
		"VXLAN at another port":      {vxlan, at(4790), 1},
		"VXLAN, Vxlan 0":             {vxlan, func(c *Config) { c.TunnelVXLAN = 0 }, 1},
		"VXLAN, other tunnels 0":     {vxlan, func(c *Config) { c.TunnelNVGRE = 0 }, 8},
		"NVGRE":                      {nvgre, func(*Config) {}, 8},
		"NVGRE, UseRSSForRawIP 0":    {nvgre, func(c *Config) { c.UseRSSForRawIP = 0 }, 8},
		"NVGRE, both 0":              {nvgre, off, 1},
		"NVGRE, TunnelNVGRE alone 0": {nvgre, func(c *Config) { c.TunnelNVGRE = 0 }, 1},
	} {
		card := alone(t, plain(macB, c.change))
		used := map[int]bool{}
		for port := range uint16(200) {
			x := tcpFlow()
			x.src = netip4(x.src, 4000+port)
			b := c.tunnel(tcpFlow(), x.frame(counting(9)))
			card.arrive(0, b)
			q := card.host.packets[len(card.host.packets)-1].queue
			used[q] = true
			x.src, x.dst = x.dst, x.src
			back := tcpFlow()
			back.src, back.dst = back.dst, back.src
			sent := c.tunnel(back, x.frame(counting(9)))
			if got := card.QueueFor(sent); c.queues == 8 && got != q {
				t.Fatalf("%s: what comes in queue %d is answered in queue %d", name, q, got)
			}
		}
		if len(used) != c.queues {
			t.Errorf("%s: queues %v, want %d", name, used, c.queues)
		}
	}
}

// TestTunnels_Change: the keys act at once, VXLAN's port too.
func TestTunnels_Change(t *testing.T) {
	card := alone(t, plain(macB, func(c *Config) { c.UseRSSForUDP = 0 }))
	x := tcpFlow()
	b := vxlan(tcpFlow(), x.frame(nil))
	for _, c := range []struct {
		on, port int
		hashed   bool
	}{{1, tunnel.Port, true}, {1, 8472, false}, {0, tunnel.Port, false}, {1, tunnel.Port, true}} {
		cfg := card.Config()
		cfg.TunnelVXLAN, cfg.VxlanUDPPort = c.on, c.port
		if err := card.Change(cfg); err != nil {
			t.Fatal(err)
		}
		card.arrive(0, b)
		if p := card.host.packets[len(card.host.packets)-1]; (p.HashType != 0) != c.hashed {
			t.Errorf("%+v: hash of type %#x", c, p.HashType)
		}
	}
}

// TestTunnels_Checksums: those inside are looked at as well as those outside, by the keys for the protocols inside, and counted as one
// frame's. The host learns what is known of those outside.
func TestTunnels_Checksums(t *testing.T) {
	tcp := tcpFlow().frame(counting(9))
	wrong := append([]byte(nil), tcp...)
	wrong[len(wrong)-1]++
	noSum := func(b []byte) []byte { // RFC 7348, 5: UDP without a checksum
		copy(b[14+20+6:], []byte{0, 0})
		return b
	}
	resum := func(b []byte) []byte { // the outside covers what is inside, whatever that is
		var h eth.Headers
		h.Parse(b)
		copy(b[h.Transport+6:], []byte{0, 0})
		offload.Make(offload.MakeTransport, &h, pseudoed(&h, b))
		return b
	}
	type counts struct{ good, bad, none uint64 }
	for name, c := range map[string]struct {
		frame  []byte
		change func(*Config)
		want   counts
	}{
		"right":                    {noSum(vxlan(tcpFlow(), tcp)), func(*Config) {}, counts{good: 1}},
		"wrong inside":             {noSum(vxlan(tcpFlow(), wrong)), func(*Config) {}, counts{bad: 1}},
		"wrong inside, Vxlan 0":    {noSum(vxlan(tcpFlow(), wrong)), func(c *Config) { c.TunnelVXLAN = 0 }, counts{good: 1}},
		"wrong inside, key of TCP": {noSum(vxlan(tcpFlow(), wrong)), func(c *Config) { c.TCPUDPChecksumIPv4 = 1 }, counts{good: 1}},
		"wrong inside of a right":  {resum(vxlan(tcpFlow(), wrong)), func(*Config) {}, counts{bad: 1}},
		"NVGRE":                    {nvgre(tcpFlow(), tcp), func(*Config) {}, counts{good: 1}},
		"NVGRE, wrong inside":      {nvgre(tcpFlow(), wrong), func(*Config) {}, counts{bad: 1}},
		"NVGRE 0":                  {nvgre(tcpFlow(), wrong), func(c *Config) { c.TunnelNVGRE = 0 }, counts{good: 1}},
		"none at all": {noSum(vxlan(tcpFlow(), wrong)), func(c *Config) { c.IPChecksumIPv4, c.TCPUDPChecksumIPv4 = 1, 1 },
			counts{none: 1}},
	} {
		card := alone(t, plain(macB, c.change))
		card.arrive(0, c.frame)
		r := card.Counters().Received
		if got := (counts{r.ChecksumGood, r.ChecksumBad, r.ChecksumNone}); got != c.want || len(card.host.packets) != 1 {
			t.Errorf("%s: %+v, want %+v; %d packets", name, got, c.want, len(card.host.packets))
			continue
		}
		if s := card.host.packets[0].Sums; s&(offload.BadTransport|offload.BadIP) != 0 {
			t.Errorf("%s: the host is told %b of the outside", name, s)
		}
	}
}

// pseudoed writes the sum of the pseudo header into a datagram's checksum, as whoever leaves the rest to others does.
func pseudoed(h *eth.Headers, b []byte) []byte {
	udp := b[h.Transport:h.End]
	s := uint32(eth.ProtocolUDP) + uint32(len(udp))
	for at := h.Network + 12; at < h.Network+20; at += 2 {
		s += uint32(binary.BigEndian.Uint16(b[at:]))
	}
	s = s>>16 + s&0xffff
	binary.BigEndian.PutUint16(udp[6:], uint16(s>>16+s))
	return b
}

// TestTunnels_Hostile: what is no whole tunnel, and bursts of datagrams, go by what is outside.
func TestTunnels_Hostile(t *testing.T) {
	whole := vxlan(tcpFlow(), tcpFlow().frame(counting(9)))
	for n := 14; n < len(whole); n++ {
		card := alone(t, plain(macB))
		card.arrive(0, whole[:n])
		if c := card.Counters(); len(card.host.packets) != 1 && c.Malformed == 0 {
			t.Errorf("%d bytes: %s", n, fmt.Sprint(c))
		}
	}
	card := alone(t, plain(macB))
	burst := []frame.In{{Data: whole, Task: offload.Task{Kind: offload.UDP, Segment: 20}}}
	card.Receive(0, burst)
	if p := card.host.packets; len(p) == 0 || p[0].HashType == 0 {
		t.Errorf("a burst: %+v", p)
	}
}

// TestTunnels_Allocations: frames in tunnels are received, and their queues chosen, without a piece of memory for each.
func TestTunnels_Allocations(t *testing.T) {
	f, host := benchFunction(t)
	b := vxlan(tcpFlow(), tcpFlow().frame(counting(1000)))
	in := []frame.In{{Data: b, Raw: true}}
	turn := func() {
		f.Receive(0, in)
		f.QueueFor(b)
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n != 0 || host.packets == 0 {
		t.Errorf("a turn allocates %v times; %d packets", n, host.packets)
	}
}
