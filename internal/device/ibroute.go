package device

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	// pathLife and nameLife are how long an answer counts, where nothing that the subnet manager
	// says ends it before.
	pathLife = 5 * time.Minute
	nameLife = 30 * time.Second
	// maxPaths bounds the answers of each kind that are kept.
	maxPaths = 1 << 16
	// resolveTime bounds a question to a Resolver that nobody bounds else.
	resolveTime = 10 * time.Second
)

// Resolver knows which port of an InfiniBand fabric has an IP address, as IPoIB finds it out by ARP. It may
// take its time, until ctx ends.
type Resolver interface {
	ResolveGID(ctx context.Context, ip netip.Addr) (ib.GID, error)
}

// pathKey is what a path is asked for by.
type pathKey struct {
	to  ib.GID
	key ib.PKey
}

// ibPath is a path that was asked for.
type ibPath struct {
	rec   mad.PathRecord
	known bool
	until clock.Time
	wait  []func(now clock.Time, rec *mad.PathRecord, err error)
}

// ibName is a port that was asked for.
type ibName struct {
	gid   ib.GID
	known bool
	until clock.Time
	wait  []func(now clock.Time, gid ib.GID, err error)
}

// infiniBand is the adapter with that index, whose port has to be InfiniBand's: NotFound, Invalid. The caller holds the baton.
func (h *Host) infiniBand(index uint32) (*adapter, error) {
	a, err := h.adapter(index)
	if err == nil && a.ib == nil {
		err = command.Errorf(command.Invalid, "adapter %q is an Ethernet port, want an InfiniBand one", a.name)
	}
	return a, err
}

// SetResolver has an adapter ask r first for the ports of IP addresses; nil: nobody. The error is NotFound, or
// Invalid where its port is not InfiniBand's.
func (h *Host) SetResolver(index uint32, r Resolver) error {
	h.lock()
	defer h.finish()
	a, err := h.infiniBand(index)
	if err != nil {
		return err
	}
	a.ib.resolver = r
	clear(a.ib.names)
	return nil
}

// SetAddresses replaces the IP addresses by which programs reach an InfiniBand port beside its GIDs, as those of its
// IPoIB interface change. The errors are those of SetResolver.
func (h *Host) SetAddresses(index uint32, ips []netip.Addr) error {
	h.lock()
	defer h.finish()
	a, err := h.infiniBand(index)
	if err != nil {
		return err
	}
	a.withdraw(h.now())
	a.ib.ips = nil
	for _, ip := range ips {
		a.ib.ips = append(a.ib.ips, ip.Unmap().WithZone(""))
	}
	a.offer(h.now())
	a.broadcast(command.EventGIDChange)
	return nil
}

// routeIB makes the route to av from an InfiniBand port.
func (a *adapter) routeIB(av command.AddressVector) (frame.Route, error) {
	from, err := a.gids.Row(av.SrcIndex)
	if err != nil {
		return frame.Route{}, err
	}
	p := a.ib
	r := frame.Route{DstPort: a.cfg.UDPPort, TrafficClass: av.TrafficClass, HopLimit: av.HopLimit, FlowLabel: av.FlowLabel}
	r.IB = frame.InfiniBand{DLID: ib.LID(av.LID), PathBits: av.Path &^ command.PathGlobal, SL: av.SL, Global: av.Path&command.PathGlobal != 0,
		SGID: ib.GID(from.As16()), DGID: ib.GID(av.Addr)}
	switch {
	case av.SL > 15:
		return r, command.Errorf(command.Invalid, "SL is %d, want 0 to 15", av.SL)
	case av.FlowLabel > 0xfffff:
		return r, command.Errorf(command.Invalid, "FlowLabel is %#x, want 20 bits", av.FlowLabel)
	}
	if err := a.destination(&r, av.Addr.IP()); err != nil {
		return r, err
	}
	r.Dst = frame.LIDAddr(r.IB.DLID)
	if r.IB.DLID >= ib.LIDFirstMulticast {
		r.IB.Global, r.Dst = true, netip.AddrFrom16(r.IB.DGID)
	}
	p.from(&r)
	return r, a.prepare(&r)
}

// destination completes where a route goes to: a LID, or a port or group that was asked for before.
func (a *adapter) destination(r *frame.Route, ip netip.Addr) error {
	p, to := a.ib, &r.IB
	if ip.IsMulticast() {
		to.DGID = a.mgid(ip)
		if to.DLID == 0 && p.groups[to.DGID] == nil {
			to.DGID = a.ipMGID(ip)
		}
		if g := p.groups[to.DGID]; g != nil && to.DLID == 0 && g.known {
			to.DLID, to.SL, r.FlowLabel, r.TrafficClass, r.HopLimit = g.rec.MLID, g.rec.SL, g.rec.FlowLabel, g.rec.TrafficClass, g.rec.HopLimit
		}
		if to.DLID < ib.LIDFirstMulticast || to.DLID == ib.LIDPermissive {
			return command.Errorf(command.Invalid, "LID is %#x, want the multicast LID of group %v, which was not joined here", uint16(to.DLID), ip)
		}
		return nil
	}
	if to.DLID == 0 && !ip.IsUnspecified() {
		rec, ok := a.knownPath(ip)
		if !ok {
			return command.Errorf(command.HostUnreachable, "LID is 0, and no path to %v was asked for", ip)
		}
		to.DLID, to.SL, to.DGID = rec.DLID, rec.SL, rec.DGID
		to.Global = to.Global || rec.HopLimit > 1
	}
	if to.DLID == 0 || to.DLID > ib.LIDMaxUnicast {
		return command.Errorf(command.Invalid, "LID is %#x, want the destination's, 1 to 0xbfff", uint16(to.DLID))
	}
	if to.Global && to.DGID.IsZero() {
		return command.Errorf(command.Invalid, "Addr is %v: packets with a GRH need the destination's GID", ip)
	}
	return nil
}

// knownPath is the path to an address that was asked for before, or that is this port's own.
func (a *adapter) knownPath(ip netip.Addr) (mad.PathRecord, bool) {
	p := a.ib
	now := a.host.now()
	gid, ok := a.nearGID(ip)
	if n := p.names[ip]; !ok && n != nil && n.known && now < n.until {
		gid, ok = n.gid, true
	}
	if !ok {
		return mad.PathRecord{}, false
	}
	e := p.paths[pathKey{to: gid}]
	if e == nil || !e.known || now >= e.until {
		return mad.PathRecord{}, false
	}
	return e.rec, true
}

// nearGID is the GID of an address that is one itself, or that an adapter of this host has.
func (a *adapter) nearGID(ip netip.Addr) (ib.GID, bool) {
	if a.ib.isGID(ip) {
		return ib.GID(ip.As16()), true
	}
	for _, o := range a.host.adapters {
		if o.ib != nil && o.enabled && o.owns(ip) && (o == a || o.ib.beside(a.ib)) {
			return o.ib.gid(), true
		}
	}
	return ib.GID{}, false
}

// find asks which port has an address, and calls done with the answer, at once where it is known: its GID, or a host of
// this process, or what the Resolver says, or who offers the address at the subnet administration. What nobody
// knows may be a GID of another subnet.
func (a *adapter) find(now clock.Time, ip netip.Addr, done func(now clock.Time, gid ib.GID, err error)) {
	if gid, ok := a.nearGID(ip); ok {
		done(now, gid, nil)
		return
	}
	p := a.ib
	n := p.names[ip]
	if n != nil && n.known && now < n.until {
		done(now, n.gid, nil)
		return
	}
	if n != nil && !n.known {
		n.wait = append(n.wait, done)
		return
	}
	if len(p.names) >= maxPaths {
		done(now, ib.GID{}, sa.ErrFull)
		return
	}
	n = &ibName{wait: []func(clock.Time, ib.GID, error){done}}
	p.names[ip] = n
	if p.resolver == nil {
		a.findService(now, ip, n)
		return
	}
	go a.askResolver(p.resolver, ip, n)
}

// askResolver asks beside the loop.
func (a *adapter) askResolver(r Resolver, ip netip.Addr, n *ibName) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
	defer cancel()
	gid, err := r.ResolveGID(ctx, ip)
	a.host.lock()
	defer a.host.finish()
	if err != nil {
		a.findService(a.host.now(), ip, n)
		return
	}
	a.found(a.host.now(), ip, n, gid, nil)
}

// findService asks the subnet administration who offers an address.
func (a *adapter) findService(now clock.Time, ip netip.Addr, n *ibName) {
	a.ask(now, sa.Find(ip), func(now clock.Time, answer *sa.Answer) {
		gid, err := ib.GID{}, answer.Err
		if err == nil {
			var rec mad.ServiceRecord
			if rec, err = mad.ParseServiceRecord(answer.Data[:]); err == nil {
				gid = rec.GID
			}
		}
		if err != nil && ip.Is6() && !ip.Is4In6() && refused(err, mad.SANoRecords) {
			gid, err = ib.GID(ip.As16()), nil
		}
		a.found(now, ip, n, gid, err)
	})
}

// found tells all who wait.
func (a *adapter) found(now clock.Time, ip netip.Addr, n *ibName, gid ib.GID, err error) {
	wait := n.wait
	n.gid, n.known, n.wait, n.until = gid, err == nil, nil, now.Add(nameLife)
	if err != nil && a.ib.names[ip] == n {
		delete(a.ib.names, ip)
	}
	for _, done := range wait {
		done(now, gid, err)
	}
}

func refused(err error, status uint16) bool {
	var s *sa.StatusError
	return errors.As(err, &s) && s.Status == status
}

// path asks for the path to a port, and calls done with the answer, at once where it is known.
func (a *adapter) pathTo(now clock.Time, to ib.GID, done func(now clock.Time, rec *mad.PathRecord, err error)) {
	p, key := a.ib, pathKey{to: to}
	e := p.paths[key]
	if e != nil && e.known && now < e.until {
		done(now, &e.rec, nil)
		return
	}
	if e != nil && !e.known {
		e.wait = append(e.wait, done)
		return
	}
	if len(p.paths) >= maxPaths {
		clear(p.paths)
	}
	e = &ibPath{wait: []func(clock.Time, *mad.PathRecord, error){done}}
	p.paths[key] = e
	a.ask(now, sa.Path(p.gid(), to, key.key), func(now clock.Time, answer *sa.Answer) {
		rec, err := mad.PathRecord{}, answer.Err
		if err == nil {
			rec, err = mad.ParsePathRecord(answer.Data[:])
		}
		if err == nil && (rec.DLID == 0 || rec.DLID > ib.LIDMaxUnicast || !rec.MTU.Valid()) {
			err = &sa.StatusError{Status: mad.SAInvalidGID}
		}
		wait := e.wait
		e.rec, e.known, e.wait, e.until = rec, err == nil, nil, now.Add(pathLife)
		if err != nil && p.paths[key] == e {
			delete(p.paths, key)
		}
		for _, done := range wait {
			done(now, &rec, err)
		}
	})
}

// reach asks which port has an address and for the path to it.
func (a *adapter) reach(now clock.Time, ip netip.Addr, done func(now clock.Time, rec *mad.PathRecord, err error)) {
	a.find(now, ip, func(now clock.Time, gid ib.GID, err error) {
		if err != nil {
			done(now, nil, err)
			return
		}
		a.pathTo(now, gid, done)
	})
}

// pathError is the command's error for what the subnet administration did not tell.
func pathError(ip netip.Addr, err error) *command.Error {
	code := command.HostUnreachable
	switch {
	case errors.Is(err, sa.ErrTimeout):
		code = command.TimedOut
	case errors.Is(err, sa.ErrNoManager):
		code = command.NetworkUnreachable
	case errors.Is(err, sa.ErrFull):
		code = command.Exhausted
	}
	return command.Errorf(code, "%v: %v", ip, err)
}
