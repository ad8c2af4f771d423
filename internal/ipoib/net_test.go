package ipoib

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/sim/infiniband"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
	"pgregory.net/rapid"
)

// network is a star of channel adapters with a subnet manager at the first, real forwarding tables, and IPoIB
// interfaces.
type network struct {
	t     rapid.TB
	net   *sim.Network
	ib    *infiniband.Fabric // the fabric in the network
	f     *fabric.Fabric
	now   clock.Time // of net
	hosts []*host
	deaf  bool // the subnet administration does not answer
	asked int  // requests to the subnet administration
	// lose reports whether the next datagram between adapters is lost.
	lose func() bool
}

// host is an adapter with one interface.
type host struct {
	*Interface
	at         fabric.Place
	port       *sim.Port
	waiting    [][]byte // packets to be sent
	qpn        ib.QPN
	attached   map[ib.GID]ib.LID
	got        [][]byte // IP packets
	events     []Event
	resolved   []Resolved
	sent       []Datagram
	delivered  [][]byte
	reregister uint64
}

const testQPN = 0x48

func newNetwork(t rapid.TB, hosts int, cfg subnet.Config, of func(n int) Config) *network {
	t.Helper()
	top, err := topology.Star(hosts, topology.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	w := &network{t: t, net: sim.New(1), f: fabric.New(top, func() uint64 { return 1 << 62 }), lose: func() bool { return false }}
	w.ib = infiniband.Add(w.net, w.f)
	w.ib.Deliver = w.respond
	seed := uint64(1)
	for n := range hosts {
		i, err := New(of(n), func() uint64 { seed += 0x9e3779b97f4a7c15; return seed })
		if err != nil {
			t.Fatal(err)
		}
		h := &host{Interface: i, at: w.f.Attach(n), qpn: ib.QPN(testQPN + n), attached: map[ib.GID]ib.LID{}}
		w.hosts = append(w.hosts, h)
		h.port = w.ib.Plug(h.at, &adapter{w, h})
	}
	if _, err := w.ib.Manager(w.hosts[0].at, cfg); err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	for n, h := range w.hosts {
		h.SetAddresses(w.now, []netip.Prefix{netip.PrefixFrom(v4(n), 24), netip.PrefixFrom(v6(n), 64)})
		h.SetQueuePair(w.now, h.qpn)
	}
	w.ports()
	return w
}

func v4(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n + 1)}) }
func v6(n int) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfd, 15: byte(n + 1)})
}

// ports tells the interfaces the state of their ports.
func (w *network) ports() {
	for _, h := range w.hosts {
		h.SetPort(w.now, w.port(h))
	}
}

func (w *network) port(h *host) Port {
	info, keys, node := w.f.PortInfo(h.at), w.f.PKeys(h.at), w.f.NodeInfo(h.at)
	p := Port{Active: info.PortState == mad.PortActive, LID: info.LID, LMC: info.LMC, SMLID: info.MasterSMLID, SMSL: info.MasterSMSL,
		MTU: info.NeighborMTU, PKeys: keys[:], Reregister: h.reregister}
	binary.BigEndian.PutUint64(p.GID[:], info.GIDPrefix)
	binary.BigEndian.PutUint64(p.GID[8:], node.PortGUID)
	return p
}

// run runs the network for the time d.
func (w *network) run(d time.Duration) {
	for _, h := range w.hosts {
		h.port.Wake()
	}
	steps, end := 0, w.now.Add(d)
	w.net.Run(end, func() bool {
		if steps++; steps > 1_000_000 {
			w.t.Fatal("the network does not come to rest")
		}
		return false
	})
	w.net.Pass(end.Sub(w.net.Now()))
	w.now = end
	if w.ib.Refused != 0 {
		w.t.Fatalf("the fabric refused %d packets", w.ib.Refused)
	}
}

// adapter is a host as an engine of the network.
type adapter struct {
	w *network
	h *host
}

// Receive implements sim.Engine.
func (a *adapter) Receive(now clock.Time, in []frame.In) {
	a.w.now = now
	for i := range in {
		if !a.w.lose() {
			a.w.arrive(a.h, in[i].Data)
		}
	}
}

// Advance implements sim.Engine.
func (a *adapter) Advance(now clock.Time) {
	a.w.now = now
	a.h.Advance(now)
}

// Transmit implements sim.Engine.
func (a *adapter) Transmit(now clock.Time, out []frame.Out) int {
	a.w.now = now
	for x, ok := a.h.Take(); ok; x, ok = a.h.Take() {
		a.w.act(a.h, x)
	}
	n := min(len(out), len(a.h.waiting))
	for i, b := range a.h.waiting[:n] {
		out[i].Reset(nil)
		out[i].Payload = b
	}
	a.h.waiting = a.h.waiting[n:]
	return n
}

// Deadline implements sim.Engine.
func (a *adapter) Deadline() clock.Time { return a.h.Deadline() }

// respond delivers an answer of the subnet administration.
func (w *network) respond(now clock.Time, at fabric.Place, p *fabric.Packet) {
	for _, h := range w.hosts {
		if h.at == at {
			h.Response(now, p.MAD[:])
			h.port.Wake()
		}
	}
}

func (w *network) act(h *host, a Action) {
	switch a := a.(type) {
	case Request:
		w.asked++
		q := fabric.Packet{DLID: a.LID, SQP: ib.QPGSI, DQP: ib.QPGSI, SL: a.SL, MAD: a.MAD}
		if !w.deaf {
			w.ib.Manage(w.now, h.at, &q)
		}
	case Datagram:
		h.sent = append(h.sent, a)
		w.transmit(h, a.To, a.Data)
	case Attach:
		if h.attached[a.MGID] != 0 {
			w.t.Fatalf("attached to %v twice", a.MGID)
		}
		h.attached[a.MGID] = a.MLID
	case Detach:
		if h.attached[a.MGID] != a.MLID {
			w.t.Fatalf("detached from %v, where it is attached to %#x", a, h.attached[a.MGID])
		}
		delete(h.attached, a.MGID)
	case Deliver:
		h.delivered = append(h.delivered, a.Packet)
	case Event:
		h.events = append(h.events, a)
	case Resolved:
		h.resolved = append(h.resolved, a)
	}
}

// send gives a packet of the system to an interface.
func (w *network) send(h *host, packet []byte) {
	if to, ok := h.Send(w.now, packet); ok {
		head, _ := HeaderOf(packet)
		w.transmit(h, to, append(head[:], packet...))
	}
}

// transmit sends a datagram on the fabric: LRH, GRH, BTH, DETH, payload, ICRC.
func (w *network) transmit(h *host, to Destination, data []byte) {
	pad := -len(data) & 3
	n := ib.LRHLen + ib.BTHLen + ib.DETHLen + len(data) + pad + 4
	b := make([]byte, ib.LRHLen, n+ib.GRHLen)
	port := w.port(h)
	l := ib.LRH(b)
	l.SetSL(to.SL)
	l.SetDLID(to.LID)
	l.SetSLID(port.LID)
	l.SetNextHeader(ib.LNHLocal)
	if to.GRH {
		l.SetNextHeader(ib.LNHGlobal)
		n += ib.GRHLen
		b = b[:ib.LRHLen+ib.GRHLen]
		ib.GRH(b[ib.LRHLen:]).Encode(to.TrafficClass, to.FlowLabel, n-ib.LRHLen-ib.GRHLen, to.HopLimit, port.GID, to.GID)
	}
	l.SetPktLen(n / 4)
	at := len(b)
	b = b[:at+ib.BTHLen+ib.DETHLen]
	key, _ := h.PKey()
	ib.BTH(b[at:]).Encode(ib.UDSendOnly, false, false, pad, key, to.QPN, 0)
	ib.DETH(b[at+ib.BTHLen:]).Encode(to.QKey, h.qpn)
	b = append(append(b, data...), make([]byte, pad+4)...)
	h.waiting = append(h.waiting, b)
	h.port.Wake()
}

// arrive gives a frame to an interface as an adapter does.
func (w *network) arrive(h *host, b []byte) {
	l := ib.LRH(b)
	a := Arrival{SLID: l.SLID(), SL: l.SL()}
	at := ib.LRHLen
	if l.NextHeader() == ib.LNHGlobal {
		g := ib.GRH(b[at:])
		a.HasGRH, a.SGID = true, g.SGID()
		if mlid, ok := h.attached[g.DGID()]; l.DLID() >= ib.LIDFirstMulticast && (!ok || mlid != l.DLID()) {
			return
		}
		at += ib.GRHLen
	}
	bth, deth := ib.BTH(b[at:]), ib.DETH(b[at+ib.BTHLen:])
	key, _ := h.PKey()
	if q := bth.DestQP(); q != h.qpn && q != ib.QPMulticast || deth.QKey() != h.QKey() || !ib.PKeyMatch(bth.PKey(), key) {
		return
	}
	a.SrcQP, a.Data = deth.SrcQP(), b[at+ib.BTHLen+ib.DETHLen:len(b)-4-bth.PadCount()]
	if p := h.Receive(w.now, &a); p != nil {
		h.got = append(h.got, append([]byte(nil), p...))
	}
}

// udp returns an IP packet with a datagram of n bytes.
func udp(src, dst netip.Addr, n int) []byte {
	const ttl = 64
	d := make([]byte, eth.UDPLen+n)
	eth.UDP(d).Encode(1000, 2000, len(d))
	if src.Is4() {
		b := make([]byte, eth.IPv4Len, eth.IPv4Len+len(d))
		eth.IPv4(b).Encode(0, cap(b), 0, ttl, eth.ProtocolUDP, src.As4(), dst.As4())
		return append(b, d...)
	}
	b := make([]byte, eth.IPv6Len, eth.IPv6Len+len(d))
	eth.IPv6(b).Encode(0, 0, len(d), eth.ProtocolUDP, ttl, src.As16(), dst.As16())
	return append(b, d...)
}

func (h *host) has(kind EventKind) (n int) {
	for _, e := range h.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}
