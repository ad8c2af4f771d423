package ibport

import (
	"errors"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
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

// Name is the request for the port that has an address, and its answer.
type Name struct {
	ip    netip.Addr
	gid   ib.GID
	known bool
	until clock.Time
	wait  []func(now clock.Time, gid ib.GID, err error)
}

// Find asks which port has an address, and calls done with the answer, at once if it is known. If nobody
// is asking yet it returns a new request, which the caller must pass to AskName or answer with Found.
func (p *Port) Find(now clock.Time, ip netip.Addr, done func(now clock.Time, gid ib.GID, err error)) *Name {
	n := p.names[ip]
	if n != nil && n.known && now < n.until {
		done(now, n.gid, nil)
		return nil
	}
	if n != nil && !n.known {
		n.wait = append(n.wait, done)
		return nil
	}
	if len(p.names) >= maxPaths {
		done(now, ib.GID{}, sa.ErrFull)
		return nil
	}
	n = &Name{ip: ip, wait: []func(clock.Time, ib.GID, error){done}}
	p.names[ip] = n
	return n
}

// ForgetNames forgets which ports have addresses; requests in progress will still be answered.
func (p *Port) ForgetNames() { clear(p.names) }

// Named reports whether the port of an address has ever been known.
func (p *Port) Named(ip netip.Addr) bool {
	n := p.names[ip]
	return n != nil && n.known
}

// Known returns the path to the port that has an address if both are known.
func (p *Port) Known(now clock.Time, ip netip.Addr) (mad.PathRecord, bool) {
	if n := p.names[ip]; n != nil && n.known && now < n.until {
		return p.KnownTo(now, n.gid)
	}
	return mad.PathRecord{}, false
}

// KnownTo returns the path to a port if it is known.
func (p *Port) KnownTo(now clock.Time, to ib.GID) (mad.PathRecord, bool) {
	e := p.paths[to]
	if e == nil || !e.known || now >= e.until {
		return mad.PathRecord{}, false
	}
	return e.rec, true
}

// AskName asks the subnet administration which port has registered the address. An unknown address may be
// a GID of another subnet.
func (p *Port) AskName(now clock.Time, n *Name) {
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
		p.Found(now, n, gid, err)
	})
}

// Found answers a request, for all who wait.
func (p *Port) Found(now clock.Time, n *Name, gid ib.GID, err error) {
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

// PathTo asks for the path to a port, and calls done with the answer, at once if it is known.
func (p *Port) PathTo(now clock.Time, to ib.GID, done func(now clock.Time, rec *mad.PathRecord, err error)) {
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
	p.Ask(now, sa.Path(p.GID(), to, 0), func(now clock.Time, answer *sa.Answer) {
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
