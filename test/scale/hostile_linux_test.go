package scale

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/captures"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// maxGrowth is by how many bytes an adapter under attack may grow: the tables of half-open connections and of
// datagrams are bounded.
const maxGrowth = 128 << 20

// However slow the machine, there are so many hostile packets, so that all kinds are among them, and operations beside them.
const (
	leastPackets    = 10_000
	leastOperations = 100
)

// An adapter that receives anything that a network can send survives and does not grow without bound, and the data of
// a connection beside it stays intact.
func TestHostilePackets(t *testing.T) {
	beside(t)
	t.Run("embedded", func(t *testing.T) {
		addrs := testbed.Addrs()
		target, client := spawn(t), spawn(t)
		target.call(t, "open", openArgs{Addr: addrs[0]}, nil)
		client.call(t, "open", openArgs{Addr: addrs[1]}, nil)
		underAttack(t, target, target, client, addrs[0], "")
	})
	t.Run("driver", func(t *testing.T) {
		addrs, dir := testbed.Addrs(), tempDir(t)
		target := spawn(t)
		c := config.Config{Socket: dir + "/d.sock", State: dir + "/state", SkipSelfCheck: true,
			Adapters: []config.Adapter{{Name: "left", Address: addrs[0], Path: "wire"}, {Name: "right", Address: addrs[1], Path: "wire"}}}
		target.call(t, "drive", c, nil)
		server, client := spawn(t), spawn(t)
		server.call(t, "open", openArgs{Socket: c.Socket, Addr: addrs[0]}, nil)
		client.call(t, "open", openArgs{Socket: c.Socket, Addr: addrs[1]}, nil)
		underAttack(t, target, server, client, addrs[0], c.Socket)
	})
}

// underAttack attacks the adapter at addr, which belongs to target, while server and client exchange mixed traffic
// through it. If socket is not empty, target is a driver, whose socket is attacked too.
func underAttack(t *testing.T, target, server, client *worker, addr netip.Addr, socket string) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	// The attacker can use the address of the decoy's peer: anything may happen to the decoy connection, but
	// nothing to others.
	decoyAddr := testbed.Addrs()[0]
	decoy := spawn(t)
	decoy.call(t, "open", openArgs{Addr: decoyAddr}, nil)
	few := endpointArgs{QPs: size(500, 100), Depth: 4, Memory: 1 << 20, Receive: true}
	decoy.call(t, "endpoint", few, nil)
	server.call(t, "decoy endpoint", few, nil)
	var at netip.AddrPort
	server.call(t, "decoy listen", nil, &at)
	decoy.call(t, "connect", at, nil)
	server.call(t, "decoy accepted", struct{}{}, nil)
	server.call(t, "endpoint", mixedArgs(2), nil)
	client.call(t, "endpoint", mixedArgs(2), nil)
	pair(t, server, client)
	a := attack{target: addr, port: at.Port(), rand: rand.New(rand.NewPCG(seed, 4))}
	server.call(t, "decoy places", nil, &a.decoys)
	server.call(t, "places", nil, &a.others)

	before := usageOf(target.cmd.Process.Pid)
	seconds := float64(size(30, 2))
	var wg sync.WaitGroup
	run := converse(t, server, client, askArgs{Seconds: seconds, Seed: seed, Least: leastOperations})
	end := time.Now().Add(time.Duration(seconds * 0.9 * float64(time.Second)))
	if socket != "" {
		wg.Add(2)
		go func() {
			defer wg.Done()
			junk(t, socket, rand.New(rand.NewPCG(seed, 5)), end)
		}()
		go func() {
			defer wg.Done()
			scribblers(t, socket, addr, seed, end)
		}()
	}
	a.run(t, decoyAddr, end)
	wg.Wait()
	did := run.end()
	// Programs that have ended just now may still have descriptors in the driver.
	var after usage
	bounded := await.Until(func() bool {
		after = usageOf(target.cmd.Process.Pid)
		return after.RSS <= before.RSS+maxGrowth && after.FDs <= before.FDs+sourcePorts+8 || after.RSS == 0
	})
	t.Logf("%d hostile packets; %d operations beside them; RSS %.1f MB before, %.1f MB after", a.sent, did.Operations,
		float64(before.RSS)/1e6, float64(after.RSS)/1e6)
	var c map[string]uint64
	server.call(t, "counters", nil, &c)
	for _, name := range []string{"ICRC errors", "Malformed packets", "Packets for an unknown QP", "Packets from the wrong source",
		"Responder Invalid request errors", "Responder out of order sequence received", "Ghost ACKs", "CM MADs received"} {
		t.Logf("%6d %s", c[name], name)
		if c[name] == 0 {
			t.Errorf("the attack made none of: %s", name)
		}
	}
	t.Logf("%6d requests refused: backlog, half-open limit", c["CM requests refused, backlog full"]+
		c["CM requests refused, half-open limit"])
	if after.RSS == 0 {
		t.Fatal("the target is gone")
	}
	if did.Operations < leastOperations {
		t.Errorf("the connection beside the attack made %d operations", did.Operations)
	}
	if !bounded {
		t.Errorf("before %v, after %v", before, after)
	}
	// The adapter still accepts connections and carries traffic.
	late := endpointArgs{QPs: 4, Depth: 2, Memory: 1 << 16, Receive: true}
	server.call(t, "endpoint", late, nil)
	client.call(t, "endpoint", late, nil)
	pair(t, server, client)
	exchange(t, server, client, roundArgs{QPs: 4, Rounds: 10})
}

// attack makes hostile packets for an adapter.
type attack struct {
	target  netip.Addr
	port    uint16  // a program listens there
	decoys  []place // QPs whose peer has the attacker's address
	others  []place // QPs of others
	rand    *rand.Rand
	seeds   [][]byte // captured packets, from the BTH up to before the ICRC
	history [][]byte // packets sent before, to be sent again
	sent    int
	scratch ib.ICRCScratch
}

// run sends until end, from the decoy's address and from another one.
func (a *attack) run(t *testing.T, decoy netip.Addr, end time.Time) {
	all, err := captures.All()
	check(t, err)
	for _, r := range all {
		for _, f := range r.Frames {
			if p := transportOf(f); p != nil {
				a.seeds = append(a.seeds, p)
			}
		}
	}
	if len(a.seeds) < 100 {
		t.Fatalf("%d packets in the captures", len(a.seeds))
	}
	var from []*net.UDPConn
	for _, addr := range []netip.Addr{decoy, testbed.Addrs()[0]} {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		check(t, err)
		defer c.Close()
		from = append(from, c)
	}
	for time.Now().Before(end) || a.sent < leastPackets {
		for range 32 {
			i := a.rand.IntN(2)
			a.send(t, from[i], a.packet(from[i].LocalAddr().(*net.UDPAddr).AddrPort().Addr(), i == 0))
		}
		time.Sleep(200 * time.Microsecond) // leaves processor time to the others
	}
}

// transportOf strips the headers before the BTH, and the ICRC, from a captured frame. It returns nil if the frame is
// not a RoCE v2 packet over IPv4.
func transportOf(f []byte) []byte {
	const ip, udp, bth = 14, 34, 42
	if len(f) < bth+ib.BTHLen+4 || f[12] != 8 || f[13] != 0 || f[ip] != 0x45 || f[ip+9] != 17 ||
		binary.BigEndian.Uint16(f[udp+2:]) != 4791 {
		return nil
	}
	n := bth - udp + int(binary.BigEndian.Uint16(f[udp+4:])) - 8
	if udp+8+n-8 > len(f) || n < 8+ib.BTHLen+4 {
		return nil
	}
	return f[bth : bth+n-8-4]
}

// packet makes a packet. If spoofed is set the packet appears to come from the decoys' peer, and must not be for the
// others.
func (a *attack) packet(from netip.Addr, spoofed bool) []byte {
	r := a.rand
	if len(a.history) > 0 && r.IntN(8) == 0 {
		return a.history[r.IntN(len(a.history))]
	}
	var p []byte
	switch r.IntN(4) {
	case 0:
		p = a.management(from)
	default:
		p = append(p, a.seeds[r.IntN(len(a.seeds))]...)
		a.aim(p)
	}
	for range r.IntN(4) { // change bytes at random
		if i := r.IntN(len(p)); i >= ib.BTHLen || i == 0 || i == 1 {
			p[i] = byte(r.Uint32())
		}
	}
	switch r.IntN(10) {
	case 0:
		p = p[:r.IntN(len(p)+1)]
	case 1:
		p = append(p, make([]byte, r.IntN(5000))...)
	}
	if spoofed && len(p) >= 8 && a.isOther(binary.BigEndian.Uint32(p[4:])&0xffffff) {
		return nil
	}
	if len(a.history) < 1000 {
		a.history = append(a.history, p)
	} else {
		a.history[r.IntN(1000)] = p
	}
	return p
}

func (a *attack) isOther(qpn uint32) bool {
	for _, n := range a.others {
		if n.QPN == qpn {
			return true
		}
	}
	return false
}

// aim gives a packet, usually, a QP that exists, and sometimes impossible sizes.
func (a *attack) aim(p []byte) {
	r := a.rand
	var qpn uint32
	psn := r.Uint32() & 0xffffff
	switch r.IntN(8) {
	case 0:
		qpn = r.Uint32() & 0xffffff
	case 1:
		qpn = uint32(r.IntN(3))
	case 2, 3:
		qpn = a.others[r.IntN(len(a.others))].QPN
	default:
		d := a.decoys[r.IntN(len(a.decoys))]
		qpn, psn = d.QPN, (d.PSN+uint32(r.IntN(3)))&0xffffff
	}
	binary.BigEndian.PutUint32(p[4:], qpn)
	op := ib.Opcode(p[0])
	if op.HasRETH() && len(p) >= ib.BTHLen+16 && r.IntN(2) == 0 {
		binary.BigEndian.PutUint32(p[ib.BTHLen+12:], []uint32{0, 1, 1 << 31, 1<<31 + 1, 0xffffffff}[r.IntN(5)])
	}
	if r.IntN(4) != 0 {
		binary.BigEndian.PutUint32(p[8:], uint32(p[8])<<24|psn) // keeps the AckReq bit
	}
}

// management makes a datagram for QP1: requests that are never followed up, and messages about connections that do
// not exist.
func (a *attack) management(from netip.Addr) []byte {
	r := a.rand
	q := mad.REQ{
		TransactionID: r.Uint64(), LocalCommID: r.Uint32(), ServiceID: 0x0000000001060000 | uint64(a.port), LocalCAGUID: r.Uint64(),
		LocalQPN: ib.QPN(r.Uint32() & 0xffffff), ResponderResources: uint8(r.Uint32()), InitiatorDepth: uint8(r.Uint32()),
		RemoteCMResponseTimeout: 31, LocalCMResponseTimeout: 31, PathMTU: ib.MTU(1 + r.IntN(5)), MaxCMRetries: 15, PKey: 0xffff,
		RetryCount: 7, RNRRetryCount: 7,
		Primary: mad.Path{LocalLID: 0xffff, RemoteLID: 0xffff, LocalGID: from.As16(), RemoteGID: a.target.As16(), HopLimit: 64,
			AckTimeout: 14},
	}
	copy(q.PrivateData[:], mad.IPHeader{Source: netip.AddrPortFrom(from, uint16(1+r.IntN(0xffff))), Destination: a.target}.Append(nil))
	b := q.Append(nil)
	if r.IntN(2) == 0 { // another type of message, of which only the header makes sense
		binary.BigEndian.PutUint16(b[16:], uint16(0x10+r.IntN(0x12)))
		for i := 24; i < len(b); i += 1 + r.IntN(16) {
			b[i] = byte(r.Uint32())
		}
	}
	p := make([]byte, ib.BTHLen+8, ib.BTHLen+8+len(b))
	ib.BTH(p[:ib.BTHLen]).Encode(ib.UDSendOnly, false, false, 0, ib.PKeyDefault, 1, ib.PSN(r.Uint32()&0xffffff))
	binary.BigEndian.PutUint32(p[ib.BTHLen:], 0x80010000)
	binary.BigEndian.PutUint32(p[ib.BTHLen+4:], 1)
	return append(p, b...)
}

// send appends an ICRC to a packet, usually a correct one, and sends it.
func (a *attack) send(t *testing.T, c *net.UDPConn, p []byte) {
	if p == nil {
		return
	}
	b := append([]byte(nil), p...)
	if len(b) >= ib.BTHLen && a.rand.IntN(20) != 0 {
		b = a.seal(b, c.LocalAddr().(*net.UDPAddr).AddrPort())
	}
	if _, err := c.WriteToUDPAddrPort(b, netip.AddrPortFrom(a.target, 4791)); err != nil {
		t.Errorf("send %d bytes: %v", len(b), err)
	}
	a.sent++
}

func (a *attack) seal(b []byte, from netip.AddrPort) []byte {
	ip := make([]byte, 28)
	ip[0], ip[6], ip[9] = 0x45, 0x40, 17
	binary.BigEndian.PutUint16(ip[2:], uint16(28+len(b)+4))
	copy(ip[12:], from.Addr().AsSlice())
	copy(ip[16:], a.target.AsSlice())
	binary.BigEndian.PutUint16(ip[20:], from.Port())
	binary.BigEndian.PutUint16(ip[22:], 4791)
	binary.BigEndian.PutUint16(ip[24:], uint16(8+len(b)+4))
	crc := ib.ICRCSeedIPv4(&a.scratch, ip[:20], ip[20:], b[:ib.BTHLen])
	crc = ib.ICRCUpdate(crc, b[ib.BTHLen:])
	b = append(b, 0, 0, 0, 0)
	ib.PutICRC(b[len(b)-4:], crc)
	return b
}

// junk sends nonsense to the driver's socket.
func junk(t *testing.T, socket string, r *rand.Rand, end time.Time) {
	for time.Now().Before(end) {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Errorf("the driver does not listen any more: %v", err)
			return
		}
		b := make([]byte, r.IntN(4096))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = c.Write(b) // the driver may close the connection
		_, _ = c.Read(b)
		c.Close()
		time.Sleep(2 * time.Millisecond)
	}
}

// scribblers are programs that connect and then overwrite the rings that they share with the driver.
func scribblers(t *testing.T, socket string, addr netip.Addr, seed uint64, end time.Time) {
	for ; time.Now().Before(end); seed++ {
		w, err := start(t)
		if err != nil {
			t.Error(err)
			return
		}
		for _, c := range []struct {
			method string
			args   any
		}{
			{"open", openArgs{Socket: socket, Addr: addr}},
			{"endpoint", endpointArgs{QPs: 2, Depth: 16, Memory: 1 << 16, Receive: true}},
			{"loop", nil},
			{"scribble", askArgs{Seconds: 0.3, Seed: seed}},
		} {
			if err := w.try(c.method, c.args, nil); err != nil {
				if c.method != "scribble" { // scribbling may well crash the program itself
					t.Errorf("scribbler: %v", err)
				}
				break
			}
		}
		w.kill(t)
	}
}
