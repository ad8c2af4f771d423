package ibport

import (
	"errors"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	// pathLife and nameLife are how long an answer is valid unless the subnet manager invalidates it
	// earlier.
	pathLife = 5 * time.Minute
	nameLife = 30 * time.Second
	// maxPaths limits the cached answers of each kind.
	maxPaths = 1 << 16
)

// path is the request for a path, and its answer.
type path struct {
	rec   mad.PathRecord
	known bool
	until clock.Time
	wait  []func(now clock.Time, rec *mad.PathRecord, err error)
}

// name is the request for the port that has an address, and its answer.
type name struct {
	ip    netip.Addr
	gid   ib.GID
	known bool
	until clock.Time
	wait  []func(now clock.Time, gid ib.GID, err error)
}

// Resolve asks outside of the subnet administration which port has an IP address, as IPoIB does by ARP. It
// returns at once, and calls done later, under the loop lock.
type Resolve func(ip netip.Addr, done func(now clock.Time, gid ib.GID, err error))

// SetResolver makes the port ask ask first for the ports of IP addresses; nil: nobody.
func (p *Port) SetResolver(ask Resolve) {
	p.resolve = ask
	clear(p.names) // requests in progress will still be answered
}

// where returns the GID of an address that is a GID itself, or that belongs to a port of this process.
func (p *Port) where(ip netip.Addr) (ib.GID, bool) {
	if p.IsGID(ip) {
		return ib.GID(ip.As16()), true
	}
	if p.near == nil {
		return ib.GID{}, false
	}
	return p.near(ip)
}

// Knows reports whether an address is known, without asking, to be in the port's fabric. One that may be a
// GID of another subnet, because nobody has registered it, is not.
func (p *Port) Knows(ip netip.Addr) bool {
	if _, ok := p.where(ip); ok {
		return true
	}
	n := p.names[ip]
	return n != nil && n.known && n.gid != ib.GID(ip.As16())
}

// Find asks which port has an address, and calls done with the answer, at once if it is known. The answer
// is the address itself if it is a GID, or comes from a port of this process, the resolver, or the subnet
// administration's service records. An unknown address may be a GID of another subnet.
func (p *Port) Find(now clock.Time, ip netip.Addr, done func(now clock.Time, gid ib.GID, err error)) {
	if gid, ok := p.where(ip); ok {
		done(now, gid, nil)
		return
	}
	n := p.names[ip]
	switch {
	case n != nil && n.known && now < n.until:
		done(now, n.gid, nil)
		return
	case n != nil && !n.known:
		n.wait = append(n.wait, done)
		return
	case len(p.names) >= maxPaths:
		done(now, ib.GID{}, sa.ErrFull)
		return
	}
	n = &name{ip: ip, wait: []func(clock.Time, ib.GID, error){done}}
	p.names[ip] = n
	if p.resolve == nil {
		p.askName(now, n)
		return
	}
	p.resolve(ip, func(now clock.Time, gid ib.GID, err error) {
		if err != nil {
			p.askName(now, n)
			return
		}
		p.found(now, n, gid, nil)
	})
}

// Reach asks which port has an address and for the path to it.
func (p *Port) Reach(now clock.Time, ip netip.Addr, done func(now clock.Time, rec *mad.PathRecord, err error)) {
	p.Find(now, ip, func(now clock.Time, gid ib.GID, err error) {
		if err != nil {
			done(now, nil, err)
			return
		}
		p.pathTo(now, gid, done)
	})
}

// Known returns the path to an address that was looked up before, or that is this port's own.
func (p *Port) Known(now clock.Time, ip netip.Addr) (mad.PathRecord, bool) {
	if gid, ok := p.where(ip); ok {
		return p.knownTo(now, gid)
	}
	if n := p.names[ip]; n != nil && n.known && now < n.until {
		return p.knownTo(now, n.gid)
	}
	return mad.PathRecord{}, false
}

// knownTo returns the path to a port if it is known.
func (p *Port) knownTo(now clock.Time, to ib.GID) (mad.PathRecord, bool) {
	e := p.paths[to]
	if e == nil || !e.known || now >= e.until {
		return mad.PathRecord{}, false
	}
	return e.rec, true
}

// askName asks the subnet administration which port has registered the address. An unknown address may be
// a GID of another subnet.
func (p *Port) askName(now clock.Time, n *name) {
	ip := n.ip
	p.Ask(now, sa.Find(ip), func(now clock.Time, answer *sa.Answer) {
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
		p.found(now, n, gid, err)
	})
}

// found answers a request, for all who wait.
func (p *Port) found(now clock.Time, n *name, gid ib.GID, err error) {
	wait := n.wait
	n.gid, n.known, n.wait, n.until = gid, err == nil, nil, now.Add(nameLife)
	if err != nil && p.names[n.ip] == n {
		delete(p.names, n.ip)
	}
	for _, done := range wait {
		done(now, gid, err)
	}
}

func refused(err error, status uint16) bool {
	var s *sa.StatusError
	return errors.As(err, &s) && s.Status == status
}

// pathTo asks for the path to a port, and calls done with the answer, at once if it is known.
func (p *Port) pathTo(now clock.Time, to ib.GID, done func(now clock.Time, rec *mad.PathRecord, err error)) {
	e := p.paths[to]
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
	e = &path{wait: []func(clock.Time, *mad.PathRecord, error){done}}
	p.paths[to] = e
	p.Ask(now, sa.Path(p.GID(), to, p.wanted()), func(now clock.Time, answer *sa.Answer) {
		rec, err := mad.PathRecord{}, answer.Err
		if err == nil {
			rec, err = mad.ParsePathRecord(answer.Data[:])
		}
		if err == nil && (rec.DLID == 0 || rec.DLID > ib.LIDMaxUnicast || !rec.MTU.Valid()) {
			err = &sa.StatusError{Status: mad.SAInvalidGID}
		}
		wait := e.wait
		e.rec, e.known, e.wait, e.until = rec, err == nil, nil, now.Add(pathLife)
		if err != nil && p.paths[to] == e {
			delete(p.paths, to)
		}
		for _, done := range wait {
			done(now, &rec, err)
		}
	})
}

// Error converts a failed look-up of an address to a command's error.
func Error(ip netip.Addr, err error) *command.Error {
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
