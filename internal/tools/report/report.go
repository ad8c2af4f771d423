// Package report is softvpi report: one archive of all that whoever looks for a fault will ask for, with secrets removed. It works
// without a running driver too.
package report

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const synopsis = `usage: softvpi report [-o FILE] [options]
Gathers what somebody needs who looks for a fault into one archive: version, status, health, configuration, registry, counters, events,
the latest trace and dumps, the driver's log, and facts about the machine. Tokens, passwords and keys are removed. What was taken and
what was left out is printed, and in README.txt of the archive.`

// run is one run of the command.
type run struct {
	archive
	ctx     context.Context
	env     tool.Env
	client  *api.Client
	socket  string
	state   string
	config  string
	version string
	// patience is how long the driver has for an answer.
	patience time.Duration
	running  bool
}

// Main returns the tool. version is that of this program.
func Main(version string) tool.Main {
	return func(ctx context.Context, env tool.Env) int { return report(ctx, env, version, answerTime) }
}

// report is the tool, which waits for each answer of the driver no longer than patience.
func report(ctx context.Context, env tool.Env, version string, patience time.Duration) int {
	now := time.Now()
	f := tool.NewFlags(env, synopsis)
	out := f.String("o", "", "`file` to write, whose name ends in .tar.gz, .tgz or .zip (default softvpi-report-<time>.tar.gz)")
	socket := f.String("socket", "", "`path` of the driver's socket")
	state := f.String("state", "", "`directory` of the driver's state")
	config := f.String("config", "", "configuration `file` of the driver (default: the one that softvpi up takes without --config)")
	silent := f.Bool("silent", false, "print the name of the file only")
	if status, done := f.Parse(); done {
		return status
	}
	if err := f.NoArguments(); err != nil {
		return f.Refuse(err)
	}
	if *out == "" {
		*out = "softvpi-report-" + now.Format("20060102-150405") + ".tar.gz"
	}
	folder := folderOf(*out)
	if folder == "" {
		return f.Refuse(tool.Usagef("-o is %q; allowed: a name that ends in .tar.gz, .tgz or .zip", *out))
	}
	if f.Given("config") {
		if _, err := os.Stat(*config); err != nil {
			return f.Refuse(tool.Usagef("-config: %v", err))
		}
	} else {
		*config = paths.Config()
	}
	if !f.Given("state") {
		*state = paths.State()
	}
	r := &run{archive: archive{limits: usual}, ctx: ctx, env: env, client: api.NewClient(*socket), socket: *socket, state: *state,
		config: *config, version: version, patience: patience}
	r.gather()
	about := fmt.Sprintf("Report of softvpi, %s. %s", now.Format(time.RFC3339), r.about())
	manifest := r.manifest(about)
	r.files = append([]file{{"README.txt", manifest}}, r.files...)
	var b bytes.Buffer
	if err := r.write(&b, *out, folder, now); err != nil {
		return env.Fail(err)
	}
	if err := ctx.Err(); err != nil {
		return env.End(ctx, err)
	}
	if err := wholefile.Write(*out, b.Bytes()); err != nil {
		return env.Fail(err)
	}
	if !*silent {
		fmt.Fprintf(env.Stdout, "%s\n", manifest)
	}
	fmt.Fprintln(env.Stdout, *out)
	return tool.Success
}

// folderOf returns the folder within an archive, "" if its name is none of one.
func folderOf(name string) string {
	for _, end := range []string{".tar.gz", ".tgz", ".zip"} {
		if base := filepath.Base(name); strings.HasSuffix(base, end) && len(base) > len(end) {
			return strings.TrimSuffix(base, end)
		}
	}
	return ""
}

func (r *run) about() string {
	if r.running {
		return "A driver is running."
	}
	return "No driver answers: what is here of it is from the disk."
}
