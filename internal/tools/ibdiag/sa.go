package ibdiag

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// PortGID returns the GID of a port.
func PortGID(prefix, guid uint64) (g ib.GID) {
	binary.BigEndian.PutUint64(g[:], prefix)
	binary.BigEndian.PutUint64(g[8:], guid)
	return g
}

// GIDString returns a GID in the short form of IPv6 addresses.
func GIDString(g ib.GID) string { return netip.AddrFrom16(g).String() }

// ParseGID parses a GID in the form of an IPv6 address. The error is a *tool.UsageError.
func ParseGID(text string) (ib.GID, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is6() {
		return ib.GID{}, tool.Usagef("the GID is %q; allowed: a GID in the form of an IPv6 address", text)
	}
	return ib.GID(a.As16()), nil
}

// resolveGID asks subnet administration for the path to a GID, which contains the LID.
func (s *Session) resolveGID(g ib.GID, text string) (Route, error) {
	sm, err := s.SM()
	if err != nil {
		return Route{}, err
	}
	path := mad.PathRecord{DGID: g, SGID: PortGID(s.prefix(), s.Port.Device().Node.PortGUID)}
	m := mad.NewSA(mad.MethodGet, mad.AttrPathRecord, 0, 0)
	m.ComponentMask = mad.PathDGID | mad.PathSGID
	copy(m.Data[:], path.Append(nil))
	d, err := s.call(sm, sm.Services(), (*[mad.Len]byte)(m.Append(nil)))
	if err == nil {
		if m, err = mad.ParseSA(d.MAD[:]); err == nil && m.Status != mad.StatusOK {
			err = s.status(m.Status, sm)
		}
	}
	if err == nil {
		path, err = mad.ParsePathRecord(m.Data[:])
	}
	if err != nil {
		if s.Context.Err() != nil {
			return Route{}, err
		}
		s.Warnf("ib_path_query_via", "sa call path_query failed")
		return Route{}, Failf("can't resolve destination port %s", text)
	}
	return Route{LID: path.DLID, SL: path.SL}, nil
}
