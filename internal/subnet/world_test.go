package subnet_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/sim/infiniband"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// world is a virtual fabric with subnet managers, in simulated time.
type world struct {
	t   rapid.TB
	net *sim.Network
	ib  *infiniband.Fabric // the fabric in the network
	f   *fabric.Fabric
	now clock.Time // of net, while it does not run
	sms []*seat
	log []string
	tid uint64
	// client takes packets to ports without a manager; it may be nil.
	client func(at fabric.Place, q *fabric.Packet)

	streams []stream
	tick    clock.Time // when the streams send next
}

// seat is a subnet manager at a port.
type seat struct {
	at      fabric.Place
	sm      *subnet.SM
	manager *infiniband.Manager
}

// stream is packets that an adapter sends to another port all the time.
type stream struct {
	from, to  fabric.Place
	sent, got uint64
	mlid      ib.LID // of the group it goes to instead of to; 0 for none
	members   int
}

const streamGap = time.Millisecond

func newWorld(t rapid.TB, topology *topology.Topology, err error) *world {
	if err != nil {
		t.Fatal(err)
	}
	state := uint64(1)
	random := func() uint64 { state = state*6364136223846793005 + 1442695040888963407; return state }
	w := &world{t: t, net: sim.New(1), f: fabric.New(topology, random)}
	w.ib = infiniband.Add(w.net, w.f)
	w.ib.Deliver = func(_ clock.Time, at fabric.Place, q *fabric.Packet) {
		if w.client != nil {
			w.client(at, q)
		}
	}
	w.net.Add(netip.Addr{}, (*traffic)(w))
	return w
}

func (w *world) manager(node int, cfg subnet.Config) *seat {
	m, err := w.ib.Manager(w.f.Attach(node), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	m.Port().Settle = func(clock.Time) {
		if m.SM == nil {
			return
		}
		for _, e := range m.SM.Events() {
			w.log = append(w.log, e.Text)
		}
	}
	s := &seat{m.At, m.SM, m}
	w.sms = append(w.sms, s)
	return s
}

// kill ends a manager without notice. Its port still says that it has one.
func (w *world) kill(s *seat) {
	s.manager.Kill()
	w.sms = slices.DeleteFunc(w.sms, func(x *seat) bool { return x == s })
}

// carry sends a program's MAD and delivers the answer, or the MAD itself, to whom it is for.
func (w *world) carry(from fabric.Place, p *subnet.Packet) {
	w.ib.Manage(w.now, from, &fabric.Packet{DLID: p.LID, SQP: p.LocalQPN, DQP: p.QPN, SL: p.SL, MAD: p.MAD})
}

// run runs the world for the time d.
func (w *world) run(d time.Duration) {
	steps, end := 0, w.now.Add(d)
	w.net.Run(end, func() bool {
		if steps++; steps > 20_000_000 {
			w.t.Fatal("the managers do not come to rest")
		}
		return false
	})
	w.net.Pass(end.Sub(w.net.Now()))
	w.now = end
}

// traffic is the streams of a world, as an engine.
type traffic world

// Receive implements sim.Engine: what arrives is collected.
func (x *traffic) Receive(clock.Time, []frame.In) {}

// Transmit implements sim.Engine: the fabric takes the packets itself.
func (x *traffic) Transmit(clock.Time, []frame.Out) int { return 0 }

// Advance implements sim.Engine.
func (x *traffic) Advance(now clock.Time) {
	(*world)(x).stream(now)
	x.ib.Node.Wake()
}

// Deadline implements sim.Engine.
func (x *traffic) Deadline() clock.Time {
	if len(x.streams) == 0 {
		return clock.Never
	}
	return x.tick
}

// stream takes the packets of the streams that have arrived, and sends the next.
func (w *world) stream(now clock.Time) {
	taken := make([]*fabric.Parcel, 16)
	for i := range w.streams {
		s := &w.streams[i]
		for n := w.f.Collect(now, s.to, taken); n > 0; n = w.f.Collect(now, s.to, taken) {
			s.got += uint64(n)
			w.f.Release(now, taken[:n])
		}
		to := w.f.PortInfo(s.to).LID
		if s.mlid != 0 {
			to = s.mlid
		}
		b := packet(w.f.PortInfo(s.from).LID, to, ib.PKeyDefault)
		if ok, err := w.f.Transmit(now, s.from, b, nil, nil); err != nil {
			w.t.Fatal(err)
		} else if ok {
			s.sent++
		}
	}
	w.tick = now.Add(streamGap)
}

// get asks the management agents at a LID, from a port, and reports whether they answered without an error.
func (w *world) get(from fabric.Place, to ib.LID, attr uint16, modifier uint32, key uint64) (mad.SMP, bool) {
	w.tid++
	s := mad.NewSMP(mad.MethodGet, attr, modifier, w.tid)
	s.MKey = key
	p := fabric.Packet{DLID: to}
	s.Append(p.MAD[:0])
	if w.f.Send(w.now, from, &p).Result != fabric.Answered {
		return mad.SMP{}, false
	}
	a, err := mad.ParseSMP(p.MAD[:])
	return a, err == nil && a.StatusCode() == mad.StatusOK
}

func (w *world) heard(text string) bool {
	return slices.ContainsFunc(w.log, func(l string) bool { return strings.Contains(l, text) })
}

// tables returns everything that a manager sets in the fabric: the state of the ports and the forwarding tables.
func (w *world) tables(top *topology.Topology, from fabric.Place) []byte {
	var b []byte
	for i := range top.Nodes {
		n := &top.Nodes[i]
		for p := range n.Ports {
			if n.Type != mad.NodeSwitch && p == 0 {
				continue
			}
			info := w.f.PortInfo(fabric.Place{Node: i, Port: uint8(p)})
			info.MasterSMLID, info.CapabilityMask = 0, 0
			b = info.Append(b)
		}
		if n.Type == mad.NodeSwitch {
			lid := w.f.PortInfo(fabric.Place{Node: i, Port: 0}).LID
			a, ok := w.get(from, lid, mad.AttrLinearForwardingTable, 0, 0)
			if !ok {
				w.t.Fatalf("switch %d does not return its table", i)
			}
			b = append(b, a.Data[:]...)
		}
	}
	return b
}

// allReach checks that every adapter whose link is up reaches the agents of every other one.
func (w *world) allReach(top *topology.Topology, from int, part []bool) {
	w.t.Helper()
	for i := range top.Nodes {
		if top.Nodes[i].Type != mad.NodeCA || !part[i] {
			continue
		}
		at := fabric.Place{Node: i, Port: 1}
		if s := w.f.PortInfo(at).PortState; s != mad.PortActive {
			w.t.Fatalf("adapter %d is in state %v: %v", i, s, w.log)
		}
		for j := range top.Nodes {
			if lid := w.f.PortInfo(w.f.Attach(j)).LID; j != i && part[j] {
				if _, ok := w.get(at, lid, mad.AttrNodeInfo, 0, 0); !ok && (top.Nodes[j].Type == mad.NodeCA || i == from) {
					w.t.Fatalf("adapter %d does not reach node %d, LID %d: %v", i, j, lid, w.log)
				}
			}
		}
	}
}

func smallTree(t testing.TB) (*topology.Topology, *world) {
	top, err := topology.FatTree(topology.FatTreeShape{Radix: 8, Levels: 2, Hosts: 16, HostPorts: 1}, topology.Rate{})
	return top, newWorld(t, top, err)
}

// TestTakeoverUnderTraffic: when the master dies under traffic the standby takes over and changes nothing that
// packets need: LIDs, port states and forwarding tables stay, and no packet is lost.
func TestTakeoverUnderTraffic(t *testing.T) {
	top, w := smallTree(t)
	poll := subnet.Config{PollInterval: time.Second, PollRetries: 2, Sweep: 10 * time.Second}
	high := poll
	high.Priority = 5
	master, standby := w.manager(3, high), w.manager(9, poll)
	w.run(3 * time.Second)
	if master.sm.State() != mad.SMMaster || standby.sm.State() != mad.SMStandby {
		t.Fatalf("states %v and %v: %v", master.sm.State(), standby.sm.State(), w.log)
	}
	for i := range 16 {
		from, to := fabric.Place{Node: i, Port: 1}, fabric.Place{Node: (i + 5) % 16, Port: 1}
		w.f.Plug(w.now, from, true)
		w.streams = append(w.streams, stream{from: from, to: to})
	}
	w.run(100 * time.Millisecond)
	before := w.tables(top, master.at)
	w.kill(master)
	w.run(8 * time.Second)
	if standby.sm.State() != mad.SMMaster {
		t.Fatalf("the standby is in state %v: %v", standby.sm.State(), w.log)
	}
	if after := w.tables(top, standby.at); !bytes.Equal(before, after) {
		t.Error("the takeover has changed ports or forwarding tables")
	}
	for i := range w.streams {
		w.streams[i].sent++ // one may be under way
		if s := &w.streams[i]; s.got+2 < s.sent {
			t.Errorf("stream %d: %d packets sent, %d arrived", i, s.sent, s.got)
		}
	}
	if lid := w.f.PortInfo(fabric.Place{Node: 0, Port: 1}).MasterSMLID; lid != w.f.PortInfo(standby.at).LID {
		t.Errorf("adapter 0 has SM LID %d, want that of the new master", lid)
	}

	// A manager of higher priority comes, and the master hands over to it.
	better := w.manager(12, subnet.Config{Priority: 9, Sweep: 10 * time.Second})
	w.run(10 * time.Second)
	if better.sm.State() != mad.SMMaster || standby.sm.State() != mad.SMStandby {
		t.Errorf("states %v and %v: %v", better.sm.State(), standby.sm.State(), w.log)
	}
	if after := w.tables(top, better.at); !bytes.Equal(before, after) {
		t.Error("the handover has changed ports or forwarding tables")
	}
	for i := range w.streams {
		if s := &w.streams[i]; s.got+3 < s.sent {
			t.Errorf("stream %d: %d packets sent, %d arrived", i, s.sent, s.got)
		}
	}
}

// TestMKeyAndLease: without the M_Key nothing can be set or, at protection level 2, read, and each attempt is
// reported by trap 256. A lease that the manager does not renew expires, and then another manager can take over (IBA
// 14.2.4).
func TestMKeyAndLease(t *testing.T) {
	_, w := smallTree(t)
	const key = 0x1234567890abcdef
	master := w.manager(0, subnet.Config{MKey: key, MKeyProtect: 2, MKeyLease: 20, Sweep: 2 * time.Second})
	w.run(time.Second)
	w.f.SetIsSM(fabric.Place{Node: 5, Port: 1}, true) // a change that makes it sweep again, with the key
	w.run(3 * time.Second)
	if !w.heard("SUBNET UP") || w.heard("does not answer") {
		t.Fatalf("log: %v", w.log)
	}
	stranger, target := fabric.Place{Node: 7, Port: 1}, w.f.PortInfo(fabric.Place{Node: 2, Port: 1}).LID
	if _, ok := w.get(stranger, target, mad.AttrPortInfo, 0, 0); ok {
		t.Error("a request without the key was answered at protection level 2")
	}
	if a, ok := w.get(stranger, target, mad.AttrPortInfo, 0, key); !ok || binary.BigEndian.Uint64(a.Data[:]) != key {
		t.Error("a request with the key was not answered, or not with the key")
	}
	w.get(stranger, target, mad.AttrPortInfo, 0, 1)
	w.run(3 * time.Second)
	if !w.heard("trap 256") {
		t.Errorf("no trap 256: %v", w.log)
	}
	w.log = nil
	w.run(30 * time.Second)
	if len(w.log) > 0 {
		t.Errorf("a repressed trap was sent again: %v", w.log)
	}
	// The manager represses the traps with its key, which renews the lease: the key stays for ever.
	for range 4 {
		w.get(stranger, target, mad.AttrPortInfo, 0, 1)
		w.run(15 * time.Second)
	}
	if i := w.f.PortInfo(fabric.Place{Node: 2, Port: 1}); i.MKeyProtectBits != 2 || i.MKey != key {
		t.Errorf("the key of a port expired though its master renews it: %+v", i)
	}

	w.kill(master)
	// A manager with another key cannot set the ports until their leases have expired.
	late := w.manager(7, subnet.Config{MKey: 77, Sweep: 5 * time.Second, Retries: -1, Timeout: 10 * time.Millisecond})
	w.run(10 * time.Second)
	if i := w.f.PortInfo(fabric.Place{Node: 2, Port: 1}); i.MKey != key {
		t.Errorf("the key was replaced before its lease had expired")
	}
	w.run(5 * time.Minute)
	if late.sm.State() != mad.SMMaster {
		t.Fatalf("the late manager is in state %v: %v", late.sm.State(), w.log[max(0, len(w.log)-20):])
	}
	if i := w.f.PortInfo(fabric.Place{Node: 2, Port: 1}); i.MKey != 77 || i.MasterSMLID != w.f.PortInfo(late.at).LID {
		t.Errorf("the late manager has not taken port 2: %+v\n%v", i, w.log[max(0, len(w.log)-20):])
	}
}

// TestLanesReachTheFabric: with DFSSSP on a torus every service level has the lane of its number between all ports of
// all switches, and a switch that can be told all of it at once is told once.
func TestLanesReachTheFabric(t *testing.T) {
	top, err := topology.Torus([]int{4, 4}, 1, topology.Rate{})
	w := newWorld(t, top, err)
	s := w.manager(0, subnet.Config{Engines: []string{"dfsssp"}})
	w.run(2 * time.Second)
	if _, r := s.sm.Routing(); !w.heard("SUBNET UP") || r.Engine != "dfsssp" || r.Lanes < 2 {
		t.Fatalf("not routed by dfsssp over several lanes: %v", w.log)
	}
	for i := range top.Nodes {
		if top.Nodes[i].Type != mad.NodeSwitch {
			continue
		}
		lid := w.f.PortInfo(fabric.Place{Node: i, Port: 0}).LID
		for out := 1; out < len(top.Nodes[i].Ports); out++ {
			for in := 1; in < len(top.Nodes[i].Ports); in++ {
				a, ok := w.get(s.at, lid, mad.AttrSLtoVLMappingTable, uint32(in<<8|out), 0)
				if m, err := mad.ParseSLtoVLMappingTable(a.Data[:]); !ok || err != nil || m[0] != 0 || m[1] != 1 || m[7] != 7 {
					t.Fatalf("switch %d from port %d to %d: %v, %v", i, in, out, m, err)
				}
			}
		}
	}
	if sent, _, _ := s.sm.Traffic(); sent > 1200 {
		t.Errorf("%d requests, want at most 1200: the switches were set port by port", sent)
	}
}
