package ibstat

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
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
	var told, more bool
	for _, n := range []string{"V", "version"} {
		f.BoolVar(&told, n, false, "print the version")
	}
	for _, n := range []string{"v", "verbose", "d", "debug"} {
		f.BoolVar(&more, n, false, "as in infiniband-diags; there is nothing more to report")
	}
	var config string
	for _, n := range []string{"z", "config"} {
		f.StringVar(&config, n, "", "`file` of options, none of which concerns this tool")
	}
	if status, done := f.Parse(); done {
		return status
	}
	if told {
		fmt.Fprintf(env.Stdout, "ibstat BUILD VERSION: %s\n", ibdiag.Version())
		return tool.Success
	}
	if f.NArg() > 2 {
		return f.Refuse(tool.Usagef("unexpected argument %q; allowed: an adapter and a port", f.Arg(2)))
	}
	if _, err := os.Stat(config); config != "" && err != nil {
		return f.Refuse(tool.Usagef("file of options (-z): %v", err))
	}
	number := 0
	if f.NArg() == 2 {
		var err error
		if number, err = strconv.Atoi(f.Arg(1)); err != nil || number < 0 {
			return f.Refuse(tool.Usagef("port is %q; allowed: the number of one of the adapter's ports", f.Arg(1)))
		}
	}
	all, err := devices(ctx, *socket)
	if err == nil {
		all, err = pick(all, f.Arg(0))
	}
	if err == nil && f.NArg() == 2 {
		err = onlyPort(&all[0], number)
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

// kind returns infiniband-diags' name for the kind of node.
func (d *device) kind() string {
	if d.Kind == "" {
		return "CA"
	}
	return d.Kind
}

// onlyPort keeps only one port. The error is a *tool.UsageError.
func onlyPort(d *device, number int) error {
	var allowed []string
	for _, p := range d.Ports {
		if p.Number == number {
			d.Ports = []port{p}
			return nil
		}
		allowed = append(allowed, strconv.Itoa(p.Number))
	}
	return tool.Usagef("port is %d; allowed: %s, of adapter %s", number, strings.Join(allowed, ", "), d.Name)
}

func ibstat(w io.Writer, d device, short, portOnly bool) {
	if portOnly {
		for _, p := range d.Ports {
			fmt.Fprintf(w, "%s: '%s'\n", d.kind(), d.Name)
			ibstatPort(w, p, "", "")
		}
		return
	}
	board := d.Board
	if board == "" {
		board = fmt.Sprintf("MT%d", d.PartID)
	}
	ports := len(d.Ports)
	if d.Kind == "Switch" {
		ports = 0 // its ports are counted from 1
	}
	fmt.Fprintf(w, "%s '%s'\n", d.kind(), d.Name)
	fmt.Fprintf(w, "\t%s type: %s\n", d.kind(), board)
	fmt.Fprintf(w, "\tNumber of ports: %d\n", ports)
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
