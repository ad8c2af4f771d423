// Package typeperf is `softvpi counters`: it lists, reads, watches and resets the counters of a running driver, with
// the paths, options and CSV of Windows' typeperf.
package typeperf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Driver is the management interface of a driver.
type Driver interface {
	Get(ctx context.Context, path string, query url.Values, out any) error
	Post(ctx context.Context, path string, in, out any) error
}

const synopsis = `counters list [-x] [-json] [SET...]
       counters get [-si SECONDS] [-json] [PATH...]
       counters watch [-si [[HH:]MM:]SS] [-sc SAMPLES] [-f csv|tsv|json|text] [-cf FILE] [-o FILE [-y]] [PATH...]
       counters reset [-adapter NAME] SET

PATH selects counters: "\Set(Instance)\Counter" with * for any characters, or set.counter with the
short names of counters list. Without "(Instance)" it means every instance, without a counter the set.`

// command is what the tool was asked to do.
type command struct {
	env    tool.Env
	driver Driver

	flags    *tool.Flags
	json     bool
	extended bool
	form     string
	interval time.Duration
	samples  int
	pathFile string
	output   string
	replace  bool
	adapter  string
}

// Main runs `softvpi counters`. dial returns the management interface of the driver at a socket, empty for
// the default.
func Main(ctx context.Context, env tool.Env, dial func(socket string) Driver) int {
	c := &command{env: env, interval: time.Second, form: string(counters.CSV)}
	verb := ""
	if len(env.Args) > 0 && !strings.HasPrefix(env.Args[0], "-") {
		verb, env.Args = env.Args[0], env.Args[1:]
	}
	f := tool.NewFlags(env, synopsis)
	c.flags = f
	socket := f.String("socket", "", "`path` of the driver's socket (default: $SOFTVPI_SOCKET, or below $XDG_RUNTIME_DIR)")
	do := c.verb(verb)
	if status, done := f.Parse(); done {
		return status
	}
	if do == nil {
		return f.Refuse(tool.NoVerb("counters", verb, "list, get, watch, reset"))
	}
	c.driver = dial(*socket)
	err := do(ctx)
	var usage *tool.UsageError
	var path *counters.PathError
	switch {
	case errors.As(err, &usage), errors.As(err, &path):
		return f.Refuse(err)
	case ctx.Err() != nil:
		return tool.Success // the usual end of watching
	case err != nil:
		return env.Fail(err)
	}
	return tool.Success
}

// verb adds the options of a verb and returns the function that executes it.
func (c *command) verb(name string) func(context.Context) error {
	f := c.flags
	seconds := func() {
		f.Func("si", "`[[hh:]mm:]ss` between samples (default 1; decimals allowed)", func(s string) (err error) {
			c.interval, err = parseInterval(s)
			return err
		})
	}
	switch name {
	case "list":
		f.BoolVar(&c.json, "json", false, "print JSON")
		f.BoolVar(&c.extended, "x", false, "print a path for each instance, as typeperf -qx")
		return c.list
	case "get":
		f.BoolVar(&c.json, "json", false, "print JSON")
		seconds()
		return c.get
	case "watch":
		seconds()
		f.Int(&c.samples, "sc", 0, 1, 1<<30, "of samples, without it until it is interrupted")
		f.Func("f", "`form` of the output: csv, tsv, json or text (default csv)", func(s string) error {
			for _, form := range counters.Forms {
				if strings.EqualFold(s, string(form)) {
					c.form = string(form)
					return nil
				}
			}
			return errors.New("allowed: csv, tsv, json, text")
		})
		f.StringVar(&c.pathFile, "cf", "", "`file` with a path a line")
		f.StringVar(&c.output, "o", "", "`file` for the output")
		f.BoolVar(&c.replace, "y", false, "replace the file of -o if it exists")
		return c.watch
	case "reset":
		f.StringVar(&c.adapter, "adapter", "", "`name` of the adapter (default: all)")
		return c.reset
	}
	return nil
}

// maxInterval is the maximum time between two samples, as in typeperf.
const maxInterval = 7 * 24 * time.Hour

// parseInterval parses [[hh:]mm:]ss.
func parseInterval(s string) (time.Duration, error) {
	bad := errors.New("allowed: [[hh:]mm:]ss, above 0")
	parts := strings.Split(s, ":")
	if len(parts) > 3 {
		return 0, bad
	}
	var d time.Duration
	for i, p := range parts {
		unit := "s"
		if p == "" || strings.Trim(p, "0123456789.") != "" || i < len(parts)-1 && strings.Contains(p, ".") {
			return 0, bad
		}
		x, err := time.ParseDuration(p + unit)
		if err != nil || i > 0 && x >= time.Minute {
			return 0, bad
		}
		d = d*60 + x
	}
	if d <= 0 || d > maxInterval {
		return 0, bad
	}
	return d, nil
}

func (c *command) paths() ([]string, error) {
	var all []string
	for i := range c.flags.NArg() {
		all = append(all, c.flags.Arg(i))
	}
	if c.pathFile != "" {
		b, err := inputfile.Read(c.pathFile, inputfile.Text)
		if err != nil {
			return nil, tool.Usagef("-cf: %v", err)
		}
		for l := range strings.Lines(string(b)) {
			if l = strings.TrimSpace(l); l != "" {
				all = append(all, strings.Trim(l, `"`))
			}
		}
	}
	for _, p := range all {
		if err := counters.CheckPath(p); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c *command) list(ctx context.Context) error {
	var sets []counters.Set
	if err := c.driver.Get(ctx, "/counters/sets", nil, &sets); err != nil {
		return err
	}
	paths, err := c.paths()
	if err != nil {
		return err
	}
	sets = choose(sets, paths)
	if c.json {
		return writeJSON(c.env.Stdout, sets)
	}
	var b strings.Builder
	for _, s := range sets {
		c.listSet(&b, s)
	}
	_, err = io.WriteString(c.env.Stdout, b.String())
	return err
}

// choose returns the sets that the paths name.
func choose(sets []counters.Set, paths []string) []counters.Set {
	if len(paths) == 0 {
		return sets
	}
	out := []counters.Set{}
	for _, s := range sets {
		for _, p := range paths {
			if counters.PathHasSet(p, s.Short) {
				out = append(out, s)
				break
			}
		}
	}
	return out
}

func (c *command) listSet(b *strings.Builder, s counters.Set) {
	if c.extended {
		for _, in := range s.Instances {
			for _, k := range s.Counters {
				fmt.Fprintf(b, "\\%s(%s)\\%s\n", s.Name, in, k.Name)
			}
		}
		return
	}
	fmt.Fprintf(b, "%s (%s)\n", s.Name, s.Short)
	instances := strings.Join(s.Instances, "; ")
	if instances == "" {
		instances = "none"
	}
	fmt.Fprintf(b, "  instances: %s\n", instances)
	for _, k := range s.Counters {
		state := ""
		if !k.Counted {
			state = ", not counted"
		}
		unit := k.Unit
		if unit == "" {
			unit = "number"
		}
		fmt.Fprintf(b, "  %-46s %-38s %s, %s%s\n", k.Name, k.Short, k.Kind, unit, state)
	}
}

// sample reads a snapshot.
func (c *command) sample(ctx context.Context, paths []string) (s counters.Snapshot, err error) {
	err = c.driver.Get(ctx, "/counters", url.Values{"path": paths}, &s)
	return s, err
}

func (c *command) get(ctx context.Context) error {
	form := counters.Text
	if c.json {
		form = counters.JSON
	}
	c.samples = 1
	paths, err := c.paths()
	if err != nil {
		return err
	}
	return c.run(ctx, paths, counters.NewWriter(c.env.Stdout, form, ""), false)
}

func (c *command) watch(ctx context.Context) error {
	paths, err := c.paths()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	out := c.env.Stdout
	if c.output != "" {
		flag := os.O_WRONLY | os.O_CREATE | os.O_EXCL
		if c.replace {
			flag = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		}
		f, err := os.OpenFile(c.output, flag, 0o666)
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%w; -y replaces it", err)
		}
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}
	return c.run(ctx, paths, counters.NewWriter(out, counters.Form(c.form), host), true)
}

// run writes samples at intervals. As in typeperf, the first one comes an interval after the start, so
// that there are rates; a single one that needs none comes at once.
func (c *command) run(ctx context.Context, paths []string, w *counters.Writer, watching bool) error {
	var r counters.Reader
	s, err := c.sample(ctx, paths)
	if err != nil {
		return err
	}
	readings := r.Read(s)
	if !watching && !s.HasRates() {
		return w.Write(s.Time, readings)
	}
	t := time.NewTicker(c.interval)
	defer t.Stop()
	for n := 0; c.samples == 0 || n < c.samples; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		if s, err = c.sample(ctx, paths); err != nil {
			return err
		}
		if err := w.Write(s.Time.Local(), r.Read(s)); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) reset(ctx context.Context) error {
	if c.flags.NArg() != 1 {
		return tool.Usagef("counters reset takes one counter set; counters list shows which can be reset")
	}
	q := counters.ResetRequest{Set: c.flags.Arg(0), Adapter: c.adapter}
	if err := counters.CheckReset(q); err != nil {
		return err
	}
	return c.driver.Post(ctx, "/counters/reset", q, nil)
}
