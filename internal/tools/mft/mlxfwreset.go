package mft

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const resetSynopsis = `usage: mlxfwreset -d DEVICE query|q
       mlxfwreset -d DEVICE [-l LEVEL] [-y] reset|r
Loads the firmware that was burned, and what mlxconfig has set, by a restart of the device: of all its ports, and of no
other. Their connections end.`

// level is a level of reset, as mlxfwreset numbers them.
type level struct {
	Number int    `json:"level"`
	Name   string `json:"name"`
	Has    bool   `json:"supported"`
	why    string // not
}

// levels are those of the tool. A software adapter has no PCI link, and the machine need not boot for it.
var levels = []level{
	{0, "Full ISFU", false, "the engine is not replaced while ports run: softvpi down and softvpi up"},
	{1, "Driver restart (link/management will remain up)", false, "links end with the restart of their ports: level 3"},
	{2, "Driver restart (link/management will be down)", false, "other devices run in the same driver: level 3"},
	{defaultLevel, "Driver restart and PCI reset", true, ""},
	{4, "Warm Reboot", false, "the machine need not boot: level 3"},
	{5, "Cold Reboot", false, "the machine need not boot: level 3"},
}

const defaultLevel = 3

// Reset runs mlxfwreset.
func Reset(ctx context.Context, env tool.Env) int {
	f := tool.NewFlags(env, resetSynopsis)
	var device string
	var yes bool
	at := defaultLevel
	for _, n := range []string{"d", "device"} {
		f.StringVar(&device, n, "", "`device` as mst status names it")
	}
	for _, n := range []string{"l", "level"} {
		f.Int(&at, n, defaultLevel, 0, len(levels)-1, "of the reset, as query lists them")
	}
	for _, n := range []string{"y", "yes"} {
		f.BoolVar(&yes, n, false, "answer yes to the question")
	}
	socket := f.String("socket", "", "`path` of the driver's socket")
	asJSON := f.Bool("json", false, "query: print JSON")
	if status, done := f.Parse(); done {
		return status
	}
	verb := f.Arg(0)
	if !slices.Contains([]string{"query", "q", "reset", "r"}, verb) {
		return f.Refuse(tool.NoVerb("mlxfwreset", verb, "query, reset"))
	}
	if f.NArg() > 1 {
		return f.Refuse(tool.Usagef("unexpected argument %q behind %s", f.Arg(1), verb))
	}
	if device == "" {
		return f.Refuse(errDevice)
	}
	c := api.NewClient(*socket)
	d, err := flashOf(ctx, c, device)
	if err != nil {
		return env.End(ctx, err)
	}
	if strings.HasPrefix(verb, "q") {
		return env.End(ctx, showLevels(env, d, *asJSON))
	}
	return env.End(ctx, reset(ctx, env, c, d, levels[at], yes))
}

func showLevels(env tool.Env, d *flashed, asJSON bool) error {
	if asJSON {
		return writeJSON(env.Stdout, levels)
	}
	fmt.Fprintf(env.Stdout, "\nSupported reset levels for loading FW on device, %s:\n\n", d.name)
	for _, l := range levels {
		is := "Not Supported"
		if l.Has {
			is = "Supported"
		}
		if l.Number == defaultLevel {
			is += "     (default)"
		}
		fmt.Fprintf(env.Stdout, "%d: %-58s -%s\n", l.Number, l.Name, is)
	}
	fmt.Fprintln(env.Stdout)
	return nil
}

func reset(ctx context.Context, env tool.Env, c *api.Client, d *flashed, l level, yes bool) error {
	if !l.Has {
		return fmt.Errorf("%w: reset level %d; %s", tool.ErrUnsupported, l.Number, l.why)
	}
	fmt.Fprintf(env.Stdout, "\nRequested reset level for device, %s:\n\n%d: %s\n", d.name, l.Number, l.Name)
	if ok, err := confirm(ctx, env, "Continue with reset?[y/N] ", yes, false); err != nil || !ok {
		fmt.Fprintln(env.Stdout, "-I- Nothing was reset.")
		return err
	}
	if err := restart(ctx, c, d.of.Ports); err != nil {
		return err
	}
	for _, a := range d.of.Ports {
		what := "Restarting port"
		if !a.Enabled {
			what = "Disabled, until it starts: port"
		}
		fmt.Fprintf(env.Stdout, "-I- %-40s -Done\n", fmt.Sprintf("%s %d, %s", what, a.Port, a.Name))
	}
	fmt.Fprintln(env.Stdout, "-I- FW was loaded successfully.")
	return nil
}

// restart restarts the ports of a device, which then have what its flash holds and mlxconfig has set. Those that are
// disabled stay so, and have it when they are enabled.
func restart(ctx context.Context, c *api.Client, ports []*api.AdapterStatus) error {
	for _, a := range ports {
		if !a.Enabled {
			continue
		}
		if err := c.RestartAdapter(ctx, a.Name); err != nil {
			return fmt.Errorf("port %d, %s: %w", a.Port, a.Name, err)
		}
	}
	return nil
}
