package routing

import (
	"errors"
	"fmt"
	"slices"

	"github.com/softvpi/softvpi/wire/ib"
)

// BlockLen is the number of LIDs in a block of a linear forwarding table (IBA 14.2.5.10).
const BlockLen = 64

// Routes is the result of an engine: a linear forwarding table for every switch, and the service levels
// that keep the paths free of credit loops.
type Routes struct {
	Engine string // the engine's name
	Top    int    // the highest LID in the tables
	Lanes  int    // virtual lanes that the paths use: service level n travels on lane n

	stride int
	lft    []byte
	sl     []uint8 // by source switch and LID, as lft; nil: 0 everywhere
}

func newRoutes(g *Graph, engine string) *Routes {
	top := g.topLID()
	r := &Routes{Engine: engine, Top: top, Lanes: 1, stride: (top/BlockLen + 1) * BlockLen}
	r.lft = make([]byte, r.stride*g.Switches())
	for i := range r.lft {
		r.lft[i] = NoPort
	}
	for i := range g.Targets {
		t := &g.Targets[i]
		for l := range t.Count {
			r.lft[int(t.Switch)*r.stride+int(t.LID)+l] = t.Port
		}
	}
	return r
}

// Table returns the forwarding table of a switch, in whole blocks, indexed by LID. The caller must not
// modify it.
func (r *Routes) Table(s int32) []byte { return r.lft[int(s)*r.stride : (int(s)+1)*r.stride] }

// SL returns the service level of the path from the end ports of a switch to a LID.
func (r *Routes) SL(from int32, to ib.LID) uint8 {
	if r.sl == nil || int(to) >= r.stride {
		return 0
	}
	return r.sl[int(from)*r.stride+int(to)]
}

// Options configure the engines.
type Options struct {
	Roots        []int32 // switches at the top, for up/down and fat tree; empty: chosen automatically
	ConnectRoots bool    // up/down and fat tree: also connect switches that have no legal path
	MaxLanes     int     // DFSSSP: maximum of data lanes, 1 to 15; 0 means 8
}

// Equal reports whether the options are the same.
func (o *Options) Equal(p *Options) bool {
	return slices.Equal(o.Roots, p.Roots) && o.ConnectRoots == p.ConnectRoots && o.MaxLanes == p.MaxLanes
}

// An engine routes a graph. It is a pure function: the same graph gives the same routes.
type engine func(*Graph, Options) (*Routes, error)

// engines lists the routing engines by OpenSM's names.
var engines = []struct {
	name string
	run  engine
}{
	{"minhop", routeMinHop},
	{"updn", routeUpDown},
	{"ftree", routeFatTree},
	{"dfsssp", routeDFSSSP},
	{"sssp", routeSSSP},
}

// EngineNames returns the names of the engines.
func EngineNames() []string {
	var names []string
	for _, e := range engines {
		names = append(names, e.name)
	}
	return names
}

// engineNamed returns the engine of that name, or nil.
func engineNamed(name string) engine {
	for _, e := range engines {
		if e.name == name {
			return e.run
		}
	}
	return nil
}

// errUnroutable is wrapped by the errors of engines that cannot route a graph; another engine may be able
// to.
var errUnroutable = errors.New("the engine cannot route this subnet")

func unroutable(engine, format string, args ...any) error {
	return fmt.Errorf("subnet: %s: %s: %w", engine, fmt.Sprintf(format, args...), errUnroutable)
}

// Route tries the named engines in order, and then min-hop unless the last name is "no_fallback". The
// errors of the engines that failed are returned with the routes.
func Route(g *Graph, names []string, o Options) (r *Routes, failed []error, err error) {
	fallback := true
	if n := len(names); n > 0 && names[n-1] == "no_fallback" {
		names, fallback = names[:n-1], false
	}
	for _, n := range names {
		e := engineNamed(n)
		if e == nil {
			return nil, failed, fmt.Errorf("subnet: routing engine %q: want one of %v", n, EngineNames())
		}
		r, err := e(g, o)
		if err == nil {
			return r, failed, nil
		}
		failed = append(failed, err)
	}
	if !fallback {
		return nil, failed, fmt.Errorf("subnet: %w", errors.Join(failed...))
	}
	if slices.Contains(names, "minhop") {
		return nil, failed, errors.Join(failed...)
	}
	r, err = routeMinHop(g, o)
	return r, failed, err
}
