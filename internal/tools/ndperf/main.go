package ndperf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/verbs"
)

// Main runs the test as a tool.
func (t Test) Main(ctx context.Context, env tool.Env) int {
	o, status, done := t.parse(env)
	if done {
		return status
	}
	out := env.Stdout
	if o.JSON {
		out = io.Discard
	}
	report := Report{Tool: t.Name(), Role: "client", Server: netip.AddrPortFrom(o.Addr, o.Port).String(), Results: []Result{}}
	err := t.run(ctx, env, out, &o, &report)
	report.Stopped = ctx.Err() != nil
	switch {
	case err == nil:
		report.judge(&o)
	case !report.Stopped:
		report.Error = err.Error()
	}
	if o.JSON {
		err = errors.Join(err, report.writeJSON(env.Stdout))
	}
	switch {
	case err != nil:
		return env.End(ctx, err)
	case report.Stopped && !o.Server:
		env.Errorf("stopped; the results cover the time until then")
	}
	switch {
	case report.Threshold != nil && !report.Threshold.Passed:
		v := report.Threshold
		env.Errorf("%s %g missed: %.4g", v.Option, v.Limit, v.Value)
		return tool.Failure
	}
	return tool.Success
}

func (t Test) run(ctx context.Context, env tool.Env, out io.Writer, o *options, report *Report) (err error) {
	var s *session.Session
	if o.Server {
		s, err = session.Serve(ctx, o.mode, o.Addr)
	} else {
		s, err = session.Dial(ctx, o.mode, netip.AddrPortFrom(o.Addr, o.Port))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	report.Adapter, report.Mode = s.Name(), s.Mode()
	if s.Provider.Host().Mode() == verbs.Embedded {
		defer oneProcessor()()
	}
	row := func(x Result) {
		shown := x.Client
		if o.Server {
			shown = x.shownByServer(t)
		}
		writeRow(out, shown)
		report.Results = append(report.Results, x)
	}
	if !o.Server {
		report.Client = s.Local.String()
		connected := func() {
			fmt.Fprintf(out, "%s: %v to %s, %s (%s)\n", env.Name, s.Local, report.Server, report.Adapter, report.Mode)
			writeHeader(out, t.Measure)
		}
		return t.client(ctx, o, s, newProgress(env, o), connected, row)
	}
	report.Role = "server"
	listening := func() {
		announce := out
		if o.JSON {
			announce = env.Stderr // standard output is only for the JSON
		}
		fmt.Fprintf(announce, "%s: serving at %s, %s (%s)\n", env.Name, report.Server, report.Adapter, report.Mode)
		writeHeader(out, t.Measure)
	}
	client, err := t.server(ctx, o, s, listening, func(text string) { env.Errorf("%s", text) }, row)
	if client.IsValid() {
		report.Client = client.String()
	}
	return err
}

// oneProcessor makes the process's Go code run on one processor at a time, unless GOMAXPROCS is set. The
// runtime preempts a polling goroutine every 10 ms, and if a processor is idle that wakes a thread for
// nothing, which the system may put on the peer's processor.
func oneProcessor() (restore func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}

// shownByServer returns the row for the server's table: what it received itself or, for all other tests,
// the client's figures with the server's processor time.
func (x *Result) shownByServer(t Test) Row {
	if t == (Test{Send, Bandwidth}) {
		return x.Server
	}
	r := x.Client
	r.CPU = x.Server.CPU
	return r
}

func newProgress(env tool.Env, o *options) *progress {
	if !env.Terminal || o.Server {
		return nil
	}
	return &progress{w: env.Stderr, name: env.Name}
}
