package device

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/gid"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// ibPort is what an adapter whose port is InfiniBand's has beyond the others.
type ibPort struct {
	link link.InfiniBand
	port link.Port // as it was when the link had counted so many changes
	seen uint64

	sa      *sa.Client
	tickets map[sa.Ticket]func(now clock.Time, a *sa.Answer)
	asked   [8]sa.Datagram
	told    [8]sa.Answer

	ips      []netip.Addr // addresses by which programs call the port
	paths    map[pathKey]*ibPath
	names    map[netip.Addr]*ibName
	groups   map[ib.GID]*ibGroup
	resolver Resolver
	renew    clock.Time // when the addresses are offered again
	waits    waits      // programs' questions
	refused  [8]link.Violation
}

// newIBPort takes an InfiniBand link for an adapter. The configuration is complete.
func newIBPort(cfg *AdapterConfig, transaction uint64) (*ibPort, error) {
	l := cfg.Link.(link.InfiniBand)
	client, err := sa.New(sa.Config{Timeout: cfg.SATimeout, Retries: cfg.SARetries, Transaction: transaction})
	if err != nil {
		return nil, command.Errorf(command.Invalid, "%v", err)
	}
	p := &ibPort{
		link: l, seen: l.Changes(), sa: client, tickets: map[sa.Ticket]func(clock.Time, *sa.Answer){},
		paths: map[pathKey]*ibPath{}, names: map[netip.Addr]*ibName{}, groups: map[ib.GID]*ibGroup{}, renew: clock.Never,
	}
	p.port = l.Port()
	for _, a := range append([]netip.Addr{cfg.Addr}, cfg.Addrs...) {
		if !p.isGID(a) && !slices.Contains(p.ips, a) {
			p.ips = append(p.ips, a)
		}
	}
	return p, nil
}

// completeIB checks what of a configuration an InfiniBand port has, and puts in the defaults.
func (c *AdapterConfig) completeIB() error {
	l, ok := c.Link.(link.InfiniBand)
	switch {
	case !ok:
		return command.Errorf(command.Unsupported, "Link: says that it is InfiniBand's, and tells nothing of its port")
	case c.RoCE != 0 && c.RoCE != InfiniBand:
		return command.Errorf(command.Invalid, "RoCE is %d: the port is InfiniBand's, want 0 or 4", c.RoCE)
	case c.RoceMaxFrameSize != 0 || c.MTU != 0:
		return command.Errorf(command.Invalid, "RoceMaxFrameSize and MTU are Ethernet's; the subnet manager sets the MTU of an InfiniBand port")
	case c.SATimeout < 0 || c.SATimeout > time.Minute:
		return command.Errorf(command.Invalid, "SATimeout is %v, want up to 1m", c.SATimeout)
	case c.SARetries < 0 || c.SARetries > 64:
		return command.Errorf(command.Invalid, "SARetries is %d, want 1 to 64", c.SARetries)
	}
	c.RoCE = InfiniBand
	if !c.Addr.IsValid() {
		p := l.Port()
		if len(p.GUIDs) == 0 || p.GUIDs[0] == 0 {
			return command.Errorf(command.Invalid, "Link: its port has no GUID")
		}
		c.Addr = gid.Of(gid.LinkLocal, p.GUIDs[0])
	}
	return nil
}

// gid is the port's first GID.
func (p *ibPort) gid() ib.GID {
	if len(p.port.GUIDs) == 0 {
		return ib.GID{}
	}
	return ib.GID(gid.Of(p.port.Prefix, p.port.GUIDs[0]).As16())
}

// gids are the addresses that packets with a GRH may be for: those of the table, and those with the default
// prefix, which every port has too.
func (p *ibPort) gids() (all []netip.Addr) {
	for _, guid := range p.port.GUIDs {
		if guid == 0 {
			continue
		}
		all = append(all, gid.Of(p.port.Prefix, guid))
		if p.port.Prefix != gid.LinkLocal {
			all = append(all, gid.Of(gid.LinkLocal, guid))
		}
	}
	return all
}

// isGID reports whether an address can only be a port's GID: it has the prefix of the subnet, or the default one.
// Others may be, if they are no known host's.
func (p *ibPort) isGID(a netip.Addr) bool {
	if !a.Is6() || a.Is4In6() {
		return false
	}
	b := a.As16()
	prefix := binary.BigEndian.Uint64(b[:])
	return prefix == gid.LinkLocal || prefix == p.port.Prefix
}

// active reports whether data may pass.
func (p *ibPort) active() bool { return p.port.State == mad.PortActive }

// has reports whether a LID is the port's.
func (p *ibPort) has(l ib.LID) bool {
	return p.port.LID != 0 && l&^p.mask() == p.port.LID
}

// mask is that of the path bits.
func (p *ibPort) mask() ib.LID { return 1<<(p.port.LMC&7) - 1 }

// owns reports whether an address is the adapter's.
func (a *adapter) owns(ip netip.Addr) bool {
	if a.gids.Has(ip) {
		return true
	}
	return a.ib != nil && (slices.Contains(a.ib.ips, ip) || slices.Contains(a.ib.gids(), ip))
}

// receives reports whether what another adapter of this host sends by a route arrives here: IBA's packets go by
// LIDs, which mean something in one fabric only.
func (a *adapter) receives(from *adapter, r *frame.Route) bool {
	if (a.ib == nil) != (from.ib == nil) {
		return false
	}
	if a.ib == nil {
		return a.cfg.UDPPort == r.DstPort && a.gids.Has(r.Dst)
	}
	return r.IB.DLID != 0 && a.ib.has(r.IB.DLID) && a.ib.beside(from.ib)
}

// beside reports whether two ports are active in one fabric.
func (p *ibPort) beside(q *ibPort) bool {
	return p.active() && q.active() && p.port.Fabric != nil && p.port.Fabric == q.port.Fabric
}

// follow does what is due at an InfiniBand port: changes that the subnet manager made, and what the fabric is
// told. It reports whether there was anything.
func (a *adapter) followPort(now clock.Time) bool {
	p := a.ib
	worked := false
	if n := p.link.Changes(); n != p.seen {
		p.seen = n
		a.portChanged(now)
		worked = true
	}
	if p.sa.Deadline() <= now {
		p.sa.Advance(now)
		worked = true
	}
	if p.renew <= now {
		a.offer(now)
		worked = true
	}
	if p.waits.expire(now) {
		worked = true
	}
	for n := a.engine.Violations(p.refused[:]); n > 0; n = a.engine.Violations(p.refused[:]) {
		for i := range p.refused[:n] {
			p.link.Violation(p.refused[i])
		}
	}
	return worked
}

// portChanged brings everything in line with the port, and tells the programs (IBA 11.6.3).
func (a *adapter) portChanged(now clock.Time) {
	p := a.ib
	old := p.port
	p.port = p.link.Port()
	n := &p.port
	for _, plug := range a.plugs {
		plug.encap.SetPort(n)
		plug.encap.SetAddrs(p.gids())
	}
	a.setMTU(int(a.linkMTU)) // it had one, and has one now
	if m, ok := ib.MTUFor(int(a.mtu)); ok {
		a.cm.SetMTU(m)
	}
	moved := n.LID != old.LID || n.LMC != old.LMC
	managed := n.SMLID != old.SMLID || n.SMSL != old.SMSL
	again := n.Reregister != old.Reregister
	if moved || managed || again || n.Prefix != old.Prefix {
		clear(p.paths)
		clear(p.names)
		clear(a.gsi.routes)
	}
	p.sa.SetManager(n.SMLID, n.SMSL)
	for _, c := range []struct {
		is  bool
		typ command.EventType
	}{
		{a.gids.SetPort(n), command.EventGIDChange}, {a.setPKeys(n.PKeys), command.EventPKeyChange}, {moved, command.EventLIDChange},
		{managed, command.EventSMChange}, {again, command.EventClientReregister},
	} {
		if c.is {
			a.broadcast(c.typ)
		}
		if c.is && c.typ == command.EventGIDChange {
			a.host.status(a, StatusGIDChange)
		}
	}
	if moved {
		a.moveRoutes()
	}
	a.setActive(now)
	if again || managed || moved {
		a.joinAgainIB(now)
	}
	if p.active() && n.SMLID != 0 && (again || managed || moved || old.State != n.State) {
		p.renew = now
	}
	if a.enabled {
		a.reroute()
	}
}

// setActive tells whether the port passes data.
func (a *adapter) setActive(now clock.Time) {
	if active := a.ib.active(); active != a.present {
		a.present = active
		if !a.enabled {
			return
		}
		if active {
			a.broadcast(command.EventPortActive)
			a.host.status(a, StatusUp)
		} else {
			a.linkDowns++
			a.ib.renew = clock.Never
			a.broadcast(command.EventPortDown)
			a.host.status(a, StatusDown)
		}
	}
}

// setPKeys puts the port's partition table in force, and reports whether it is another.
func (a *adapter) setPKeys(keys []ib.PKey) bool {
	if len(keys) == 0 {
		keys = []ib.PKey{ib.PKeyDefault} // before the subnet manager has come (IBA 10.9.2)
	}
	if slices.Equal(keys, a.engine.PKeys()) {
		return false
	}
	a.engine.SetPKeys(keys)
	a.cm.SetPKeys(keys)
	return true
}

// pkeyIndex is the row of the table by which the port is in a partition: the key itself, or the other
// membership of it; row 0 where there is none.
func (a *adapter) pkeyIndex(k ib.PKey) uint32 {
	keys := a.engine.PKeys()
	if i := slices.Index(keys, k); i >= 0 {
		return uint32(i)
	}
	if i := slices.IndexFunc(keys, func(have ib.PKey) bool { return k.Valid() && have.Base() == k.Base() }); i >= 0 {
		return uint32(i)
	}
	return 0
}

// memberKey is the port's own key in the partition of k, 0 where it is in none.
func (a *adapter) memberKey(k ib.PKey) ib.PKey {
	if keys := a.engine.PKeys(); k.Valid() && len(keys) > 0 {
		if have := keys[a.pkeyIndex(k)]; have.Base() == k.Base() {
			return have
		}
	}
	return 0
}

// moveRoutes gives routes the port's LID after it has changed. Peers of connections that know the old one do not
// hear of it, as with every adapter.
func (a *adapter) moveRoutes() {
	for _, q := range a.byNumber {
		if q.tq != nil {
			if r := q.tq.Route(); r != nil {
				a.ib.from(r)
			}
		}
	}
	for _, c := range a.host.clients {
		c.ahs.Each(func(o *ah) {
			if o.pd.adapter == a {
				a.ib.from(&o.route)
			}
		})
	}
}

// from puts the port's LID in a route.
func (p *ibPort) from(r *frame.Route) {
	r.Src = frame.LIDAddr(p.port.LID | ib.LID(r.IB.PathBits)&p.mask())
}

// source is the address that packets to another one come from: a GID to a GID, else the first IP address of
// its family. What neither has is first.
func (p *ibPort) source(remote, first netip.Addr) netip.Addr {
	if p.isGID(remote) {
		return netip.AddrFrom16(p.gid())
	}
	for _, ip := range p.ips {
		if ip.Is4() == remote.Is4() {
			return ip
		}
	}
	if remote.Is6() {
		return netip.AddrFrom16(p.gid())
	}
	return first
}
