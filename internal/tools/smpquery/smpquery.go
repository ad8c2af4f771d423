// Package smpquery holds the tools that show attributes of subnet management: smpquery in words and
// smpdump in hexadecimal.
package smpquery

import (
	"context"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/mad"
)

// query is something that smpquery can request.
type query struct {
	name, alias string
	port        bool // takes a port number
	run         func(*run) error
}

var queries = []query{
	{"NodeInfo", "NI", false, (*run).nodeInfo},
	{"NodeDesc", "ND", false, (*run).nodeDesc},
	{"PortInfo", "PI", true, (*run).portInfo},
	{"PortInfoExtended", "PIE", true, (*run).portInfoExtended},
	{"SwitchInfo", "SI", false, (*run).switchInfo},
	{"PKeyTable", "PKeys", true, (*run).pkeys},
	{"SL2VLTable", "SL2VL", true, (*run).sl2vl},
	{"VLArbitration", "VLArb", true, (*run).vlarb},
	{"GUIDInfo", "GI", false, (*run).guids},
	{"MlnxExtPortInfo", "MEPI", true, (*run).mellanox},
}

// run is one query of one port.
type run struct {
	*ibdiag.Session
	to       ibdiag.Route
	port     uint8
	extended bool   // PortInfo with the fields of extended speeds
	name     string // of the query, as the user wrote it
}

// Main runs smpquery.
func Main(ctx context.Context, env tool.Env) int {
	var combined, extended bool
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "<op> <dest dr_path|lid|guid> [op params]\n\n" + operations(),
		About:     "Asks a port for an attribute of subnet management.",
		Examples: []string{
			"portinfo 3 1         # PortInfo of LID 3, port 1", "-G switchinfo 0x2C9000100D051",
			"-D nodeinfo 0,1      # by a directed route", "-c nodeinfo 6 0,12    # by a LID, and a directed route from there",
		},
		Options: []ibdiag.Option{
			ibdiag.Flag(&combined, "combined", 'c', "the address is a LID and a directed route from there"), ibdiag.WithNames,
			ibdiag.Flag(&extended, "extended", 'x', "also ask for extended speeds"),
		},
		Least: 2, Most: 4,
		Work: func(s *ibdiag.Session, args []string) error {
			q, err := find(args[0])
			if err != nil {
				return err
			}
			address, rest := args[1], args[2:]
			if combined {
				if len(rest) == 0 {
					return tool.Usagef("the directed route after the LID is missing; allowed: such as 0,12")
				}
				s.Kind, address, rest = ibdiag.ByLIDRoute, address+" "+rest[0], rest[1:]
			}
			r := &run{Session: s, extended: extended, name: args[0]}
			if err := r.takePort(q, rest); err != nil {
				return err
			}
			if r.to, err = s.Resolve(address); err != nil {
				return err
			}
			return q.run(r)
		},
	})
}

// takePort parses the port number, if any.
func (r *run) takePort(q query, rest []string) error {
	if len(rest) == 0 {
		return nil
	}
	if !q.port || len(rest) > 1 {
		return tool.Usagef("unexpected argument %q; allowed: %s", rest[len(rest)-1], q.form())
	}
	n, err := ibdiag.ParseNumber("the port", rest[0], 0, 255)
	r.port = uint8(n)
	return err
}

func (q query) form() string {
	if q.port {
		return q.name + " <addr> [<portnum>]"
	}
	return q.name + " <addr>"
}

func operations() string {
	b := "Operations, in any letter case:\n"
	for _, q := range queries {
		b += "  " + q.form() + ", short " + q.alias + "\n"
	}
	return b
}

func find(name string) (query, error) {
	var known []string
	for _, q := range queries {
		if strings.EqualFold(q.name, name) || strings.EqualFold(q.alias, name) {
			return q, nil
		}
		known = append(known, q.name)
	}
	return query{}, tool.Usagef("operation '%s' not supported; allowed: %s", name, strings.Join(known, ", "))
}

func (r *run) nodeInfo() error {
	n, err := r.NodeInfo(r.to)
	if err != nil {
		return r.lost(err, "node info query failed")
	}
	r.Printf("# Node info: %s\n%s", r.to, ibdiag.Lines("", &n, ibdiag.NodeInfoFields))
	return nil
}

func (r *run) nodeDesc() error {
	n, err := r.NodeInfo(r.to)
	if err != nil {
		return r.lost(err, "node info query failed")
	}
	d, err := r.NodeDescription(r.to)
	if err != nil {
		return r.lost(err, "node desc query failed")
	}
	name := r.Node.Of(n.NodeGUID, d.String())
	r.Printf("Node Description:%s%s\n", strings.Repeat(".", max(32-len(name), 1)), name)
	return nil
}

func (r *run) portInfo() error {
	modifier := uint32(r.port)
	if r.extended {
		modifier |= 1 << 31
	}
	p, err := r.PortInfo(r.to, modifier)
	if err != nil {
		return r.lost(err, "port info query failed")
	}
	r.Printf("# Port info: %s port %d\n%s", r.to, r.port, ibdiag.PortInfoLines("", &p, r.ShowKeys))
	return nil
}

func (r *run) switchInfo() error {
	sw, err := r.SwitchInfo(r.to)
	if err != nil {
		return r.lost(err, "switch info query failed")
	}
	r.Printf("# Switch info: %s\n%s", r.to, ibdiag.Lines("", &sw, ibdiag.SwitchInfoFields))
	return nil
}

func (r *run) mellanox() error {
	a, err := r.Get(r.to, mad.AttrMellanoxExtendedPortInfo, uint32(r.port))
	if err != nil {
		return r.lost(err, "Mellanox ext port info query failed")
	}
	e, err := mad.ParseExtendedPortInfo(a.Data[:])
	if err != nil {
		return err
	}
	r.Printf("# MLNX ext Port info: %s port %d\n%s", r.to, r.port, ibdiag.Lines("", &e, ibdiag.MellanoxExtendedFields))
	return nil
}

// lost returns the error of a query one of whose steps had no answer, or a bad one.
func (r *run) lost(err error, step string) error {
	if r.Context.Err() != nil {
		return err
	}
	return ibdiag.Failf("operation %s: %s", r.name, step)
}
