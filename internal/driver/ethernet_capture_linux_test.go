package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// kindsOf counts the frames of a capture by direction, to or from a MAC, and kind.
func kindsOf(t *testing.T, mac eth.MAC, read func() ([]byte, error)) map[string]int {
	t.Helper()
	n := map[string]int{}
	for {
		b, err := read()
		if errors.Is(err, io.EOF) {
			return n
		}
		var h eth.Headers
		if err != nil || !h.Parse(b) {
			t.Fatalf("%x: %v", b, err)
		}
		kind := fmt.Sprintf("0x%04x", uint16(h.Type))
		if h.Version == 4 {
			kind = map[uint8]string{eth.ProtocolTCP: "TCP", eth.ProtocolUDP: "UDP"}[h.Protocol]
			if h.Protocol == eth.ProtocolUDP && bytes.Equal(b[h.Transport+2:h.Transport+4], []byte{0x12, 0xb7}) {
				kind = "RoCE"
			}
		}
		direction := "in "
		if eth.MAC(b[6:]) == mac {
			direction = "out "
		}
		n[direction+kind]++
	}
}

// packet returns a guest's frame with an IPv4 packet of a protocol, with n bytes behind its header.
func (g *guest) packet(to eth.MAC, protocol byte, n int) []byte {
	f := g.frame(to, "")[:eth.EthernetLen]
	f[12], f[13] = 8, 0
	ip := append([]byte{0x45, 0, 0, byte(20 + n), 0, 1, 0, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2}, make([]byte, n)...)
	if protocol == eth.ProtocolTCP {
		ip[20+12] = 5 << 4
	}
	eth.IPv4(ip).SetChecksum()
	return append(f, ip...)
}

// TestEthernetCapture: a capture of a port shows what both of its functions send and receive, Ethernet and RDMA; and the capture
// of what has no RSS hash (WinOF 5.50, 4.9.4.4.1) shows RDMA and those received frames that RSS does not spread.
func TestEthernetCapture(t *testing.T) {
	t.Parallel()
	cfg := overSockets(t)
	near, far := withGuest(t, &cfg[0], "02:00:00:00:00:01"), withGuest(t, &cfg[1], "02:00:00:00:00:02")
	cfg[0].Adapters[0].Generation = "mlx4"
	d, other := start(t, cfg[0]), start(t, cfg[1])
	defer stop(t, d)
	defer stop(t, other)
	set(t, d, "port", rssMonitoring, "1")
	set(t, d, "port", "UseRSSForRawIP", "0")
	restart(t, d, "port")
	near.gets(t, "before", func() { far.send(t, far.frame(near.mac, "before")) })

	admin := NewAdmin(cfg[0].Socket)
	id, stream, err := admin.StartCapture(t.Context(), CaptureRequest{Adapter: "port"})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := d.StartPacketBuffer("port", api.PacketBufferRequest{Packets: 4096, Bytes: 60}); err != nil {
		t.Fatal(err)
	}
	const each = 5
	const icmp = 1
	received := func(d *Driver) uint64 { return d.Status().Adapters[0].Ethernet.Counters["received_packets"] }
	for range each { // no more at a time than sockets hold (net.unix.max_dgram_qlen), however late they are read
		before, there := received(d), received(other)
		far.send(t, far.packet(near.mac, eth.ProtocolTCP, 200))
		far.send(t, far.packet(near.mac, icmp, 100))
		near.send(t, near.packet(far.mac, eth.ProtocolTCP, 100))
		await.Eventually(t, "the frames arrive", func() bool { return received(d) >= before+2 && received(other) > there })
	}
	far.gets(t, "after", func() { near.send(t, near.frame(far.mac, "after")) })
	across(t, end{d, 0}, end{other, 0})
	await.Eventually(t, "all frames arrive", func() bool { // before these were "before" frames only
		return d.Status().Adapters[0].Ethernet.Counters["received_packets"] >= 2*each
	})
	if err := admin.StopCapture(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	n := kindsOf(t, near.mac, func() ([]byte, error) { b, _, err := r.ReadPacketData(); return b, err })
	if n["in TCP"] != each || n["out TCP"] != each || n["in "] != each || n["out 0x88b5"] == 0 || n["in RoCE"] == 0 || n["out RoCE"] < 16 {
		t.Errorf("captured %v", n)
	}
	without := func() map[string]int {
		pcap, err := d.CollectPackets("port")
		if err != nil {
			t.Fatal(err)
		}
		r, err := pcapgo.NewReader(bytes.NewReader(pcap))
		if err != nil {
			t.Fatal(err)
		}
		return kindsOf(t, near.mac, func() ([]byte, error) {
			b, _, err := r.ReadPacketData()
			if len(b) > 60 {
				t.Errorf("%d bytes of a packet, want at most 60", len(b))
			}
			if err == nil && len(b) == 60 { // cut off: its IP packet is parsed as if it ended here
				b = bytes.Clone(b)
				if b[12] == 8 && b[13] == 0 {
					b[16], b[17] = 0, 46
				}
			}
			return b, err
		})
	}
	n = without()
	if n["in "] != each || n["in RoCE"] == 0 || n["in TCP"] != 0 {
		t.Errorf("without a hash: %v", n)
	}
	for kind := range n {
		if strings.HasPrefix(kind, "out ") {
			t.Errorf("without a hash: %v, want none that was sent", n)
		}
	}
}

// TestEthernetCapture_SharedWire: the capture of what an adapter receives without a hash shows no frames of the other adapter at its
// port, but those that come from it.
func TestEthernetCapture_SharedWire(t *testing.T) {
	t.Parallel()
	cfg := overSockets(t)
	near, far := withGuest(t, &cfg[0], "02:00:00:00:00:01"), withGuest(t, &cfg[1], "02:00:00:00:00:02")
	cfg[0].Adapters[0].Generation = "mlx4"
	more := config.Config{Adapters: []config.Adapter{cfg[0].Adapters[0]}}
	beside := withGuest(t, &more, "02:00:00:00:00:03")
	more.Adapters[0].Name, more.Adapters[0].Address = "beside", netip.MustParseAddr("192.0.2.3")
	cfg[0].Adapters = append(cfg[0].Adapters, more.Adapters[0])
	d, other := start(t, cfg[0]), start(t, cfg[1])
	defer stop(t, d)
	defer stop(t, other)
	set(t, d, "port", rssMonitoring, "1")
	restart(t, d, "port")
	near.gets(t, "before", func() { far.send(t, far.frame(near.mac, "before")) })
	beside.gets(t, "before", func() { far.send(t, far.frame(beside.mac, "before")) })
	if _, err := d.StartPacketBuffer("port", api.PacketBufferRequest{}); err != nil {
		t.Fatal(err)
	}
	beside.gets(t, "to beside", func() { far.send(t, far.frame(beside.mac, "to beside")) })
	far.gets(t, "sent", func() { near.send(t, near.frame(far.mac, "sent")) })
	beside.gets(t, "sent inside", func() { near.send(t, near.frame(beside.mac, "sent inside")) })
	far.gets(t, "all, from near", func() { near.send(t, near.frame(eth.Broadcast, "all, from near")) })
	for name, from := range map[string]*guest{"far": far, "beside": beside} {
		near.gets(t, "from "+name, func() { from.send(t, from.frame(near.mac, "from "+name)) })
		near.gets(t, "all, from "+name, func() { from.send(t, from.frame(eth.Broadcast, "all, from "+name)) })
	}
	pcap, err := d.CollectPackets("port")
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewReader(bytes.NewReader(pcap))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for b, _, err := r.ReadPacketData(); err == nil; b, _, err = r.ReadPacketData() {
		if [2]byte(b[12:14]) == [2]byte{0x88, 0xb5} {
			if text := string(bytes.TrimRight(b[eth.EthernetLen:], "\x00")); text != "before" { // one may come late
				seen[text] = true
			}
		}
	}
	want := map[string]bool{"from far": true, "all, from far": true, "from beside": true, "all, from beside": true}
	for text := range seen {
		if !want[text] {
			t.Errorf("%q is kept", text)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("kept are %v, want %v", seen, want)
	}
}
