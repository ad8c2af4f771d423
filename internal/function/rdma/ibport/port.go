// Package ibport is an adapter's view of its InfiniBand port: what the subnet manager has set (LIDs,
// partitions, GIDs), and what was learned from the subnet administration (IBA chapter 15): which port has
// an address, the path to it, the groups that programs have joined, and the IP addresses under which
// others find this port.
//
// A Port is a pure engine over [sa.Client]: the adapter passes in what arrives and the time, and sends its
// requests. Answers are delivered by callbacks, from Advance, from Deliver, or at once.
package ibport

import (
	"encoding/binary"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Config describes a port.
type Config struct {
	Link link.InfiniBand
	// Addresses are those by which programs refer to the port; those that can only be GIDs are ignored.
	Addresses []netip.Addr
	// Timeout and Retries apply to requests to the subnet administration; Transaction is the prefix of
	// their identifiers; as in [sa.Config].
	Timeout     time.Duration
	Retries     int
	Transaction uint64
	// Near finds an active port of this process in the same fabric by an address; nil: there are no others.
	Near func(ip netip.Addr) (ib.GID, bool)
	// Share makes it a virtual function's view of the port, whose alias GUIDs are asked for by Aliases; nil: it is the port's own.
	Share   *Share
	Aliases Asks
	// Log receives messages for an administrator.
	Log *slog.Logger
}

// Port is an InfiniBand port.
type Port struct {
	link link.InfiniBand
	set  link.Port // settings as of the link's change count seen
	seen uint64
	took uint64 // how often they were taken
	keys []ib.PKey
	// physical is what the link says, of which set is what concerns this one.
	physical link.Port
	share    *Share // of a virtual function; nil: it is none
	reserved int    // first row of virtual functions; 0: there are none
	alias    alias
	log      *slog.Logger

	client  *sa.Client
	tickets map[sa.Ticket]func(now clock.Time, a *sa.Answer)
	asked   [8]sa.Datagram
	told    [8]sa.Answer

	near    func(ip netip.Addr) (ib.GID, bool)
	resolve Resolve // nil: no resolver

	ips    []netip.Addr // addresses by which programs refer to the port
	paths  map[ib.GID]*path
	names  map[netip.Addr]*name
	groups map[ib.GID]*group
	renew  clock.Time                         // when the addresses are registered again
	waits  clock.Agenda[func(now clock.Time)] // requests of programs
}

// New creates a port whose settings count as changed and whose addresses are still to be registered. The
// error is that of [sa.New].
func New(cfg Config) (*Port, error) {
	client, err := sa.New(sa.Config{Timeout: cfg.Timeout, Retries: cfg.Retries, Transaction: cfg.Transaction})
	if err != nil {
		return nil, err
	}
	p := &Port{
		link: cfg.Link, seen: cfg.Link.Changes() - 1, keys: []ib.PKey{ib.PKeyDefault}, log: cfg.Log, client: client, near: cfg.Near,
		tickets: map[sa.Ticket]func(clock.Time, *sa.Answer){},
		paths:   map[ib.GID]*path{}, names: map[netip.Addr]*name{}, groups: map[ib.GID]*group{}, share: cfg.Share,
	}
	p.alias.ask = cfg.Aliases
	p.alias.again()
	p.set = p.look()
	for _, a := range cfg.Addresses {
		if !p.IsGID(a) && !slices.Contains(p.ips, a) {
			p.ips = append(p.ips, a)
		}
	}
	return p, nil
}

// Settings returns what the subnet manager has set, as of the last Take. The caller must not modify it.
func (p *Port) Settings() *link.Port { return &p.set }

// Changes say what has changed about a port.
type Changes struct {
	PKeys      bool // its partitions
	LID        bool // its LIDs
	Manager    bool // the master subnet manager or its location has changed
	Reregister bool // the subnet manager asks clients to register again
	Routes     bool // cached paths are invalid
	state      mad.PortState
}

// Changed reports whether the link has changes that Take has not taken.
func (p *Port) Changed() bool { return p.link.Changes() != p.seen }

// Take takes over the port's current settings. Call Resume once the adapter has adapted to them.
func (p *Port) Take() Changes {
	p.seen = p.link.Changes()
	p.took++
	old, was := p.set, p.physical.State
	p.set = p.look()
	n := &p.set
	c := Changes{
		LID: n.LID != old.LID || n.LMC != old.LMC, Manager: n.SMLID != old.SMLID || n.SMSL != old.SMSL,
		Reregister: n.Reregister != old.Reregister,
		PKeys:      p.setKeys(n.PKeys), state: old.State,
	}
	if c.Routes = c.LID || c.Manager || c.Reregister || n.Prefix != old.Prefix || p.share != nil && old.GUIDs[0] != n.GUIDs[0]; c.Routes {
		clear(p.paths)
		clear(p.names)
	}
	if p.share != nil && (c.LID || c.Manager || c.Reregister || was != p.physical.State || old.GUIDs[0] != 0 && n.GUIDs[0] == 0) {
		p.alias.again()
	}
	p.client.SetManager(n.SMLID, n.SMSL)
	return c
}

// Taken counts the calls of Take.
func (p *Port) Taken() uint64 { return p.took }

// Resume tells the subnet administration what it may not know after changes: groups and addresses.
func (p *Port) Resume(now clock.Time, c Changes) {
	anew := c.Reregister || c.Manager || c.LID
	if anew {
		p.joinAgain(now)
	}
	if p.Active() && p.set.SMLID != 0 && (anew || c.state != p.set.State) {
		p.renew = now
	}
}

// Active reports whether data may pass.
func (p *Port) Active() bool { return p.set.State == mad.PortActive }

// Refuse reports a refused packet to the subnet manager.
func (p *Port) Refuse(v link.Violation) { p.link.Violation(v) }

// Has reports whether a LID belongs to the port.
func (p *Port) Has(l ib.LID) bool {
	return p.set.LID != 0 && l&^p.Mask() == p.set.LID
}

// Mask returns the mask of the path bits in its LIDs.
func (p *Port) Mask() ib.LID { return 1<<(p.set.LMC&7) - 1 }

// From sets the source LID of a route.
func (p *Port) From(r *frame.Route) {
	r.Src = frame.LIDAddr(p.set.LID | ib.LID(r.IB.PathBits)&p.Mask())
}

// SameFabric reports whether both ports are active in the same fabric.
func (p *Port) SameFabric(q *Port) bool {
	return p.Active() && q.Active() && p.set.Fabric != nil && p.set.Fabric == q.set.Fabric
}

// GID returns the port's first GID.
func (p *Port) GID() ib.GID {
	if len(p.set.GUIDs) == 0 {
		return ib.GID{}
	}
	return ib.GID(gid.Of(p.set.Prefix, p.set.GUIDs[0]).As16())
}

// GIDs returns the addresses to which packets with a GRH may be sent: those of the table, and those with
// the default prefix, which every port also has.
func (p *Port) GIDs() (all []netip.Addr) {
	for _, guid := range p.set.GUIDs {
		if guid == 0 {
			continue
		}
		all = append(all, gid.Of(p.set.Prefix, guid))
		if p.set.Prefix != gid.LinkLocal {
			all = append(all, gid.Of(gid.LinkLocal, guid))
		}
	}
	return all
}

// HasGID reports whether an address is one of GIDs.
func (p *Port) HasGID(a netip.Addr) bool {
	if !a.Is6() {
		return false
	}
	b := a.As16()
	prefix, guid := binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
	return guid != 0 && (prefix == p.set.Prefix || prefix == gid.LinkLocal) && slices.Contains(p.set.GUIDs, guid)
}

// IsGID reports whether an address can only be a port's GID: it has the subnet's prefix, or the default
// one. Other addresses may be GIDs if no known host has them.
func (p *Port) IsGID(a netip.Addr) bool {
	if !a.Is6() || a.Is4In6() {
		return false
	}
	b := a.As16()
	prefix := binary.BigEndian.Uint64(b[:])
	return prefix == gid.LinkLocal || prefix == p.set.Prefix
}

// Owns reports whether an address belongs to the port: one by which programs refer to it, or a GID.
func (p *Port) Owns(ip netip.Addr) bool {
	return slices.Contains(p.ips, ip) || slices.Contains(p.GIDs(), ip)
}

// Addresses returns the IP addresses by which programs refer to the port.
func (p *Port) Addresses() []netip.Addr { return p.ips }

// Source returns the source address for packets to another one: a GID for a GID, else the first IP address
// of its family, else first.
func (p *Port) Source(remote, first netip.Addr) netip.Addr {
	if p.IsGID(remote) {
		return netip.AddrFrom16(p.GID())
	}
	for _, ip := range p.ips {
		if ip.Is4() == remote.Is4() {
			return ip
		}
	}
	if remote.Is6() {
		return netip.AddrFrom16(p.GID())
	}
	return first
}
