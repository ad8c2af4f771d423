package ibdiag

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// PortGID is the GID of a port.
func PortGID(prefix, guid uint64) (g ib.GID) {
	binary.BigEndian.PutUint64(g[:], prefix)
	binary.BigEndian.PutUint64(g[8:], guid)
	return g
}

// GIDString is a GID in the short form of IPv6 addresses.
func GIDString(g ib.GID) string { return netip.AddrFrom16(g).String() }

func parseGID(text string) (ib.GID, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is6() {
		return ib.GID{}, tool.Usagef("the GID is %q; allowed: a GID in the form of an IPv6 address", text)
	}
	return ib.GID(a.As16()), nil
}

// The parts of a PathRecord and of the request for it that find a LID (IBA 15.2.5.16).
const (
	attrPathRecord  = 0x0035
	classVersionSA  = 2
	saComponentMask = 48
	saData          = 56
	pathDGID        = saData + 8
	pathSGID        = saData + 24
	pathDLID        = saData + 40
	componentDGID   = 1 << 2
	componentSGID   = 1 << 3
)

// resolveGID asks subnet administration for the path to a GID, which has the LID.
func (s *Session) resolveGID(g ib.GID, text string) (Route, error) {
	sm, err := s.SM()
	if err != nil {
		return Route{}, err
	}
	var request [mad.Len]byte
	h := mad.Header{BaseVersion: mad.BaseVersion, Class: mad.ClassSubnetAdm, ClassVersion: classVersionSA, Method: mad.MethodGet, AttributeID: attrPathRecord}
	h.Append(request[:0])
	own := PortGID(s.Prefix(), s.Port.Device().Node.PortGUID)
	binary.BigEndian.PutUint64(request[saComponentMask:], componentDGID|componentSGID)
	copy(request[pathDGID:], g[:])
	copy(request[pathSGID:], own[:])
	d, err := s.call(sm, umad.Address{LID: sm.LID, QP: umad.GSIQP}, &request)
	if err == nil {
		if status := binary.BigEndian.Uint16(d.MAD[4:]); status != mad.StatusOK {
			err = s.status(status, sm)
		}
	}
	if err != nil {
		if s.Context.Err() != nil {
			return Route{}, err
		}
		s.Warnf("ib_path_query_via", "sa call path_query failed")
		return Route{}, Failf("can't resolve destination port %s", text)
	}
	return Route{LID: ib.LID(binary.BigEndian.Uint16(d.MAD[pathDLID:])), GID: &g}, nil
}
