// Package snapshot is MLNX_System_Snapshot: one report on the machine, the adapters, their registry,
// counters and events, to look at and to pass on (WinOF 5.50, 5.1). It also works while no driver runs.
package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const (
	defaultFile = "MLNX_System_Snapshot.html"
	synopsis    = `usage: MLNX_System_Snapshot [-o FILE] [options]
Writes one HTML page about this machine, its adapters, their registry keys, counters, events and queue pairs. The
page refers to nothing outside itself. While no driver runs, the page describes what the state directory holds.`
)

// Main runs MLNX_System_Snapshot.
func Main(ctx context.Context, env tool.Env) int {
	f := tool.NewFlags(env, synopsis)
	file := f.String("o", "", "`file` to write; - is standard output (default "+defaultFile+"; with --json standard output)")
	socket := f.String("socket", "", "`path` of the driver's socket")
	state := f.String("state", "", "`directory` of the driver's state, for when it is stopped")
	asJSON := f.Bool("json", false, "write JSON instead of a page")
	if status, done := f.Parse(); done {
		return status
	}
	if err := f.NoArguments(); err != nil {
		return f.Refuse(err)
	}
	switch {
	case *file == "" && *asJSON:
		*file = "-"
	case *file == "":
		*file = defaultFile
	}
	if *state == "" {
		*state = paths.State()
	}
	r, err := take(ctx, *socket, *state)
	if err != nil {
		return env.End(ctx, err)
	}
	var b bytes.Buffer
	write := r.html
	if *asJSON {
		write = r.json
	}
	if err := write(&b); err != nil {
		return env.Fail(err)
	}
	if *file == "-" {
		if _, err := env.Stdout.Write(b.Bytes()); err != nil {
			return env.Fail(err)
		}
		return tool.Success
	}
	if err := wholefile.Write(*file, b.Bytes()); err != nil {
		return env.Fail(err)
	}
	if !r.Running {
		fmt.Fprintf(env.Stdout, "No driver is running: the report is about %s.\n", *state)
	}
	fmt.Fprintln(env.Stdout, *file)
	return tool.Success
}

// take creates the report.
func take(ctx context.Context, socket, state string) (*report, error) {
	r := &report{Time: time.Now()}
	r.machine()
	client := api.NewClient(socket)
	status, err := client.Status(ctx)
	switch {
	case err == nil:
		r.Running = true
		r.running(ctx, client, status)
	case errors.Is(err, api.ErrNotRunning):
		r.stopped(state, err)
	default:
		return nil, err
	}
	return r, nil
}
