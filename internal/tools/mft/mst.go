package mft

import (
	"context"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const mstSynopsis = `usage: mst status [-v] [options]
Lists the devices by the names that mlxconfig takes; -v with their locations and adapters.`

// mstDevice is a device as shown by mst.
type mstDevice struct {
	Name     string `json:"device"`
	Other    string `json:"other,omitempty"` // another name of the same device
	Location string `json:"bus_dev_fn"`
	Adapter  string `json:"adapter"` // of the first port
	// Adapters are those of all ports.
	Adapters []string `json:"adapters"`
}

// MST runs mst.
func MST(ctx context.Context, env tool.Env) int {
	f := tool.NewFlags(env, mstSynopsis)
	verbose := f.Bool("v", false, "also show locations")
	socket := f.String("socket", "", "`path` of the driver's socket")
	asJSON := f.Bool("json", false, "print JSON")
	if status, done := f.Parse(); done {
		return status
	}
	switch {
	case f.NArg() == 1 && f.Arg(0) == "help":
		fmt.Fprintln(env.Stdout, mstSynopsis)
		return tool.Success
	case f.NArg() != 1 || f.Arg(0) != "status":
		return f.Refuse(tool.Usagef("%q is not a command; allowed: status, help", strings.TrimSpace(f.Arg(0)+" "+f.Arg(1))))
	}
	s, err := api.NewClient(*socket).Status(ctx)
	if err != nil {
		return env.End(ctx, err)
	}
	list := []mstDevice{}
	for _, d := range devices(s) {
		x := mstDevice{Name: d.name, Other: d.other, Location: d.of.Location().Address(), Adapter: d.adapter.Name}
		for _, a := range d.of.Ports {
			x.Adapters = append(x.Adapters, a.Name)
		}
		list = append(list, x)
	}
	if *asJSON {
		return env.End(ctx, writeJSON(env.Stdout, list))
	}
	fmt.Fprintf(env.Stdout, "MST devices:\n------------\n")
	for _, d := range list {
		for _, name := range []string{d.Other, d.Name} {
			switch {
			case name == "":
			case *verbose:
				fmt.Fprintf(env.Stdout, "%-20s bus:dev.fn=%s  net-%s\n", name, d.Location, strings.Join(d.Adapters, ", net-"))
			default:
				fmt.Fprintln(env.Stdout, name)
			}
		}
	}
	return tool.Success
}
