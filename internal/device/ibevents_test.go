package device

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// cable is the link of an InfiniBand port without a fabric, whose state the test sets. What is sent on it is lost.
type cable struct {
	link.Link
	changes    uint64
	port       link.Port
	violations []link.Violation
}

func (c *cable) Capabilities() link.Capabilities {
	return link.Capabilities{MaxSegments: 1, Raw: true, InfiniBand: true, MTU: 4096, Fabric: c}
}
func (*cable) Prepare(r *frame.Route) error    { return nil }
func (*cable) Send(f []frame.Out) (int, error) { return len(f), nil }
func (*cable) Receive([]frame.In) (int, error) { return 0, nil }
func (*cable) Errors([]link.Unreachable) int   { return 0 }
func (*cable) Descriptors() []int              { return nil }
func (*cable) Stats() link.Stats               { return link.Stats{} }
func (*cable) Close() error                    { return nil }
func (c *cable) Changes() uint64               { return c.changes }
func (c *cable) Port() link.Port               { return c.port }
func (c *cable) Violation(v link.Violation)    { c.violations = append(c.violations, v) }

// atCable returns a host that is stepped by hand, with an adapter at a cable and a program.
func atCable(t *testing.T) (*Host, *cable, *program) {
	t.Helper()
	now := clock.Time(0)
	h := newHost(t, Config{Seed: 1, NoBackground: true, Now: func() clock.Time { return now }})
	c := &cable{changes: 1, port: link.Port{State: mad.PortInit, Physical: mad.PhysicalLinkUp, GUIDs: []uint64{0x5f0001},
		Prefix: gid.LinkLocal, MaxMTU: ib.MTU4096,
		Width: mad.Width4x, Speed: mad.SpeedEDR}}
	return h, c, newProgram(t, h, h.add(t, AdapterConfig{Link: c, Addr: netip.MustParseAddr("10.9.0.1")}))
}

// change edits the port's state and steps the host.
func (c *cable) change(h *Host, edit func(*link.Port)) {
	h.lock()
	defer h.unlock()
	c.port.GUIDs, c.port.PKeys = slices.Clone(c.port.GUIDs), slices.Clone(c.port.PKeys)
	edit(&c.port)
	c.changes++
	h.step()
}

// told returns the types of the events that a program got since the last call: those before one that it makes now, as they come in the
// order in which they were raised.
func (p *program) told() (all []command.EventType) {
	p.t.Helper()
	srq, err := p.c.CreateSRQ(bg, command.CreateSRQ{PD: p.pd, Depth: 1})
	p.check(err)
	p.check(p.c.ModifySRQ(bg, command.ModifySRQ{SRQ: srq.Handle, Limit: 1})) // of which there are fewer already
	for deadline := time.After(await.Limit); ; {
		select {
		case e := <-p.events:
			if e.Type == command.EventSRQLimit {
				p.check(p.c.Destroy(bg, command.KindSRQ, srq.Handle))
				return all
			}
			all = append(all, e.Type)
		case <-deadline:
			p.t.Fatal("the last event does not come")
		}
	}
}

// TestChangesOfAPort: every change that a subnet manager makes at a port raises the event for it (IBA 11.6.3.3) and
// is in force at once.
func TestChangesOfAPort(t *testing.T) {
	h, c, p := atCable(t)
	p.told()
	for _, s := range []struct {
		name string
		edit func(*link.Port)
		want []command.EventType
	}{
		{"nothing", func(*link.Port) {}, nil},
		{"the subnet manager comes", func(n *link.Port) { n.SMLID, n.SMSL = 1, 2 }, []command.EventType{command.EventSMChange}},
		{"a LID", func(n *link.Port) { n.LID, n.LMC = 8, 1 }, []command.EventType{command.EventLIDChange}},
		{"partitions", func(n *link.Port) { n.PKeys = []ib.PKey{0xffff, 0x8001, 0} }, []command.EventType{command.EventPKeyChange}},
		{"another prefix", func(n *link.Port) { n.Prefix = 0xfec0 << 48 }, []command.EventType{command.EventGIDChange}},
		{"another GUID", func(n *link.Port) { n.GUIDs = append(n.GUIDs, 0, 0x99) }, []command.EventType{command.EventGIDChange}},
		{"active", func(n *link.Port) { n.State, n.MTU = mad.PortActive, ib.MTU2048 }, []command.EventType{command.EventPortActive}},
		{"register again", func(n *link.Port) { n.Reregister++ }, []command.EventType{command.EventClientReregister}},
		{"down", func(n *link.Port) { n.State = mad.PortDown }, []command.EventType{command.EventPortDown}},
	} {
		c.change(h, s.edit)
		if got := p.told(); !slices.Equal(got, s.want) {
			t.Errorf("%s: events %v, want %v", s.name, got, s.want)
		}
	}
	port, err := p.c.Port(bg, 0)
	p.check(err)
	infos, err := p.c.Adapters(bg)
	p.check(err)
	gids, err := p.c.GIDs(bg, 0)
	p.check(err)
	if port.LID != 8 || port.LMC != 1 || port.SMLID != 1 || port.SMSL != 2 || port.PKeyCount != 3 || port.PKeys[1] != 0x8001 ||
		port.State != 1 ||
		port.Width != 2 || port.Lane != 25781 || port.Prefix != 0xfec0<<48 || port.MaxMTU != 4096 {
		t.Errorf("the port is %+v", port)
	}
	if infos[0].ActiveMTU != 2048 || infos[0].Up != 0 || infos[0].Addr.IP() != netip.MustParseAddr("10.9.0.1") {
		t.Errorf("the adapter is %+v", infos[0])
	}
	if len(gids) != 2 || gids[1].Index != 2 || netip.AddrFrom16(gids[1].GID) != netip.MustParseAddr("fec0::99") {
		t.Errorf("the GIDs are %+v", gids)
	}
}

// TestRoutesByLID: the route of an address vector names the destination by its LID, with the path bits and the GRH
// that the vector asks for. Without a LID the path must have been resolved.
func TestRoutesByLID(t *testing.T) {
	h, c, _ := atCable(t)
	c.change(h, func(n *link.Port) { n.State, n.LID, n.LMC, n.SMLID = mad.PortActive, 8, 2, 1 })
	dgid := command.AddrFrom(netip.MustParseAddr("fe80::77"))
	mgid := command.AddrFrom(netip.MustParseAddr("ff12:401b:ffff::1"))
	a := h.adapters[0]
	for _, s := range []struct {
		name string
		av   command.AddressVector
		want string // the error
		src  ib.LID
		grh  bool
	}{
		{"LID", command.AddressVector{LID: 5, SL: 15}, "", 8, false},
		{"path bits", command.AddressVector{LID: 5, Path: 3}, "", 11, false},
		{"path bits beyond the LMC", command.AddressVector{LID: 5, Path: 7}, "", 11, false},
		{"GRH", command.AddressVector{LID: 5, Path: command.PathGlobal, Addr: dgid}, "", 8, true},
		{"group", command.AddressVector{LID: 0xc001, Addr: mgid}, "", 8, true},
		{"no LID", command.AddressVector{}, "LID is 0x0, want the destination's, 1 to 0xbfff", 0, false},
		{"no path", command.AddressVector{Addr: dgid}, "LID is 0, and no path to fe80::77 was asked for", 0, false},
		{"permissive LID", command.AddressVector{LID: 0xffff}, "LID is 0xffff, want the destination's, 1 to 0xbfff", 0, false},
		{"GRH without GID", command.AddressVector{LID: 5, Path: command.PathGlobal},
			"Addr is ::: packets with a GRH need the destination's GID", 0, false},
		{"group at a port's LID", command.AddressVector{LID: 5, Addr: mgid},
			"LID is 0x5, want the multicast LID of group ff12:401b:ffff::1, which was not joined here", 0, false},
		{"SL", command.AddressVector{LID: 5, SL: 16}, "SL is 16, want 0 to 15", 0, false},
		{"flow label", command.AddressVector{LID: 5, FlowLabel: 1 << 20}, "FlowLabel is 0x100000, want 20 bits", 0, false},
		{"static rate", command.AddressVector{LID: 5, StaticRate: 2}, "", 8, false},
		{"no rate", command.AddressVector{LID: 5, StaticRate: 1}, "StaticRate is 1, want 0 or a code of a rate from 2 to 26", 0, false},
		{"row", command.AddressVector{LID: 5, SrcIndex: 1}, "SrcIndex is 1: no such row in the GID table", 0, false},
	} {
		h.lock()
		r, err := a.route(s.av)
		h.unlock()
		if s.want != "" {
			if e, ok := err.(*command.Error); !ok || e.Detail != s.want {
				t.Errorf("%s: %v, want %s", s.name, err, s.want)
			}
			continue
		}
		if err != nil || r.Src != frame.LIDAddr(s.src) || r.IB.Global != s.grh || r.IB.DLID != ib.LID(s.av.LID) || r.IB.SL != s.av.SL ||
			int(r.Rate) != ib.Rate(s.av.StaticRate).Mbps()*1000 {
			t.Errorf("%s: %+v, %v", s.name, r, err)
		}
	}
}

// TestConnectionsFollowTheLID: connections and address handles send from the port's new LID when the subnet manager
// changes it, and packets with P_Keys of other partitions are reported to the fabric.
func TestConnectionsFollowTheLID(t *testing.T) {
	h, c, p := atCable(t)
	c.change(h, func(n *link.Port) { n.State, n.LID, n.SMLID, n.PKeys = mad.PortActive, 8, 1, []ib.PKey{0xffff, 0x8001} })
	q := p.qp(command.CreateQP{Type: command.RC}, p.cq(16))
	p.check(p.c.ModifyQP(bg, command.ModifyQP{QP: q.q.Handle, Mask: command.MaskState | command.MaskPKey | command.MaskAccess,
		State: command.Init, PKeyIndex: 1}))
	p.check(p.c.ModifyQP(bg, command.ModifyQP{
		QP: q.q.Handle,
		Mask: command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN |
			command.MaskResponderResources | command.MaskMinRNRTimer,
		State: command.RTR, Route: command.AddressVector{LID: 5}, MTU: 1024, DestQPN: 9,
	}))
	ah, err := p.c.CreateAH(bg, command.CreateAH{PD: p.pd, AV: command.AddressVector{LID: 5}})
	p.check(err)
	c.change(h, func(n *link.Port) { n.LID = 12 })
	h.lock()
	qr, ar := *h.adapters[0].byNumber[q.q.Number].tq.Route(), p.c.ahs.Get(ah).route
	h.unlock()
	if qr.Src != frame.LIDAddr(12) || ar.Src != frame.LIDAddr(12) {
		t.Errorf("the connection comes from %v, the address handle from %v, want LID 12", qr.Src, ar.Src)
	}
	b := make([]byte, ib.BTHLen)
	ib.BTH(b).Encode(ib.RCSendOnly, false, false, 0, 0x8002, ib.QPN(q.q.Number), 0)
	h.lock()
	h.adapters[0].engine.Receive(0, []frame.In{{Data: b, Src: frame.LIDAddr(5), Dst: frame.LIDAddr(12), SLID: 5}})
	h.step()
	h.unlock()
	want := []link.Violation{{Kind: link.PKeyViolation, Key: 0x8002, SLID: 5, DLID: 12, DestQP: ib.QPN(q.q.Number)}}
	if !slices.Equal(c.violations, want) {
		t.Errorf("the violations reported to the fabric are %+v, want %+v", c.violations, want)
	}
}

// TestTheLocalPathIsTheFabrics: two ports of one host use the local path only while the fabric would carry their
// packets: both active, in one fabric and one partition, at the LIDs that the connection has.
func TestTheLocalPathIsTheFabrics(t *testing.T) {
	for _, s := range []struct {
		name string
		edit func(*link.Port)
		path uint32
	}{
		{"nothing changes", func(*link.Port) {}, 2},
		{"the partition goes", func(n *link.Port) { n.PKeys = []ib.PKey{0x8002} }, 1},
		{"a limited member is left", func(n *link.Port) { n.PKeys = []ib.PKey{0x7fff} }, 2},
		{"another LID", func(n *link.Port) { n.LID = 77 }, 1},
		{"not active", func(n *link.Port) { n.State = mad.PortInit }, 1},
		{"another fabric", func(n *link.Port) { n.Fabric = "another" }, 1},
	} {
		h := newHost(t, Config{Seed: 1, NoBackground: true, Now: func() clock.Time { return 0 }})
		ports := [2]*cable{}
		qps := [2]*pair{}
		for i := range ports {
			ports[i] = &cable{changes: 1, port: link.Port{State: mad.PortActive, LID: ib.LID(5 + i), SMLID: 1,
				GUIDs: []uint64{uint64(0x5f0001 + i)}, Prefix: gid.LinkLocal,
				MTU: ib.MTU4096, MaxMTU: ib.MTU4096, PKeys: []ib.PKey{0xffff}, Fabric: "one"}}
			p := newProgram(t, h, h.add(t, AdapterConfig{Link: ports[i]}))
			qps[i] = p.qp(command.CreateQP{Type: command.UC}, p.cq(16))
		}
		for i, q := range qps {
			for _, m := range []command.ModifyQP{
				{Mask: command.MaskState | command.MaskPKey | command.MaskAccess, State: command.Init},
				{Mask: command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN,
					State: command.RTR,
					Route: command.AddressVector{LID: uint16(6 - i)}, MTU: 1024, DestQPN: qps[1-i].q.Number},
				{Mask: command.MaskState | command.MaskSQPSN, State: command.RTS},
			} {
				m.QP = q.q.Handle
				q.p.check(q.p.c.ModifyQP(bg, m))
			}
		}
		if path := qps[0].info().Path; path != 2 {
			t.Fatalf("path %d before, want 2 (local)", path)
		}
		ports[1].change(h, s.edit)
		if path := qps[0].info().Path; path != s.path {
			t.Errorf("%s: path %d, want %d", s.name, path, s.path)
		}
	}
}
