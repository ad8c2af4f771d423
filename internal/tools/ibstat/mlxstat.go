package ibstat

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

const mlxStatSynopsis = `usage: MlxStat [options] [ADAPTER]
Shows the attributes of the adapters, as vstat and ibstat do.`

// MlxStat runs MlxStat.
func MlxStat(ctx context.Context, env tool.Env) int {
	f, socket, asJSON := started(env, mlxStatSynopsis)
	if status, done := f.Parse(); done {
		return status
	}
	if f.NArg() > 1 {
		return f.Refuse(tool.Usagef("unexpected argument %q; allowed: an adapter", f.Arg(1)))
	}
	list, err := devices(ctx, *socket)
	if err == nil {
		list, err = pick(list, f.Arg(0))
	}
	if err != nil {
		return env.End(ctx, err)
	}
	if *asJSON {
		err = writeJSON(env.Stdout, list)
	} else {
		for _, d := range list {
			mlxStat(env.Stdout, d)
		}
	}
	if err != nil {
		return env.Fail(err)
	}
	return tool.Success
}

func mlxStat(w io.Writer, d device) {
	fmt.Fprintf(w, "%s\n%s\n", d.Name, strings.Repeat("-", len(d.Name)))
	row := func(name string, value any) { fmt.Fprintf(w, "  %-18s %v\n", name+":", value) }
	row("Device type", fmt.Sprintf("MT%d", d.PartID))
	row("Driver", d.Generation)
	row("Firmware version", d.Firmware)
	row("Vendor ID", fmt.Sprintf("0x%04x", d.VendorID))
	row("Node GUID", guid(d.NodeGUID))
	if d.Location != "" {
		row("Location", d.Location)
	}
	for _, p := range d.Ports {
		state := "Down"
		if p.Up {
			state = "Up"
		}
		row("Port", p.Number)
		if p.Name != "" {
			row("Interface", p.Name)
		}
		row("State", state)
		row("Rate", gbps(p.Rate)+" Gbps")
		row("Transport", p.Transport)
		row("Active MTU", p.ActiveMTU)
		if p.status != nil {
			row("Link MTU", p.status.LinkMTU)
		}
		for i, g := range p.GIDs {
			row(fmt.Sprintf("GID[%d]", i), g)
		}
	}
	fmt.Fprintln(w)
}
