package ibdiag

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Kind is how ports in a tool's arguments are addressed.
type Kind int

// The kinds of addresses.
const (
	ByLID      Kind = iota
	ByRoute         // the ports by which to leave each node, after a 0: 0,1,7
	ByGUID          // of the port; the subnet manager knows its LID
	ByLIDRoute      // a LID, and a route from there
)

// Route is the route to a port: a LID, a directed route, or a LID followed by a directed route.
type Route struct {
	LID  ib.LID  // 0: the whole route is directed
	Path []uint8 // ports of the directed part; the first element stands for the start and is no port
	SLID ib.LID  // of the directed part: where it starts, 0xffff for the sender
	DLID ib.LID  // of the directed part: where routing by LID continues, 0xffff for the end
	SL   uint8   // for general services
}

// Services returns the address of the general services.
func (r Route) Services() umad.Address { return umad.Address{LID: r.LID, QP: umad.GSIQP, SL: r.SL} }

// LIDRoute returns the route to a LID.
func LIDRoute(lid ib.LID) Route { return Route{LID: lid} }

// DirectRoute returns the route along ports, from the sender on.
func DirectRoute(ports ...uint8) Route {
	return Route{Path: append([]uint8{0}, ports...), SLID: ib.LIDPermissive, DLID: ib.LIDPermissive}
}

// Extend returns the route one port further. own is the LID of the sender, needed when a directed part is
// added to a LID. The error is a *failure.
func (r Route) Extend(port uint8, own ib.LID) (Route, error) {
	if len(r.Path) > mad.MaxHops {
		return Route{}, Failf("Too many hops")
	}
	if len(r.Path) == 0 {
		r.Path = []uint8{0}
		if r.LID != 0 {
			r.SLID, r.DLID = own, ib.LIDPermissive
		} else {
			r.SLID, r.DLID = ib.LIDPermissive, ib.LIDPermissive
		}
	}
	r.Path = append(append([]uint8{}, r.Path...), port)
	return r, nil
}

// directed reports whether a part of the route is directed.
func (r Route) directed() bool { return r.LID == 0 || len(r.Path) > 0 }

// String returns the route in the format of infiniband-diags.
func (r Route) String() string {
	var b strings.Builder
	if r.LID != 0 {
		fmt.Fprintf(&b, "Lid %d", r.LID)
		if len(r.Path) <= 1 {
			return b.String()
		}
		b.WriteByte(' ')
	}
	fmt.Fprintf(&b, "DR path slid %d; dlid %d; %s", r.SLID, r.DLID, PathString(r.Path))
	return b.String()
}

// PathString returns a directed route with commas.
func PathString(path []uint8) string {
	if len(path) == 0 {
		return "0"
	}
	words := make([]string, len(path))
	for i, p := range path {
		words[i] = strconv.Itoa(int(p))
	}
	return strings.Join(words, ",")
}

// ParsePath parses a directed route such as 0,1,7. The error is a *tool.UsageError.
func ParsePath(text string) ([]uint8, error) {
	const allowed = "allowed: 0, then at most 63 ports from 0 to 254, with commas, such as 0,1,7"
	words := strings.Split(text, ",")
	if len(words) > mad.MaxHops+1 || words[0] != "0" {
		return nil, tool.Usagef("the directed route is %q; %s", text, allowed)
	}
	var path []uint8
	for _, w := range words {
		n, err := strconv.ParseUint(strings.TrimSpace(w), 0, 8)
		if err != nil || n > 254 {
			return nil, tool.Usagef("the directed route is %q; %s", text, allowed)
		}
		path = append(path, uint8(n))
	}
	return path, nil
}

// ParseLID parses a unicast LID. The error is a *tool.UsageError.
func ParseLID(text string) (ib.LID, error) {
	n, err := ParseNumber("the LID", text, 1, 0xbfff)
	return ib.LID(n), err
}

// Resolve finds the port for an argument, in the form of address chosen by the options.
func (s *Session) Resolve(text string) (Route, error) { return s.resolveAs(s.Kind, text) }

// resolveAs is Resolve for a particular form.
func (s *Session) resolveAs(kind Kind, text string) (Route, error) {
	switch kind {
	case ByRoute:
		path, err := ParsePath(text)
		return Route{Path: path, SLID: ib.LIDPermissive, DLID: ib.LIDPermissive}, err
	case ByGUID:
		guid, err := ParseNumber("the GUID", text, 1, 1<<64-1)
		if err != nil {
			return Route{}, err
		}
		return s.resolveGID(PortGID(s.prefix(), guid), text)
	case ByLIDRoute:
		lidText, pathText, _ := strings.Cut(strings.TrimSpace(text), " ")
		lid, err := ParseLID(lidText)
		if err != nil {
			return Route{}, err
		}
		path, err := ParsePath(strings.TrimSpace(pathText))
		return Route{LID: lid, Path: path, SLID: s.Port.Device().Port.LID, DLID: ib.LIDPermissive}, err
	}
	lid, err := ParseLID(text)
	return LIDRoute(lid), err
}

// Self returns the route to the open port: by its LID or, if it has none, directed without hops.
func (s *Session) Self() Route {
	if lid := s.Port.Device().Port.LID; lid != 0 {
		return LIDRoute(lid)
	}
	return DirectRoute()
}

// SM returns the route to the subnet manager. The error is a *failure.
func (s *Session) SM() (Route, error) {
	lid := s.SMLID
	if lid == 0 {
		lid = s.Port.Device().Port.MasterSMLID
	}
	if lid == 0 || lid >= 0xc000 {
		return Route{}, Failf("No SM/SA found on port %s:%d", s.Port.Device().Name, s.Port.Device().PortNum)
	}
	return Route{LID: lid, SL: s.Port.Device().Port.MasterSMSL}, nil
}

// prefix returns the subnet's GID prefix.
func (s *Session) prefix() uint64 {
	const linkLocal = 0xfe80000000000000
	if p := s.Port.Device().Port.GIDPrefix; p != 0 {
		return p
	}
	return linkLocal
}
