package subnet

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

func (b *bench) mustBeUp() {
	b.t.Helper()
	if len(b.texts(EventUp)) == 0 {
		b.t.Fatalf("no SUBNET UP: %v", b.log)
	}
}

// TestBringsASubnetUp: after the first sweep all links are active with the best MTU and lanes of their ends, every
// host reaches every other, and there are no problems.
func TestBringsASubnetUp(t *testing.T) {
	b, n := smallBench(t)
	b.start(n[0], Config{})
	b.run(time.Second)
	b.mustBeUp()
	b.check(n[0])
	if p := b.texts(EventProblem); len(p) > 0 {
		t.Errorf("problems: %v", p)
	}
	for _, x := range b.nodes {
		for p := range x.ports {
			port := &x.ports[p]
			if port.peer == nil {
				continue
			}
			if i := port.info; i.NeighborMTU != 5 || i.OperationalVLs != 4 || i.PortState != mad.PortActive {
				t.Errorf("%s port %d: %+v", x.name, p, i)
			}
		}
	}
	if i := n[2].ports[1].info; i.MasterSMLID != n[0].ports[1].info.LID || i.SubnetTimeOut != 18 || i.GIDPrefix != DefaultPrefix {
		t.Errorf("h3: %+v", i)
	}
}

// TestSweepOfAnUnchangedSubnetSetsNothing: a second sweep of an unchanged subnet sets nothing.
func TestSweepOfAnUnchangedSubnetSetsNothing(t *testing.T) {
	b, n := smallBench(t)
	sm := b.start(n[0], Config{})
	b.run(time.Second)
	before := make([]int, len(b.nodes))
	for i, x := range b.nodes {
		before[i] = x.sets
	}
	sm.Rescan(b.now)
	b.run(time.Second)
	for i, x := range b.nodes {
		if x.sets != before[i] {
			t.Errorf("%s was set %d times", x.name, x.sets-before[i])
		}
	}
	if len(b.texts(EventUp)) != 2 {
		t.Errorf("events: %v", b.log)
	}
}

// TestRoutesStayWithoutAChange: an unchanged subnet is not routed anew; one that has lost a link is.
func TestRoutesStayWithoutAChange(t *testing.T) {
	b, n := smallBench(t)
	sm := b.start(n[0], Config{})
	b.run(time.Second)
	_, before := sm.Routing()
	sm.Rescan(b.now)
	b.run(time.Second)
	if _, r := sm.Routing(); r != before || len(b.texts(EventUp)) != 2 {
		t.Errorf("routed anew, or no sweep: %v", b.log)
	}
	b.unlink(n[4], 7)
	sm.Rescan(b.now)
	b.run(time.Second)
	if _, r := sm.Routing(); r == before {
		t.Error("the routes did not change after a link was lost")
	}
	b.check(n[0])
}

// TestOtherHomes: the manager may run on a switch, or on an adapter that is connected to another adapter alone.
func TestOtherHomes(t *testing.T) {
	b, n := smallBench(t)
	b.start(n[4], Config{})
	b.run(time.Second)
	b.mustBeUp()
	b.check(n[4])

	c := newBench(t)
	x, y := c.node("x", mad.NodeCA, 1), c.node("y", mad.NodeCA, 1)
	c.link(x, 1, y, 1)
	c.start(x, Config{})
	c.run(time.Second)
	c.mustBeUp()
	if x.ports[1].info.PortState != mad.PortActive || y.ports[1].info.LID == x.ports[1].info.LID {
		t.Errorf("two adapters: %+v", y.ports[1].info)
	}
}

// TestSweepsFindChanges: light sweeps find that something has changed, and a full sweep that follows repairs it.
func TestSweepsFindChanges(t *testing.T) {
	b, n := smallBench(t)
	b.start(n[0], Config{Sweep: 10 * time.Second})
	b.run(time.Second)
	lid := n[2].ports[1].info.LID
	b.unlink(n[4], 7)
	b.run(11 * time.Second)
	b.check(n[0])
	late := b.node("late", mad.NodeCA, 1)
	b.link(late, 1, n[5], 5)
	b.run(11 * time.Second)
	b.check(n[0])
	if n[2].ports[1].info.LID != lid {
		t.Errorf("LID %d became %d", lid, n[2].ports[1].info.LID)
	}
}

// linkTrap hands a manager the trap of a switch that a link of it came up or went down.
func (b *bench) linkTrap(sm *SM, at *benchNode) {
	trap := mad.NewSMP(mad.MethodTrap, mad.AttrNotice, 0, 77)
	notice := mad.Notice{IsGeneric: true, Type: mad.NoticeUrgent, ProducerType: uint32(mad.NodeSwitch), TrapNumber: mad.TrapLinkStateChange,
		IssuerLID: at.ports[0].info.LID}
	notice.DataDetails = mad.TrapSwitch{LID: notice.IssuerLID}.Details()
	notice.Append(trap.Data[:0])
	p := Packet{LID: notice.IssuerLID}
	trap.Append(p.MAD[:0])
	sm.Receive(b.now, &p)
}

// TestTrapCausesSweep: a trap about a changed link starts a sweep at once and is repressed (IBA 14.3.1, 13.4.9).
func TestTrapCausesSweep(t *testing.T) {
	b, n := smallBench(t)
	sm := b.start(n[0], Config{})
	b.run(time.Second)
	b.unlink(n[4], 7)
	b.linkTrap(sm, n[4])
	var out [1]Packet
	sm.Transmit(b.now, out[:])
	if out[0].MAD[3] != mad.MethodTrapRepress || out[0].LID != n[4].ports[0].info.LID || out[0].transaction() != 77 {
		t.Errorf("answered %x to LID %d", out[0].MAD[:24], out[0].LID)
	}
	b.run(time.Second)
	b.check(n[0])
	if got := b.texts(EventTrap); len(got) != 1 || !strings.HasPrefix(got[0], "trap 128") {
		t.Errorf("traps: %v", got)
	}
}

// TestTrapWhileGroupsAreSetUp: a manager that sweeps upon traps alone follows one that arrives while it writes multicast
// tables, and serves groups as before afterwards.
func TestTrapWhileGroupsAreSetUp(t *testing.T) {
	b, n := smallBench(t)
	sm := b.start(n[0], Config{})
	b.run(time.Second)
	join := func(i int) {
		m := mad.NewSA(mad.MethodSet, mad.AttrMCMemberRecord, 0, uint64(i))
		m.ComponentMask = createMask
		rec := memberOf(n[i], ib.GID{0xff, 0x12, 15: 7}, mad.JoinFull)
		rec.Append(m.Data[:0])
		seat{b, sm}.Send(n[i].ports[1].info.LID, &m)
	}
	join(1)
	if sm.stage != stageGroups {
		t.Fatalf("the manager is at stage %d, want the tables of the group being written", sm.stage)
	}
	b.unlink(n[4], 7)
	b.linkTrap(sm, n[4])
	b.run(time.Second)
	b.check(n[0])
	join(2)
	if b.run(time.Second); sm.sa.GroupsDue() {
		t.Error("the group's tables are still due")
	}
}

// TestLIDsAreKept: ports get the LIDs remembered for them, else those they have; with -r they get new ones.
func TestLIDsAreKept(t *testing.T) {
	b, n := smallBench(t)
	n[1].ports[1].info.LID = 33
	n[3].ports[1].info.LID = 33 // both claim it: one gets another
	b.start(n[0], Config{LIDs: map[uint64]LIDRange{n[2].info.PortGUID + 1: {40, 40}, 0x999: {1, 1}}})
	b.run(time.Second)
	b.check(n[0])
	if l := n[2].ports[1].info.LID; l != 40 {
		t.Errorf("h3 has LID %d, want the remembered 40", l)
	}
	if l := n[1].ports[1].info.LID; l != 33 {
		t.Errorf("h2 has LID %d, want the 33 that it had", l)
	}
	if _, taken := b.byLID()[1]; taken {
		t.Error("LID 1 was given away though it is remembered for a port that is absent")
	}
	b.sms = map[*benchNode]*SM{}
	b.start(n[0], Config{Reassign: true})
	b.run(time.Second)
	b.check(n[0])
	if l := n[2].ports[1].info.LID; l >= 10 {
		t.Errorf("the reassigned LID is %d, want one of the first", l)
	}
}

func (b *bench) byLID() map[ib.LID]end {
	m := map[ib.LID]end{}
	for _, e := range b.ends() {
		m[e.lid] = e
	}
	return m
}

// TestLMC: every port has 2^LMC LIDs, the first a multiple of that number, and all of them lead to the port.
func TestLMC(t *testing.T) {
	b, n := smallBench(t)
	b.start(n[0], Config{LMC: 2})
	b.run(time.Second)
	b.check(n[0])
	for _, e := range b.ends() {
		if e.p == 0 {
			continue
		}
		if e.lid%4 != 0 || e.n.ports[e.p].info.LMC != 2 {
			t.Errorf("%s: LID %d, LMC %d", e.n.name, e.lid, e.n.ports[e.p].info.LMC)
		}
		for l := range ib.LID(4) {
			if got, ok := b.send(end{n[0], 1, 0}, e.lid+l); e.n != n[0] && (!ok || got.n != e.n) {
				t.Errorf("LID %d does not lead to %s", e.lid+l, e.n.name)
			}
		}
	}
}

// TestTooManyLIDs: a subnet that needs more unicast LIDs than there are is refused with an error that names both
// numbers.
func TestTooManyLIDs(t *testing.T) {
	sm, _ := New(Config{LMC: 7})
	sm.cur = topology.New()
	for i := range 400 {
		node := sm.cur.Add(mad.NodeInfo{NodeType: mad.NodeCA, NumPorts: 1, NodeGUID: uint64(i + 1)})
		p := &sm.cur.Ports[sm.cur.Nodes[node].First+1]
		p.Reach, p.Known, p.GUID = true, true, uint64(i+1)
	}
	_, err := sm.assignLIDs()
	var e *lidError
	if !errors.As(err, &e) || e.Need != 51200 || !strings.Contains(err.Error(), "51200 unicast LIDs") ||
		!strings.Contains(err.Error(), "49151") {
		t.Errorf("error %v", err)
	}
}

func TestWrongConfigurationsAreRefused(t *testing.T) {
	for field, c := range map[string]Config{
		"priority": {Priority: 16}, "LMC": {LMC: 8}, "SL": {SL: 16}, "window": {Window: MaxWindow + 1},
		"routing engine": {Engines: []string{"best"}}, "time": {Timeout: -1},
	} {
		var e *ConfigError
		if _, err := New(c); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

// TestKeysAndPrefix: all end ports get the M_Key, its protection and lease, and the subnet prefix.
func TestKeysAndPrefix(t *testing.T) {
	b, n := smallBench(t)
	b.start(n[0], Config{MKey: 0xabc, MKeyProtect: 1, MKeyLease: 60, Prefix: 0xfec0000000000000, SL: 3})
	b.run(time.Second)
	b.check(n[0])
	for _, e := range b.ends() {
		if i := e.n.ports[e.p].info; i.MKey != 0xabc || i.MKeyProtectBits != 1 || i.MKeyLeasePeriod != 60 ||
			i.GIDPrefix != 0xfec0000000000000 || i.MasterSMSL != 3 {
			t.Errorf("%s: the M_Key, prefix or service level is not set in %+v", e.n.name, i)
		}
	}
}

// TestTwoManagers: of two managers the one with higher priority becomes master, then the one with lower GUID. The
// other takes over when the master dies.
func TestTwoManagers(t *testing.T) {
	b, n := smallBench(t)
	low := b.start(n[0], Config{Priority: 1, Sweep: 10 * time.Second})
	b.run(time.Second)
	high := b.start(n[2], Config{Priority: 5, Sweep: 10 * time.Second})
	b.run(time.Second)
	if low.State() != mad.SMMaster || high.State() != mad.SMStandby {
		t.Fatalf("the newcomer is %v, the old one %v: a master stays until it hands over", high.State(), low.State())
	}
	low.Rescan(b.now)
	b.run(2 * time.Second)
	if low.State() != mad.SMStandby || high.State() != mad.SMMaster {
		t.Fatalf("after the hand-over the low one is %v, the high one %v", low.State(), high.State())
	}
	b.check(n[2])
	if l := n[1].ports[1].info.MasterSMLID; l != n[2].ports[1].info.LID {
		t.Errorf("h2 has master LID %d, want that of h3", l)
	}
	if !n[1].ports[1].info.ClientReregister {
		t.Error("clients were not told to register again")
	}
	lids := b.byLID()
	delete(b.sms, n[2]) // it dies
	n[2].ports[1].info.CapabilityMask &^= mad.CapIsSM
	b.run(30 * time.Second)
	if low.State() != mad.SMMaster {
		t.Fatalf("the standby is in state %v, want master", low.State())
	}
	b.check(n[0])
	for l, e := range b.byLID() {
		if lids[l] != e {
			t.Errorf("LID %d moved", l)
		}
	}
}

// TestElection: two managers that start together elect one master.
func TestElection(t *testing.T) {
	for _, c := range []struct{ p, q uint8 }{{3, 3}, {2, 3}, {3, 2}} {
		b, n := smallBench(t)
		x, y := b.start(n[0], Config{Priority: c.p}), b.start(n[3], Config{Priority: c.q})
		b.run(30 * time.Second)
		want := x
		if c.q > c.p {
			want = y
		}
		if want.State() != mad.SMMaster || x.State() == y.State() {
			t.Errorf("priorities %d and %d: %v and %v", c.p, c.q, x.State(), y.State())
		}
		b.check(n[0])
	}
}

// TestPartitionsAreWritten: partitions are written into the tables of hosts and enforced by switches.
func TestPartitionsAreWritten(t *testing.T) {
	b, n := smallBench(t)
	p, err := partition.Parse("Default=0x7fff : ALL=limited, SELF=full;\nStorage=0x8001 : 0x201=full, 0x301;")
	if err != nil {
		t.Fatal(err)
	}
	b.start(n[0], Config{Partitions: p})
	b.run(time.Second)
	b.check(n[0])
	for i, want := range [][]ib.PKey{{0xffff}, {0x7fff, 0x8001}, {0x7fff, 0x0001}, {0x7fff}} {
		if got := n[i].ports[1].keys[0]; !slices.Equal(got[:len(want)], want) || got[len(want)] != 0 {
			t.Errorf("%s: %x, want %x", n[i].name, got, want)
		}
	}
	port := &n[4].ports[2]
	if !port.info.PartitionEnforcementInbound || !port.info.PartitionEnforcementOutbound || port.keys[0][1] != 0x8001 &&
		port.keys[0][0] != 0x8001 {
		t.Errorf("the switch checks %v with %x", port.info.PartitionEnforcementInbound, port.keys[0])
	}
}

// TestLanesAreWritten: routes over several lanes come with the lane tables that they need.
func TestLanesAreWritten(t *testing.T) {
	b := newBench(t)
	var s, h []*benchNode
	for range 5 {
		s = append(s, b.node("s", mad.NodeSwitch, 4))
	}
	for i := range s {
		h = append(h, b.node("h", mad.NodeCA, 1))
		b.link(h[i], 1, s[i], 1)
		b.link(s[i], 2, s[(i+1)%5], 3)
	}
	sm := b.start(h[0], Config{Engines: []string{"dfsssp"}})
	b.run(time.Second)
	b.check(h[0])
	g, r := sm.Routing()
	rules := routing.LaneRules{
		SL: func(source int, lid ib.LID) uint8 { return r.SL(g.Targets[source].Switch, lid) },
		VL: func(_ int32, _, _, sl uint8) uint8 { return sl },
	}
	if r.Lanes < 2 || routing.CreditLoop(g, r.Table, rules) != nil {
		t.Fatalf("%d lanes", r.Lanes)
	}
	if got := h[0].ports[1].sl[0]; got != [8]byte{0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0x67} {
		t.Errorf("host: %x", got)
	}
	if len(s[0].ports[2].sl) < 2 {
		t.Errorf("switch: %x", s[0].ports[2].sl)
	}
}

// TestRandomSubnets: random topologies with random faults end in a consistent subnet or in a reported problem,
// whatever is lost.
func TestRandomSubnets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t)
		var s []*benchNode
		for range rapid.IntRange(1, 7).Draw(t, "switches") {
			s = append(s, b.node("s", mad.NodeSwitch, 10))
		}
		free := map[*benchNode]uint8{}
		take := func(n *benchNode) uint8 { free[n]++; return free[n] }
		home := b.node("home", mad.NodeCA, 1)
		b.link(home, 1, s[0], take(s[0]))
		for i := 1; i < len(s); i++ {
			x := s[rapid.IntRange(0, i-1).Draw(t, "to")]
			if free[x] < 9 {
				b.link(x, take(x), s[i], take(s[i]))
			}
		}
		for range rapid.IntRange(0, 6).Draw(t, "links") {
			x, y := rapid.SampledFrom(s).Draw(t, "x"), rapid.SampledFrom(s).Draw(t, "y")
			if x != y && free[x] < 9 && free[y] < 9 {
				b.link(x, take(x), y, take(y))
			}
		}
		for range rapid.IntRange(0, 6).Draw(t, "hosts") {
			if x := rapid.SampledFrom(s).Draw(t, "x"); free[x] < 10 {
				b.link(b.node("h", mad.NodeCA, 2), uint8(rapid.IntRange(1, 2).Draw(t, "port")), x, take(x))
			}
		}
		rate := rapid.IntRange(0, 3).Draw(t, "lost of 10")
		seed := rapid.Uint32().Draw(t, "seed")
		b.lose = func() bool { seed = seed*1664525 + 1013904223; return int(seed>>16)%10 < rate }
		engine := rapid.SampledFrom(routing.EngineNames()).Draw(t, "engine")
		b.start(home, Config{Sweep: time.Second, Retries: 6, Engines: []string{engine}})
		b.run(5 * time.Second)
		for range rapid.IntRange(0, 4).Draw(t, "faults") {
			x := rapid.SampledFrom(s).Draw(t, "x")
			b.unlink(x, uint8(rapid.IntRange(1, 10).Draw(t, "port")))
			if home.ports[1].peer == nil {
				return
			}
		}
		b.lose = func() bool { return false }
		b.run(20 * time.Second)
		b.check(home)
		b.mustBeUp()
	})
}

// TestSweepAfterATrapReadsLess: a sweep started by a trap does not read again what cannot have changed, and finds
// what has: a cable at another port, a host that has started anew. A sweep that was asked for reads everything.
func TestSweepAfterATrapReadsLess(t *testing.T) {
	b, n := smallBench(t)
	sm := b.start(n[0], Config{})
	b.run(time.Second)
	whole := b.count
	sweep := func(what func()) (requests int) {
		before := b.count
		what()
		b.run(time.Second)
		b.check(n[0])
		return b.count - before
	}
	again := sweep(func() { sm.Rescan(b.now) })
	if again < whole/3 {
		t.Errorf("a sweep that was asked for made %d requests, the first one %d", again, whole)
	}
	trap := func() {
		notice := mad.Notice{IsGeneric: true, Type: mad.NoticeUrgent, ProducerType: uint32(mad.NodeSwitch),
			TrapNumber: mad.TrapLinkStateChange, IssuerLID: n[4].ports[0].info.LID}
		smp := mad.NewSMP(mad.MethodTrap, mad.AttrNotice, 0, 77)
		notice.Append(smp.Data[:0])
		p := Packet{LID: n[4].ports[0].info.LID}
		smp.Append(p.MAD[:0])
		sm.Receive(b.now, &p)
	}
	if less := sweep(trap); less > again/2 {
		t.Errorf("a sweep after a trap made %d requests, one that was asked for %d", less, again)
	}
	sweep(func() { b.unlink(n[4], 7); trap() })
	sweep(func() { b.link(n[4], 7, n[5], 6); trap() }) // the cable is at another port now
	sweep(func() {                                     // a host starts anew
		h := n[2]
		b.unlink(h, 1)
		h.ports[1].info.LID, h.ports[1].keys = 0, map[uint32]mad.PKeyTable{0: {0x1234}}
		b.link(h, 1, n[5], 1)
		trap()
	})
	if k := n[2].ports[1].keys[0]; k[0] != ib.PKeyDefault && k[1] != ib.PKeyDefault {
		t.Errorf("the host that started anew has P_Keys %v", k[:4])
	}
}
