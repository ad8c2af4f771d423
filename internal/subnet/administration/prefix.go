package administration

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// PrefixRoute says which router leads to another subnet (opensm(8), "PREFIX ROUTES").
type PrefixRoute struct {
	Prefix    uint64 // of the other subnet
	Router    uint64 // GUID of a router's port
	AnyPrefix bool   // instead of Prefix
	AnyRouter bool   // instead of Router
}

// routeError says which line of the prefix routes is wrong.
type routeError struct {
	Line      int
	Got, Want string
}

func (e *routeError) Error() string {
	return fmt.Sprintf("prefix routes line %d: %q, want %s", e.Line, e.Got, e.Want)
}

// ParsePrefixRoutes reads OpenSM's file of prefix routes: per line a prefix and the GUID of a router's
// port, in hexadecimal, or an asterisk for any. The error is a *routeError.
func ParsePrefixRoutes(text string) (routes []PrefixRoute, err error) {
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 {
			return nil, &routeError{i + 1, strings.TrimSpace(line), "a prefix and a GUID"}
		}
		var r PrefixRoute
		for j, to := range []struct {
			any   *bool
			value *uint64
		}{{&r.AnyPrefix, &r.Prefix}, {&r.AnyRouter, &r.Router}} {
			if *to.any = f[j] == "*"; *to.any {
				continue
			}
			if *to.value, err = strconv.ParseUint(strings.TrimPrefix(f[j], "0x"), 16, 64); err != nil {
				return nil, &routeError{i + 1, f[j], "64 bits in hexadecimal, or *"}
			}
		}
		routes = append(routes, r)
	}
	return routes, nil
}

// routerTo returns the port of the router towards a subnet: the first one present among the routes that
// match its prefix, or None.
func (a *SA) routerTo(prefix uint64) int32 {
	n := a.live
	for _, r := range a.cfg.PrefixRoutes {
		if !r.AnyPrefix && r.Prefix != prefix {
			continue
		}
		if !r.AnyRouter {
			if p := n.EndPortOfGUID(r.Router); p != topology.None && n.Nodes[n.Ports[p].Node].Info.NodeType == mad.NodeRouter {
				return p
			}
			continue
		}
		for i := range n.Ports {
			if p := int32(i); n.Nodes[n.Ports[p].Node].Info.NodeType == mad.NodeRouter && n.Ports[p].Reach && n.Ports[p].Info.LID != 0 {
				return p
			}
		}
	}
	return topology.None
}
