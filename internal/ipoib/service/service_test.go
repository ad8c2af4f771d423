package service

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	manager "github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/mad"
)

// bed is adapters on a fabric with a subnet manager, each on a host of its own with a port for IPoIB.
type bed struct {
	t     testing.TB
	rack  *live.Rack
	hosts []*device.Host
	ports []*Port
	plugs []*live.Port
}

func newBed(t testing.TB, adapters int, cfg subnet.Config) *bed {
	t.Helper()
	top, err := topology.Star(adapters, topology.Rate{Width: mad.Width4x, Speed: mad.SpeedEDR})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, rack: live.New(fabric.New(top, rand.Uint64), live.Options{})}
	t.Cleanup(func() { b.rack.Close() })
	if cfg.Limits == nil { // switches keep packets however long an adapter has no processor
		limits := subnet.DefaultLimits()
		limits.PacketLife, limits.HOQLife, limits.LeafHOQLife = 20, 20, 20
		cfg.Limits = &limits
	}
	ctx, cancel := context.WithCancel(context.Background())
	managed := make(chan error, 1)
	go func() { managed <- b.rack.Manage(ctx, fabric.Place{Node: 0, Port: 1}, manager.Config{Subnet: cfg}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-managed; err != nil {
			t.Error(err)
		}
	})
	for n := range adapters {
		h, err := device.NewHost(device.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		p, err := b.rack.Plug(fabric.Place{Node: n, Port: 1}, h.Wake)
		if err != nil {
			t.Fatal(err)
		}
		index, err := h.AddAdapter(device.AdapterConfig{Name: "port", Link: p})
		if err != nil {
			t.Fatal(err)
		}
		d, port, err := NewDevice(h, index, "port", p, rand.Uint64)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			port.Close()
			d.Close()
		})
		b.hosts, b.ports, b.plugs = append(b.hosts, h), append(b.ports, port), append(b.plugs, p)
	}
	return b
}

// add makes an interface with addresses on a port.
func (b *bed) add(port int, cfg ipoib.Config, addrs ...string) (*Interface, *system) {
	b.t.Helper()
	s := &system{got: make(chan []byte, 1024)}
	i, err := b.ports[port].Add(Config{Config: cfg}, s, s.tell)
	if err != nil {
		b.t.Fatal(err)
	}
	var list []netip.Prefix
	for _, a := range addrs {
		list = append(list, netip.MustParsePrefix(a))
	}
	i.Set(list, nil)
	return i, s
}

// system stands for a network interface of the system.
type system struct {
	got chan []byte

	mu      sync.Mutex
	mtu     int
	carrier bool
	events  []ipoib.Event
}

func (s *system) Write(_ offload.Header, pieces [][]byte) error {
	select {
	case s.got <- bytes.Join(pieces, nil):
	default:
	}
	return nil
}

func (s *system) SetMTU(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mtu = n
	return nil
}

func (s *system) SetCarrier(on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carrier = on
	return nil
}

func (s *system) tell(e ipoib.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *system) state() (mtu int, carrier bool, events []ipoib.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mtu, s.carrier, append([]ipoib.Event(nil), s.events...)
}

func (b *bed) until(what string, so func() bool) {
	b.t.Helper()
	await.Eventually(b.t, what, so)
}

func (b *bed) up(list ...*Interface) {
	b.t.Helper()
	for _, i := range list {
		b.until("up", func() bool { return i.Status().State == ipoib.Up })
	}
}

// udp returns an IP packet with a datagram of n bytes.
func udp(src, dst string, n int) []byte {
	s, d := netip.MustParseAddr(src), netip.MustParseAddr(dst)
	body := make([]byte, eth.UDPLen+n)
	eth.UDP(body).Encode(7, 7, len(body))
	if s.Is4() {
		b := make([]byte, eth.IPv4Len)
		eth.IPv4(b).Encode(0, len(b)+len(body), 0, 64, eth.ProtocolUDP, s.As4(), d.As4())
		return append(b, body...)
	}
	b := make([]byte, eth.IPv6Len)
	eth.IPv6(b).Encode(0, 0, len(body), eth.ProtocolUDP, 64, s.As16(), d.As16())
	return append(b, body...)
}

// take waits for a packet and skips others, such as queries of the multicast monitor.
func (s *system) take(t testing.TB, want []byte) {
	t.Helper()
	timeout := time.After(await.Limit)
	for {
		select {
		case p := <-s.got:
			if bytes.Equal(p, want) {
				return
			}
		case <-timeout:
			t.Fatal("the packet did not arrive")
		}
	}
}

// TestPacketsPass: packets pass between adapters of two hosts over both address families, up to the MTU of the
// subnet, and to groups.
func TestPacketsPass(t *testing.T) {
	four := partition.Default()
	four.List[0].Flags.MTU = 5 // 4096
	b := newBed(t, 2, subnet.Config{Partitions: four})
	x, sx := b.add(0, ipoib.Config{}, "10.0.0.1/24", "fd00::1/64")
	y, sy := b.add(1, ipoib.Config{}, "10.0.0.2/24", "fd00::2/64")
	b.up(x, y)
	b.until("carrier and MTU", func() bool { mtu, carrier, _ := sx.state(); return carrier && mtu == 4092 })
	for _, c := range []struct {
		from     *Interface
		to       *system
		src, dst string
	}{{x, sy, "10.0.0.1", "10.0.0.2"}, {y, sx, "10.0.0.2", "10.0.0.1"}, {x, sy, "fd00::1", "fd00::2"}, {y, sx, "fd00::2", "fd00::1"},
		{x, sy, "10.0.0.1", "10.0.0.255"}, {y, sx, "10.0.0.2", "224.0.0.1"}} {
		for _, size := range []int{0, 1000, 4092 - 48} {
			p := udp(c.src, c.dst, size)
			c.from.Send([][]byte{p})
			c.to.take(t, p)
		}
	}
	if _, _, events := sx.state(); len(events) != 1 || events[0].Kind != ipoib.Connected {
		t.Errorf("events %+v", events)
	}
	for n := range 5000 { // more than the queues hold
		p := udp("10.0.0.1", "10.0.0.2", n%1000)
		x.Send([][]byte{p})
		if n%100 == 99 {
			sy.take(t, p)
		}
	}
}

// TestResolveGID: a GID is found by its IP address; an address that no host has is unreachable, and the end of the
// context ends the wait.
func TestResolveGID(t *testing.T) {
	b := newBed(t, 2, subnet.Config{})
	x, _ := b.add(0, ipoib.Config{}, "10.0.0.1/24")
	y, _ := b.add(1, ipoib.Config{}, "10.0.0.2/24")
	b.up(x, y)
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	gid, err := x.ResolveGID(ctx, netip.MustParseAddr("::ffff:10.0.0.2"))
	if err != nil || gid != y.Status().Address.GID {
		t.Errorf("the address resolves to %v, %v; want the GID of y", gid, err)
	}
	if _, err := x.ResolveGID(ctx, netip.MustParseAddr("10.0.0.9")); !errors.Is(err, ipoib.ErrUnreachable) {
		t.Errorf("an address that nobody has: %v", err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if _, err := x.ResolveGID(over, netip.MustParseAddr("10.0.0.10")); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	x.Close()
	if _, err := x.ResolveGID(ctx, netip.MustParseAddr("10.0.0.2")); !errors.Is(err, ipoib.ErrDown) {
		t.Errorf("an interface that is closed: %v", err)
	}
}

// The adapters' connection manager finds ports by the addresses of the interfaces: a Resolver of package device.
var _ device.Resolver = (*Interface)(nil)

// TestTwoInterfacesOfAPort: interfaces of one port share its group memberships; those of one continue when the other
// ends.
func TestTwoInterfacesOfAPort(t *testing.T) {
	b := newBed(t, 2, subnet.Config{})
	x, sx := b.add(0, ipoib.Config{}, "10.0.0.1/24")
	y, sy := b.add(1, ipoib.Config{}, "10.0.0.2/24")
	z, sz := b.add(1, ipoib.Config{}, "10.0.0.3/24")
	b.up(x, y, z)
	p := udp("10.0.0.1", "10.0.0.3", 9)
	x.Send([][]byte{p})
	sz.take(t, p)
	q := udp("10.0.0.2", "10.0.0.3", 9) // between two interfaces of one port
	y.Send([][]byte{q})
	sz.take(t, q)
	z.Close()
	r := udp("10.0.0.1", "10.0.0.255", 9)
	x.Send([][]byte{r})
	sy.take(t, r)
	_ = sx
}

// TestPartitions: interfaces on a partition that two of three hosts belong to work among these, also limited members
// with full ones, and the third host's stays disconnected.
func TestPartitions(t *testing.T) {
	top, err := topology.Star(3, topology.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := partition.Parse(fmt.Sprintf("Default=0x7fff, ipoib: ALL=full;\nred=0x123, ipoib: %#x=full, %#x=limited;\n",
		top.Nodes[0].Ports[1].GUID, top.Nodes[1].Ports[1].GUID))
	if err != nil {
		t.Fatal(err)
	}
	b := newBed(t, 3, subnet.Config{Partitions: parts})
	x, _ := b.add(0, ipoib.Config{PKey: 0x8123}, "10.1.0.1/24")
	y, sy := b.add(1, ipoib.Config{PKey: 0x0123}, "10.1.0.2/24")
	z, _ := b.add(2, ipoib.Config{PKey: 0x8123}, "10.1.0.3/24")
	b.up(x, y)
	p := udp("10.1.0.1", "10.1.0.2", 9)
	x.Send([][]byte{p})
	sy.take(t, p)
	b.until("the third has no partition", func() bool { return z.Status().State == ipoib.NoPartition })
	if y.Status().PKey != 0x0123 || x.Status().PKey != 0x8123 {
		t.Errorf("second has %#x, first %#x", y.Status().PKey, x.Status().PKey)
	}
}

// TestOffloads: a large packet of the system arrives whole, joined again, or in segments of the MTU; one with a
// partial checksum arrives with a complete one. Every checksum on the fabric is right, and both sides count what they
// did.
func TestOffloads(t *testing.T) {
	b := newBed(t, 2, subnet.Config{})
	x, _ := b.add(0, ipoib.Config{}, "10.0.0.1/24")
	y, sy := b.add(1, ipoib.Config{}, "10.0.0.2/24")
	b.up(x, y)
	first := udp("10.0.0.1", "10.0.0.2", 1) // so that the neighbour is known for what follows
	x.Send([][]byte{first})
	sy.take(t, first)
	const segment, segments = 1900, 20
	payload := bytes.Repeat([]byte("large"), segment*segments/5)
	h, p := largeTCP(payload, segment)
	x.take(h, p)
	x.idle()
	got := 0
	for timeout := time.After(await.Limit); got < len(payload); {
		select {
		case q := <-sy.got:
			if q[9] != eth.ProtocolTCP {
				continue
			}
			if sequence := int(binary.BigEndian.Uint32(q[24:])); sequence != got || !bytes.Equal(q[40:], payload[got:got+len(q)-40]) {
				t.Fatalf("%d bytes from %d on, after %d", len(q)-40, sequence, got)
			}
			got += len(q) - 40
		case <-timeout:
			t.Fatalf("%d bytes of %d arrive", got, len(payload))
		}
	}
	if c := x.Status().Counters; c.LargeSends != 1 || c.Segments != segments || c.SentPackets != segments+1 {
		t.Errorf("the sender counts %+v, want one large send in %d segments", c, segments)
	}
	var c ipoib.Counters
	b.until("the receiver has counted", func() bool { // what it has joined it counts when the system has it
		c = y.Status().Counters
		return c.ReceivedPackets >= segments+1 && c.Joining <= c.Joined
	})
	if c.ChecksumErrors != 0 || c.Coalesced < c.Joined*2 || c.Joining > 1 {
		t.Errorf("the receiver counts %+v, want no checksum errors, and joined packets, of one connection", c)
	}
	q := udp("10.0.0.1", "10.0.0.2", 100)
	whole := bytes.Clone(q)
	eth.UDP(whole[20:]).SetChecksum(eth.UDPChecksum(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), q[20:]))
	bare := bytes.Clone(q)
	eth.UDP(bare[20:]).SetChecksum(^eth.PseudoChecksum(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), eth.ProtocolUDP,
		make([]byte, 108)))
	x.take(offload.Header{NeedsChecksum: true, ChecksumStart: 20, ChecksumAt: 6}, bare)
	x.idle()
	sy.take(t, whole)
	wrong := bytes.Clone(whole)
	wrong[40] ^= 1
	x.Send([][]byte{wrong}) // the system gets it and counts the error itself
	sy.take(t, wrong)
	b.until("the wrong checksum is counted", func() bool { return y.Status().Counters.ChecksumErrors == 1 })
}

// largeTCP returns a TCP packet that the system leaves to be segmented.
func largeTCP(payload []byte, segment int) (offload.Header, []byte) {
	p := make([]byte, eth.IPv4Len+20, eth.IPv4Len+20+len(payload))
	eth.IPv4(p).Encode(0, cap(p), 1, 64, eth.ProtocolTCP, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2})
	tcp := p[eth.IPv4Len:]
	tcp[12], tcp[13] = 5<<4, 0x10
	return offload.Header{NeedsChecksum: true, Kind: offload.TCPv4, Headers: 40, Segment: segment, ChecksumStart: 20, ChecksumAt: 16},
		append(p, payload...)
}

// TestQueuePairRecovers: a queue pair that enters the error state is restarted with its groups: packets to the
// interface's address and its groups pass again.
func TestQueuePairRecovers(t *testing.T) {
	b := newBed(t, 2, subnet.Config{})
	x, _ := b.add(0, ipoib.Config{}, "10.0.0.1/24")
	y, sy := b.add(1, ipoib.Config{}, "10.0.0.2/24")
	b.up(x, y)
	for n, broken := range []*Interface{y, x} {
		if err := broken.qp.(*queuePair).qp.Flush(); err != nil {
			t.Fatal(err)
		}
		for _, dst := range []string{"10.0.0.2", "10.0.0.255"} {
			p := udp("10.0.0.1", dst, 9+n)
			b.until("a packet to "+dst, func() bool { // packets under way meanwhile are lost
				x.Send([][]byte{p})
				select {
				case q := <-sy.got:
					return bytes.Equal(p, q)
				case <-time.After(20 * time.Millisecond):
					return false
				}
			})
		}
		if c := broken.Status().Counters; c.Recoveries == 0 {
			t.Errorf("the counters %+v count no recovery", c)
		}
	}
}

// TestQueuePairBeginsAnew: when the P_Key moves in the port's table the queue pair is started again, with its
// requests in progress.
func TestQueuePairBeginsAnew(t *testing.T) {
	b := newBed(t, 2, subnet.Config{})
	x, _ := b.add(0, ipoib.Config{}, "10.0.0.1/24")
	y, sy := b.add(1, ipoib.Config{}, "10.0.0.2/24")
	b.up(x, y)
	for n := range 5 {
		q := y.qp.(*queuePair)
		if err := q.Start(q.pkeyIndex, q.qkey); err != nil {
			t.Fatal(err)
		}
		for k := range 700 { // more than it has room for
			p := udp("10.0.0.1", "10.0.0.2", n*300+k%100)
			x.Send([][]byte{p})
			sy.take(t, p)
		}
	}
}

// TestBuffers: buffers are within the manual's limits (WinOF 5.50, 4.6.3), and an interface with the smallest carries
// packets.
func TestBuffers(t *testing.T) {
	b := newBed(t, 2, subnet.Config{})
	for _, bad := range []Buffers{{Send: 255}, {Send: 4097}, {Receive: 255}, {Receive: 4097}} {
		var field *ipoib.ConfigError
		if _, err := b.ports[0].Add(Config{Buffers: bad}, nil, nil); !errors.As(err, &field) {
			t.Errorf("%+v: %v, want an error about the field", bad, err)
		}
	}
	sy := &system{got: make(chan []byte, 1024)}
	y, err := b.ports[1].Add(Config{Buffers: Buffers{minBuffers, minBuffers}}, sy, sy.tell)
	if err != nil {
		t.Fatal(err)
	}
	y.Set([]netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}, nil)
	x, _ := b.add(0, ipoib.Config{}, "10.0.0.1/24")
	b.up(x, y)
	for n := range 3 * minBuffers {
		p := udp("10.0.0.1", "10.0.0.2", n)
		x.Send([][]byte{p})
		sy.take(t, p)
	}
}
