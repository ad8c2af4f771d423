package device

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// ibPair is a fabric with an adapter at each of its two hosts, each with a driver and a program of its own.
type ibPair struct {
	*ibFabric
	a, b *program
}

func newIBPair(t *testing.T, cfg subnet.Config, adapter AdapterConfig) *ibPair {
	t.Helper()
	f := newIBFabric(t, 2, cfg)
	h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
	i, j := f.add(h, 0, adapter), f.add(g, 1, adapter)
	return &ibPair{f, newProgram(t, h, i), newProgram(t, g, j)}
}

// TestConnectByGID: ports without an IP address are reached by their GIDs.
func TestConnectByGID(t *testing.T) {
	p := newIBPair(t, subnet.Config{}, AdapterConfig{})
	if !p.b.addr.IsLinkLocalUnicast() || !p.b.addr.Is6() {
		t.Fatalf("the address of an adapter without one is %v", p.b.addr)
	}
	c := connect(p.a.qp(command.CreateQP{}, p.a.cq(64)), p.b.qp(command.CreateQP{}, p.b.cq(64)))
	operations(t, c)
	info := c.a.info()
	if info.Path != 1 || info.Attr.Route.LID == 0 || info.Attr.Route.Path&command.PathGlobal != 0 || info.Attr.MTU != 4096 {
		t.Errorf("the connection is %+v", info.Attr)
	}
}

// TestAddressesThatNobodyHas: an address that no port has is unreachable when it or its route is resolved, when a
// program connects to it, and when an address handle is made for it.
func TestAddressesThatNobodyHas(t *testing.T) {
	p := newIBPair(t, subnet.Config{}, AdapterConfig{Addr: netip.MustParseAddr("10.9.0.1")})
	nobody := command.Endpoint{Addr: command.AddrFrom(netip.MustParseAddr("10.9.0.99")), Port: 7}
	id, err := p.a.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	p.a.check(err)
	p.a.check(p.a.c.CMResolveAddr(bg, command.CMResolveAddr{ID: id, Remote: nobody, Timeout: 1000}))
	if e := p.a.event(command.EventAddressError); e.Status != uint32(command.HostUnreachable) {
		t.Errorf("resolving the address: status %d, want host unreachable", e.Status)
	}
	p.a.check(p.a.c.CMResolveRoute(bg, command.CMResolveRoute{ID: id, Timeout: 1000}))
	if e := p.a.event(command.EventRouteError); e.Status != uint32(command.HostUnreachable) {
		t.Errorf("resolving the route: status %d, want host unreachable", e.Status)
	}
	q := p.a.qp(command.CreateQP{}, p.a.cq(16))
	p.a.dial(command.CMConnect{ID: id, QP: q.q.Handle, Remote: nobody})
	if e := p.a.event(command.EventUnreachable); e.Status != uint32(command.HostUnreachable) {
		t.Errorf("connecting: status %d, want host unreachable", e.Status)
	}
	av := command.AddressVector{Addr: nobody.Addr}
	if _, err := p.a.c.CreateAH(bg, command.CreateAH{PD: p.a.pd, AV: av}); !errors.Is(err, &command.Error{Code: command.HostUnreachable}) {
		t.Errorf("making an address handle: error %v, want host unreachable", err)
	}
}

// TestResolveRoute: a program that resolves a route gets the path record of the subnet administration before it
// connects.
func TestResolveRoute(t *testing.T) {
	f := newIBFabric(t, 2, subnet.Config{})
	h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
	i, j := f.add(h, 0, AdapterConfig{Addr: netip.MustParseAddr("10.9.0.1")}), f.add(g, 1,
		AdapterConfig{Addr: netip.MustParseAddr("10.9.0.2")})
	a, b := newProgram(t, h, i), newProgram(t, g, j)
	id, err := a.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	a.check(err)
	a.check(a.c.CMResolveAddr(bg, command.CMResolveAddr{ID: id, Remote: command.Endpoint{Addr: command.AddrFrom(b.addr), Port: 7},
		Timeout: 1000}))
	if e := a.event(command.EventAddressResolved); e.Remote.Addr.IP() != a.addr {
		t.Errorf("the source is %v, want %v", e.Remote.Addr.IP(), a.addr)
	}
	a.check(a.c.CMResolveRoute(bg, command.CMResolveRoute{ID: id, Timeout: 1000}))
	e := a.event(command.EventRouteResolved)
	rec, err := mad.ParsePathRecord(e.Param.Private[:e.Param.PrivateLen])
	a.check(err)
	from, err := a.c.Port(bg, i)
	a.check(err)
	to, err := b.c.Port(bg, j)
	b.check(err)
	if uint16(rec.SLID) != from.LID || uint16(rec.DLID) != to.LID || rec.MTU != ib.MTU4096 || rec.PKey != ib.PKeyDefault {
		t.Errorf("the path is %+v, from %+v to %+v", rec, from.LID, to.LID)
	}
}

// asked is a Resolver that knows one address and counts its calls.
type asked struct {
	ip    netip.Addr
	gid   ib.GID
	times atomic.Int32
}

func (r *asked) ResolveGID(_ context.Context, ip netip.Addr) (ib.GID, error) {
	r.times.Add(1)
	if ip != r.ip {
		return ib.GID{}, errors.New("nobody answers")
	}
	return r.gid, nil
}

// TestTheAdapterThatReaches: an id that may be on any adapter is bound to the one that reaches the destination, also
// if only the subnet administration knows that its InfiniBand port does; another is taken if nobody has the address.
func TestTheAdapterThatReaches(t *testing.T) {
	for _, first := range []bool{false, true} {
		f := newIBFabric(t, 2, subnet.Config{})
		h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
		var eth uint32
		if first {
			eth = h.add(t, AdapterConfig{Addr: loopback.Addr()})
		}
		ib := f.add(h, 0, AdapterConfig{Addr: netip.MustParseAddr("10.9.0.1")})
		if !first {
			eth = h.add(t, AdapterConfig{Addr: loopback.Addr()})
		}
		far := newProgram(t, g, f.add(g, 1, AdapterConfig{Addr: netip.MustParseAddr("10.9.0.2")}))
		p := newProgram(t, h, ib)
		for _, c := range []struct {
			to   netip.Addr
			want uint32
		}{
			{far.addr, ib}, {far.addr, ib}, {netip.MustParseAddr("10.9.0.1"), ib}, {loopback.Addr(), eth}, {h.adapters[eth].cfg.Addr, eth},
		} {
			id, err := p.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
			p.check(err)
			p.check(p.c.CMResolveAddr(bg, command.CMResolveAddr{ID: id, Remote: command.Endpoint{Addr: command.AddrFrom(c.to), Port: 7},
				Timeout: 5000}))
			if e := p.event(command.EventAddressResolved); e.Adapter != c.want {
				t.Errorf("towards %v: adapter %d, want %d", c.to, e.Adapter, c.want)
			}
			p.check(p.c.Destroy(bg, command.KindCM, id))
		}
		// An unanswered question ends with its id.
		f.stop()
		id, err := p.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
		p.check(err)
		to := command.Endpoint{Addr: command.AddrFrom(netip.MustParseAddr("10.9.0.77")), Port: 7}
		p.check(p.c.CMResolveAddr(bg, command.CMResolveAddr{ID: id, Remote: to, Timeout: 5000}))
		p.check(p.c.Destroy(bg, command.KindCM, id))
	}
}

// TestResolver: a resolver is asked first for the port of an IP address, and an address that it does not know is
// looked up at the subnet administration.
func TestResolver(t *testing.T) {
	p := newIBPair(t, subnet.Config{}, AdapterConfig{Addr: netip.MustParseAddr("10.9.0.1")})
	p.b.check(p.b.host.SetAddresses(p.b.adapter, []netip.Addr{netip.MustParseAddr("10.9.0.2")}))
	p.registered(p.b.host, p.b.adapter)
	gids, err := p.b.c.GIDs(bg, p.b.adapter)
	p.b.check(err)
	r := &asked{ip: netip.MustParseAddr("10.9.0.77"), gid: gids[0].GID}
	p.a.check(p.a.host.SetResolver(p.a.adapter, r))
	for _, s := range []string{"10.9.0.77", "10.9.0.2", "10.9.0.77"} {
		_, err := p.a.c.CreateAH(bg, command.CreateAH{PD: p.a.pd,
			AV: command.AddressVector{Addr: command.AddrFrom(netip.MustParseAddr(s))}})
		if err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if n := r.times.Load(); n != 2 {
		t.Errorf("the resolver was asked %d times for two addresses, want 2", n)
	}
	infos, err := p.b.c.Adapters(bg)
	p.b.check(err)
	if got := infos[0].Addr.IP(); got != netip.MustParseAddr("10.9.0.2") {
		t.Errorf("the adapter's address is %v", got)
	}
}

// TestWaiting_AdapterDisabled: who waits for an answer at an InfiniBand port is told that the adapter is gone when it is disabled,
// since no timer of its port runs then.
func TestWaiting_AdapterDisabled(t *testing.T) {
	p := newIBPair(t, subnet.Config{}, AdapterConfig{Addr: netip.MustParseAddr("10.9.0.1")})
	r := &silent{asked: make(chan struct{}), over: make(chan struct{})}
	defer close(r.over)
	p.a.check(p.a.host.SetResolver(p.a.adapter, r))
	over := make(chan error, 1)
	go func() {
		_, err := p.a.c.CreateAH(bg, command.CreateAH{PD: p.a.pd,
			AV: command.AddressVector{Addr: command.AddrFrom(netip.MustParseAddr("10.9.0.99"))}})
		over <- err
	}()
	<-r.asked
	p.a.check(p.a.host.SetAdapterState(p.a.adapter, false))
	wantCode(t, <-over, command.Removed)
	_, err := p.a.host.AskSA(bg, p.a.adapter, sa.Request{})
	wantCode(t, err, command.Removed)
}

// silent is a resolver that says when it was asked, and finds nothing until it is over.
type silent struct{ asked, over chan struct{} }

func (s *silent) ResolveGID(ctx context.Context, _ netip.Addr) (ib.GID, error) {
	close(s.asked)
	select {
	case <-ctx.Done():
	case <-s.over:
	}
	return ib.GID{}, errors.New("nobody answers")
}

// TestALinkThatGoesDownAndUp: a connection continues if its link was down for less time than its retries take, and
// the programs get an event of each change.
func TestALinkThatGoesDownAndUp(t *testing.T) {
	p := newIBPair(t, subnet.Config{}, AdapterConfig{})
	c := connect(p.a.qp(command.CreateQP{}, p.a.cq(64)), p.b.qp(command.CreateQP{}, p.b.cq(64)))
	at := fabric.Place{Node: 1, Port: 1}
	p.Do(func(now clock.Time, f *fabric.Fabric) { f.Unlink(now, at) })
	p.b.event(command.EventPortDown)
	src, dst := p.a.buffer(64), p.b.buffer(64)
	copy(src.b, "through")
	c.b.postRecv(1, dst.sge(0, 64))
	c.a.postSend(2, ring.OpSend, src.sge(0, 64))
	p.Do(func(now clock.Time, f *fabric.Fabric) { f.Relink(now, at) })
	p.b.event(command.EventPortActive)
	wantSuccess(t, c.b.cq.next(), 1, ring.CQRecv)
	wantSuccess(t, c.a.cq.next(), 2, ring.CQSend)
	if string(dst.b[:7]) != "through" {
		t.Errorf("%q arrived", dst.b[:7])
	}
}

// TestTheLocalPathFollowsThePorts: two adapters of one host use the local path only while both ports are active.
func TestTheLocalPathFollowsThePorts(t *testing.T) {
	f := newIBFabric(t, 2, subnet.Config{})
	h := newHost(t, Config{Seed: 1})
	i, j := f.add(h, 0, AdapterConfig{}), f.add(h, 1, AdapterConfig{})
	a, b := newProgram(t, h, i), newProgram(t, h, j)
	c := connect(a.qp(command.CreateQP{}, a.cq(64)), b.qp(command.CreateQP{}, b.cq(64)))
	if path := c.a.info().Path; path != 2 {
		t.Fatalf("path %d, want 2 (local)", path)
	}
	at := fabric.Place{Node: 1, Port: 1}
	f.Do(func(now clock.Time, f *fabric.Fabric) { f.Unlink(now, at) })
	f.until(h, func() bool { return !h.adapters[j].up() })
	if path := c.a.info().Path; path != 1 {
		t.Errorf("path %d with a port down, want 1 (wire)", path)
	}
	f.Do(func(now clock.Time, f *fabric.Fabric) { f.Relink(now, at) })
	f.until(h, func() bool { return h.adapters[j].up() })
	f.until(h, func() bool { return h.adapters[i].engine.Query(h.adapters[i].byNumber[c.a.q.Number].tq).Path == 2 })
	operations(t, c)
}

// TestPartitions: adapters connect in the partition in which they are full members. Datagrams between QPs that are
// both limited members of a partition are dropped, and the port counts them.
func TestPartitions(t *testing.T) {
	parts, err := partition.Parse("Default=0x7fff : ALL=limited, SELF=full;\nOurs=0x0007 : ALL=full;\n")
	if err != nil {
		t.Fatal(err)
	}
	f := newIBFabric(t, 3, subnet.Config{Partitions: parts, Enforce: subnet.EnforceOff}) // else the switch drops the datagram
	h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
	i, j := f.add(h, 1, AdapterConfig{}), f.add(g, 2, AdapterConfig{}) // both limited members of the default partition
	a, b := newProgram(t, h, i), newProgram(t, g, j)
	port, err := a.c.Port(bg, i)
	a.check(err)
	if port.PKeys[0] != 0x7fff || port.PKeys[1] != 0x8007 {
		t.Fatalf("the partitions are %#x", port.PKeys[:port.PKeyCount])
	}
	c := connect(a.qp(command.CreateQP{}, a.cq(64)), b.qp(command.CreateQP{}, b.cq(64)))
	if k := c.a.info().Attr.PKeyIndex; k != 1 {
		t.Errorf("the connection is in the partition of row %d, want 1", k)
	}
	operations(t, c)

	const qkey = 7
	x, y := a.qp(command.CreateQP{Type: command.UD}, a.cq(16)), b.qp(command.CreateQP{Type: command.UD}, b.cq(16))
	x.toDatagrams(qkey)
	y.toDatagrams(qkey) // in row 0, where both are limited members
	src, dst := a.buffer(64), b.buffer(256)
	y.postRecv(1, dst.sge(0, 256))
	a.check(x.sendTo(b.addr, y.q.Number, qkey, src.sge(0, 8)))
	wantSuccess(t, x.cq.next(), 0, ring.CQSend)
	f.until(g, func() bool { return g.adapters[j].engine.Counters().PKeyViolations == 1 })
	f.until(g, func() bool {
		violations := uint16(0)
		f.Do(func(_ clock.Time, n *fabric.Fabric) {
			violations = n.PortInfo(fabric.Place{Node: 2, Port: 1}).PKeyViolations
		})
		return violations == 1
	})
}

// TestJoinGroup: a program joins a multicast group through the CM. The event has the group's parameters, and a
// datagram reaches all members, the sender included.
func TestJoinGroup(t *testing.T) {
	p := newIBPair(t, subnet.Config{}, AdapterConfig{Addr: netip.MustParseAddr("10.9.0.1")})
	p.b.check(p.b.host.SetAddresses(p.b.adapter, []netip.Addr{netip.MustParseAddr("10.9.0.2")}))
	group := command.AddrFrom(netip.MustParseAddr("239.9.0.1"))
	type member struct {
		*pair
		id command.Handle
		to command.Event
	}
	join := func(x *program, local string) member {
		m := member{pair: x.qp(command.CreateQP{Type: command.UD}, x.cq(16))}
		m.toDatagrams(ib.QKeyRDMAUDP)
		var err error
		m.id, err = x.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.UDP})
		x.check(err)
		_, err = x.c.CMBind(bg, m.id, command.Endpoint{Addr: command.AddrFrom(netip.MustParseAddr(local))})
		x.check(err)
		x.check(x.c.CMJoin(bg, command.CMJoin{ID: m.id, QP: m.q.Handle, Group: group}))
		m.to = x.event(command.EventMulticastJoined)
		return m
	}
	a, b := join(p.a, "10.9.0.1"), join(p.b, "10.9.0.2")
	if a.to.LID < 0xc000 || a.to.LID != b.to.LID || a.to.Path != command.PathGlobal || a.to.Param.QKey != ib.QKeyRDMAUDP ||
		a.to.Local.Addr.IP() != netip.MustParseAddr("ff12:4001:ffff::f09:1") {
		t.Errorf("the group is %+v", a.to)
	}
	src := p.a.buffer(64)
	copy(src.b, "to all")
	own, dst := p.a.buffer(256), p.b.buffer(256)
	a.postRecv(1, own.sge(0, 256))
	b.postRecv(1, dst.sge(0, 256))
	ah, err := p.a.c.CreateAH(bg, command.CreateAH{PD: p.a.pd, AV: command.AddressVector{Addr: a.to.Local.Addr, LID: a.to.LID, SL: a.to.SL,
		Path: a.to.Path}})
	p.a.check(err)
	wr := ring.SendWR{Op: ring.OpSend, NumSGE: 1, AH: uint32(ah), RemoteQPN: 0xffffff, QKey: ib.QKeyRDMAUDP}
	wr.SGE[0] = src.sge(0, 6)
	a.post(wr)
	for _, m := range []member{a, b} {
		e := m.cq.next()
		wantSuccess(t, e, 1, ring.CQRecv)
		if e.SrcQP != a.q.Number || e.Flags&ring.HasGRH == 0 || e.SLID == 0 {
			t.Errorf("completion %+v, want one from QP %#x with a GRH and a LID", e, a.q.Number)
		}
	}
	if string(dst.b[40:46]) != "to all" || string(own.b[40:46]) != "to all" {
		t.Errorf("%q and %q arrived", dst.b[40:46], own.b[40:46])
	}
	p.b.check(p.b.c.CMLeave(bg, command.CMLeave{ID: b.id, QP: b.q.Handle, Group: group}))
	wantCode(t, p.b.c.CMLeave(bg, command.CMLeave{ID: b.id, QP: b.q.Handle, Group: group}), command.NotFound)
	if e := p.b.c.Destroy(bg, command.KindCM, b.id); e != nil {
		t.Error(e)
	}
}

// TestAnotherSubnetManager: a new subnet manager asks the ports to register again (ClientReregister): they join their
// groups and register their addresses again.
func TestAnotherSubnetManager(t *testing.T) {
	p := newIBPair(t, subnet.Config{}, AdapterConfig{Addr: netip.MustParseAddr("10.9.0.1")})
	group := netip.MustParseAddr("239.9.0.1")
	q := p.a.qp(command.CreateQP{Type: command.UD}, p.a.cq(16))
	q.toDatagrams(ib.QKeyRDMAUDP)
	p.a.check(p.a.c.AttachMulticast(bg, q.q.Handle, command.AddrFrom(group)))
	p.b.check(p.b.host.SetAddresses(p.b.adapter, []netip.Addr{netip.MustParseAddr("10.9.0.2")}))
	p.stop()
	p.manage(subnet.Config{})
	p.a.event(command.EventClientReregister)
	x := p.b.qp(command.CreateQP{Type: command.UD}, p.b.cq(16))
	x.toDatagrams(ib.QKeyRDMAUDP)
	src, dst := p.b.buffer(64), p.a.buffer(256)
	q.postRecv(1, dst.sge(0, 256))
	arrived := func() bool {
		p.a.host.lock()
		defer p.a.host.unlock()
		return p.a.host.adapters[0].engine.Counters().MulticastPackets > 0
	}
	// What is sent before both have joined and registered is lost.
	await.Eventually(t, "a datagram to the group arrives", func() bool {
		p.b.check(x.sendTo(group, 0xffffff, ib.QKeyRDMAUDP, src.sge(0, 8)))
		wantSuccess(t, x.cq.next(), 0, ring.CQSend)
		return arrived()
	})
	p.registered(p.b.host, p.b.adapter)
	_, err := p.a.c.CreateAH(bg, command.CreateAH{PD: p.a.pd,
		AV: command.AddressVector{Addr: command.AddrFrom(netip.MustParseAddr("10.9.0.2"))}})
	p.a.check(err)
}
