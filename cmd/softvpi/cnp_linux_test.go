package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// notice is a congestion notification packet in its frame, as network cards send it (IBA annex A17.9.3). It is made here byte by byte, by
// none of the code that is tested.
type notice struct {
	from, to         net.HardwareAddr
	src, dst         netip.Addr
	id, port, udpSum uint16 // the IP identification, the UDP source port, and a checksum, which cards leave out
	qpn              uint32
	dscp, hops       byte
	tag              []byte // an 802.1Q header, or nothing
}

// frame returns the bytes of a notification.
func (n notice) frame() []byte {
	const ipLen, udpLen, bodyLen, icrcLen = 20, 8, 28, 4
	be := binary.BigEndian
	ip := []byte{0x45, n.dscp << 2}
	ip = be.AppendUint16(ip, ipLen+udpLen+bodyLen+icrcLen)
	ip = be.AppendUint16(ip, n.id)
	ip = append(ip, 0x40, 0, n.hops, 17, 0, 0) // may not be divided; UDP
	ip = append(append(ip, n.src.AsSlice()...), n.dst.AsSlice()...)
	var sum uint32
	for i := 0; i < ipLen; i += 2 {
		sum += uint32(be.Uint16(ip[i:]))
	}
	sum = sum&0xffff + sum>>16
	be.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	b := be.AppendUint16(ip, n.port)
	b = be.AppendUint16(b, 4791)
	b = be.AppendUint16(b, udpLen+bodyLen+icrcLen)
	b = be.AppendUint16(b, n.udpSum)
	// Opcode 0x81, MigReq, the default P_Key, BECN and the queue pair; no PSN, and 16 bytes that are reserved.
	b = append(b, 0x81, 0x40, 0xff, 0xff)
	b = be.AppendUint32(b, 0x40<<24|n.qpn)
	b = append(b, make([]byte, 4+16)...)
	b = binary.LittleEndian.AppendUint32(b, invariant(b))
	f := append(append(bytes.Clone(n.to), n.from...), n.tag...)
	return append(append(f, 8, 0), b...)
}

// invariant returns the ICRC of an IPv4 packet (A17.3.3): CRC-32 with what may change on the way taken for ones, behind eight bytes of
// ones.
func invariant(packet []byte) uint32 {
	const tos, hops, ipSum, udpSum, resv = 1, 8, 10, 20 + 6, 28 + 4
	m := append(bytes.Repeat([]byte{0xff}, 8), packet...)
	for _, i := range []int{tos, hops, ipSum, ipSum + 1, udpSum, udpSum + 1, resv} {
		m[8+i] = 0xff
	}
	return crc32.ChecksumIEEE(m)
}

// The notification of these tests has the bytes of one that another program has written, and whose ICRC a third one has found right.
func TestNoticeOfACard_IsTheRecordedOne(t *testing.T) {
	const recorded = "020000000b01020000000a01080045c0003c00004000401125ef0a0000010a000002c12312b700280000" +
		"8140ffff40000012000000000000000000000000000000000000000075a62d7e"
	n := notice{from: net.HardwareAddr{2, 0, 0, 0, 0x0a, 1}, to: net.HardwareAddr{2, 0, 0, 0, 0x0b, 1},
		src: netip.MustParseAddr("10.0.0.1"), dst: netip.MustParseAddr("10.0.0.2"), port: 0xc123, qpn: 0x12, dscp: 48, hops: 64}
	if got := hex.EncodeToString(n.frame()); got != recorded {
		t.Errorf("%s, want\n%s", got, recorded)
	}
}

// TestNotificationsOfACard: what a queue pair does when a network card notifies it of congestion, by packets that a socket puts on the
// wire byte by byte: its rate falls, and what it sends with it; counters tell those that count from those of others and those that are
// broken; when they end it is as fast as before. Notifications of ours have the same bytes.
func TestNotificationsOfACard(t *testing.T) {
	systemtest.Mark(t)
	for _, sockets := range []bool{true, false} {
		t.Run(fmt.Sprintf("sockets %v", sockets), func(t *testing.T) { notificationsOfACard(t, sockets) })
	}
}

func notificationsOfACard(t *testing.T, sockets bool) {
	a, b := congestedPair(t, sockets)
	a.do(t, "-Enable")
	// Each notification halves the rate, down to 20 Mb/s, and next to nothing raises it.
	a.do(t, "-Set", "-DcqcnInitialAlphaValue", "1023", "-DcqcnDceTcpG", "1", "-DcqcnDceTcpRtt", "131071", "-DcqcnRateToSetOnFirstCnp", "0",
		"-DcqcnClampTgtRate", "1", "-DcqcnRpgMinRate", "20", "-DcqcnRpgByteReset", "0", "-DcqcnRpgTimeReset", "131071",
		"-DcqcnRpgThreshold", "31", "-DcqcnRpgAiRate", "1", "-DcqcnRpgHaiRate", "1")
	running := a.transfer(t, b, "-D", "600")
	await.Eventually(t, "writes", func() bool { return len(a.flows(t, b)) > 0 && a.sent(t) > 1<<20 })
	c := newCard(t, a, b, sockets)

	foreign, broken := c.to(a.flows(t, b)[0]), c.to(a.flows(t, b)[0]).frame()
	foreign.src = netip.MustParseAddr("192.0.2.77")
	broken[len(broken)-1] ^= 1
	await.Eventually(t, "notifications that are none", func() bool {
		c.send(t, foreign.frame())
		c.send(t, broken)
		return a.counter(t, "ignored_cnps") > 0 && a.icrcErrors(t) > 0
	})
	if r := a.flows(t, b)[0].Rate; r != nil || a.counter(t, "handled_cnps") != 0 {
		t.Fatalf("notifications of another, and broken ones, limit the rate: %+v", r)
	}

	stop := c.notify(t, a.flows(t, b))
	await.Eventually(t, "a low rate", func() bool {
		return !slices.ContainsFunc(a.flows(t, b), func(q api.QPStatus) bool { return q.Rate == nil || q.Rate.Current > 40 })
	})
	flows := a.flows(t, b)
	begin, before := time.Now(), a.sent(t)
	await.Eventually(t, "writes at the low rate", func() bool { return a.sent(t) > before+1<<20 })
	bits := 8 * float64(a.sent(t)-before)
	if mbps := bits / 1e6 / time.Since(begin).Seconds(); mbps > 200*float64(len(flows)) {
		t.Errorf("%d queue pairs that are limited to 40 Mb/s send %.0f Mb/s", len(flows), mbps)
	}
	sent, handled := stop(), 0
	await.Eventually(t, "each notification counted as handled or ignored", func() bool {
		handled = a.counter(t, "handled_cnps")
		return a.counter(t, "received_cnps") == handled+a.counter(t, "ignored_cnps") // none comes any more
	})
	if handled == 0 || handled > sent {
		t.Errorf("%d notifications handled of %d that were sent", handled, sent)
	}

	a.do(t, "-Set", "-DcqcnRpgTimeReset", "100", "-DcqcnRpgThreshold", "5", "-DcqcnRpgAiRate", "10", "-DcqcnRpgHaiRate", "100")
	await.Eventually(t, "an end of all limits", func() bool { return a.counter(t, "limited_flows") == 0 })
	before = a.sent(t)
	await.Eventually(t, "writes without a limit", func() bool { return a.sent(t) > before+100<<20 })
	c.comparesOurs(t, a, b, sockets)
	running.stop(t)
}

// flows returns the queue pairs of x that are connected with y and send data.
func (x congested) flows(t *testing.T, y congested) (list []api.QPStatus) {
	t.Helper()
	for _, q := range x.status(t).Adapters[0].QPs {
		if q.Type == "RC" && q.State == "RTS" && q.Peer.String() == y.ip {
			list = append(list, q)
		}
	}
	return list
}

// sent returns how many bytes have left x.
func (x congested) sent(t *testing.T) uint64 {
	t.Helper()
	return x.status(t).Adapters[0].Link.SentBytes
}

// icrcErrors returns how many packets with a wrong ICRC have come to x.
func (x congested) icrcErrors(t *testing.T) int {
	t.Helper()
	return x.count(t, "link.icrc_errors")
}

// card is where a network card would be: a socket on y's wire, below the driver.
type card struct {
	fd   int
	like notice
}

// newCard returns a card at b's wire, with b's addresses, that sends to a.
func newCard(t *testing.T, a, b congested, sockets bool) *card {
	t.Helper()
	c := &card{like: notice{src: netip.MustParseAddr(b.ip), dst: netip.MustParseAddr(a.ip), port: 0xc123, dscp: 48, hops: 64}}
	c.like.from, c.like.to = b.station(t, sockets), a.station(t, sockets)
	var err error
	if e := b.inside(func() error { c.fd, _, err = openPacket("wire", 0); return nil }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	t.Cleanup(func() { _ = unix.Close(c.fd) })
	return c
}

// station returns the MAC that x's packets have on the wire: the adapter's, or behind sockets the interface's.
func (x congested) station(t *testing.T, sockets bool) net.HardwareAddr {
	t.Helper()
	text := x.status(t).Adapters[0].MAC
	if sockets {
		text = strings.TrimSpace(x.shell(t, "cat /sys/class/net/wire/address"))
	}
	m, err := net.ParseMAC(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// to returns a notification for a queue pair.
func (c *card) to(q api.QPStatus) notice {
	n := c.like
	n.qpn = q.Number
	return n
}

func (c *card) send(t *testing.T, frame []byte) {
	if _, err := unix.Write(c.fd, frame); err != nil && err != unix.ENOBUFS {
		t.Error(err)
	}
}

// notify notifies queue pairs every millisecond, from any source port, until it is stopped; stop returns how many there were.
func (c *card) notify(t *testing.T, flows []api.QPStatus) (stop func() int) {
	end, n := make(chan struct{}), make(chan int)
	go func() {
		every := time.NewTicker(time.Millisecond)
		defer every.Stop()
		for sent := 0; ; {
			for _, q := range flows {
				like := c.to(q)
				like.id, like.port = uint16(sent), uint16(49152+sent%1000)
				c.send(t, like.frame())
				sent++
			}
			select {
			case <-end:
				n <- sent
				return
			case <-every.C:
			}
		}
	}()
	return func() int { close(end); return <-n }
}

// comparesOurs lets b notify a of marks, and compares the frames with those of the card.
func (c *card) comparesOurs(t *testing.T, a, b congested, sockets bool) {
	t.Helper()
	var in int
	var err error
	if e := a.inside(func() error { in, err = openNotices("wire"); return nil }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	defer unix.Close(in)
	b.do(t, "-Enable")
	b.do(t, "-Set", "-DcqcnCnpDscp", "48")
	clear := a.impair(t)
	f := make([]byte, 2048)
	var n int
	await.Eventually(t, "notifications of ours", func() bool { n, err = unix.Read(in, f); return n > 0 })
	clear()
	f = f[:n]
	want := c.like
	const ip, udp = 14, 14 + 20
	if n < udp+8+12 {
		t.Fatalf("a notification % x", f)
	}
	want.id, want.hops, want.port = binary.BigEndian.Uint16(f[ip+4:]), f[ip+8], binary.BigEndian.Uint16(f[udp:])
	if sockets { // the kernel's
		want.udpSum = binary.BigEndian.Uint16(f[udp+6:])
	}
	want.qpn = binary.BigEndian.Uint32(f[udp+8+4:]) & 0xffffff
	known := slices.ContainsFunc(a.flows(t, b), func(q api.QPStatus) bool { return q.Number == want.qpn })
	if !known || !bytes.Equal(f, want.frame()) {
		t.Errorf("for queue pair %d of %v\n% x, a card sends\n% x", want.qpn, a.flows(t, b), f, want.frame())
	}
}

// openNotices opens a socket of an interface that sees notifications alone.
func openNotices(name string) (int, error) {
	const opcode, cnp = 14 + 20 + 8, 0x81
	all := uint16(unix.ETH_P_ALL)
	fd, _, err := openPacket(name, all<<8|all>>8, []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 12},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.ETH_P_IP, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: opcode},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: cnp, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0xffff},
		{Code: unix.BPF_RET | unix.BPF_K},
	}...)
	return fd, err
}
