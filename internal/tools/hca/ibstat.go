package hca

import (
	"context"
	"fmt"
	"io"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

const ibstatSynopsis = `usage: ibstat [options] [ADAPTER [PORT]]
Shows the adapters and their ports in the form of infiniband-diags.`

// Ibstat runs ibstat.
func Ibstat(ctx context.Context, env tool.Env) int {
	f, socket, asJSON := started(env, ibstatSynopsis)
	var list, short, guids bool
	for _, n := range []string{"l", "list_of_cas"} {
		f.BoolVar(&list, n, false, "print the names only")
	}
	for _, n := range []string{"s", "short"} {
		f.BoolVar(&short, n, false, "leave the ports out")
	}
	for _, n := range []string{"p", "port_list"} {
		f.BoolVar(&guids, n, false, "print the GUIDs of the ports only")
	}
	if status, done := f.Parse(); done {
		return status
	}
	if f.NArg() > 2 {
		return f.Refuse(tool.Usagef("unexpected argument %q; allowed: an adapter and a port", f.Arg(2)))
	}
	if f.NArg() == 2 && f.Arg(1) != "1" { // no adapter here has more
		return f.Refuse(tool.Usagef("port is %q; allowed: 1, the port of an adapter", f.Arg(1)))
	}
	all, err := devices(ctx, *socket)
	if err == nil {
		all, err = pick(all, f.Arg(0))
	}
	if err != nil {
		return env.End(ctx, err)
	}
	switch {
	case *asJSON:
		err = writeJSON(env.Stdout, all)
	case list:
		for _, d := range all {
			fmt.Fprintln(env.Stdout, d.Name)
		}
	case guids:
		for _, d := range all {
			for _, p := range d.Ports {
				fmt.Fprintf(env.Stdout, "0x%016x\n", p.GUID)
			}
		}
	default:
		for _, d := range all {
			ibstat(env.Stdout, d, short, f.NArg() == 2)
		}
	}
	if err != nil {
		return env.Fail(err)
	}
	return tool.Success
}

func ibstat(w io.Writer, d device, short, portOnly bool) {
	if portOnly {
		for _, p := range d.Ports {
			fmt.Fprintf(w, "CA: '%s'\n", d.Name)
			ibstatPort(w, p, "", "")
		}
		return
	}
	board := d.Board
	if board == "" {
		board = fmt.Sprintf("MT%d", d.PartID)
	}
	fmt.Fprintf(w, "CA '%s'\n", d.Name)
	fmt.Fprintf(w, "\tCA type: %s\n", board)
	fmt.Fprintf(w, "\tNumber of ports: %d\n", len(d.Ports))
	fmt.Fprintf(w, "\tFirmware version: %s\n", d.Firmware)
	fmt.Fprintf(w, "\tHardware version: %s\n", d.Hardware)
	fmt.Fprintf(w, "\tNode GUID: 0x%016x\n", d.NodeGUID)
	fmt.Fprintf(w, "\tSystem image GUID: 0x%016x\n", d.ImageGUID)
	if short {
		return
	}
	for _, p := range d.Ports {
		ibstatPort(w, p, "\t", "\t\t")
	}
}

func ibstatPort(w io.Writer, p port, head, indent string) {
	fmt.Fprintf(w, "%sPort %d:\n", head, p.Number)
	for _, f := range []struct {
		name  string
		value any
	}{
		{"State", p.State},
		{"Physical state", p.Physical},
		{"Rate", gbps(p.Rate)},
		{"Base lid", p.LID},
		{"LMC", p.LMC},
		{"SM lid", p.SMLID},
		{"Capability mask", fmt.Sprintf("0x%08x", p.Caps)},
		{"Port GUID", fmt.Sprintf("0x%016x", p.GUID)},
		{"Link layer", p.Layer},
	} {
		fmt.Fprintf(w, "%s%s: %v\n", indent, f.name, f.value)
	}
}
