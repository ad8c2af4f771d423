// Package eventlog is `softvpi events`: it lists and follows the event log of a running driver.
package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Driver is the management interface of a driver.
type Driver interface {
	Get(ctx context.Context, path string, query url.Values, out any) error
}

const synopsis = `events list [-id ID] [-source NAME] [-severity LEVEL] [-adapter NAME] [-since TIME] [-until TIME] [-n COUNT] [-json]
       events follow [-n COUNT] [the same filters] [-json]

Filters may be repeated, or comma-separated. TIME is RFC 3339, a date, or a duration before now such as 90m.
-json prints one event per line.`

type command struct {
	env    tool.Env
	driver Driver
	now    func() time.Time
	query  events.Query
	count  int
	json   bool
}

// Main runs `softvpi events`. dial returns the management interface of the driver at a socket, empty for
// the default.
func Main(ctx context.Context, env tool.Env, dial func(socket string) Driver) int {
	c := &command{env: env, now: time.Now}
	verb := ""
	if len(env.Args) > 0 && !strings.HasPrefix(env.Args[0], "-") {
		verb, env.Args = env.Args[0], env.Args[1:]
	}
	f := tool.NewFlags(env, synopsis)
	socket := f.String("socket", "", "`path` of the driver's socket (default: $SOFTVPI_SOCKET, or below $XDG_RUNTIME_DIR)")
	c.flags(f, verb == "follow")
	if status, done := f.Parse(); done {
		return status
	}
	do := map[string]func(context.Context) error{"list": c.list, "follow": c.follow}[verb]
	if do == nil {
		return f.Refuse(tool.NoVerb("events", verb, "list, follow"))
	}
	if err := f.NoArguments(); err != nil {
		return f.Refuse(err)
	}
	if err := c.query.Check(); err != nil {
		return f.Refuse(err)
	}
	c.driver = dial(*socket)
	err := do(ctx)
	switch {
	case ctx.Err() != nil:
		return tool.Success // the usual end of following
	case err != nil:
		return env.Fail(err)
	}
	return tool.Success
}

// flags adds the options.
func (c *command) flags(f *tool.Flags, follow bool) {
	f.BoolVar(&c.json, "json", false, "print JSON, one event per line")
	list := func(p *[]string) func(string) error {
		return func(s string) error { *p = append(*p, strings.Split(s, ",")...); return nil }
	}
	f.Func("source", "`name` of the source, such as mlx5 or softvpi", list(&c.query.Sources))
	f.Func("severity", "`level`: Information, Warning or Error", list(&c.query.Severity))
	f.Func("adapter", "`name` of the adapter", func(s string) error { c.query.Adapters = append(c.query.Adapters, s); return nil })
	f.Func("id", "`number` of the event, decimal or 0x...", func(s string) error {
		for _, x := range strings.Split(s, ",") {
			id, err := strconv.ParseUint(x, 0, 32)
			if err != nil {
				return errors.New("allowed: a number, decimal or with 0x before it")
			}
			c.query.IDs = append(c.query.IDs, uint32(id))
		}
		return nil
	})
	moment := func(p *time.Time) func(string) error {
		return func(s string) (err error) { *p, err = parseTime(s, c.now()); return err }
	}
	f.Func("since", "`time` from which on", moment(&c.query.Since))
	f.Func("until", "`time` before which", moment(&c.query.Until))
	low, value := 1, 0
	usage := "of events, the newest (default all)"
	if follow {
		low, value, usage = 0, 10, "of events that are there already, the newest"
	}
	f.Int(&c.count, "n", value, low, events.MaxPage, usage)
}

// parseTime parses a time, absolute or as a duration before now.
func parseTime(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	for _, layout := range []string{time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("allowed: 2026-11-20T16:51:47Z, 2026-11-20, or a duration before now such as 90m")
}

func (c *command) list(ctx context.Context) error {
	q := c.query
	q.Limit = c.count
	p, err := c.ask(ctx, q, 0)
	if err != nil {
		return err
	}
	return c.print(p)
}

// waiting is how long one request waits for an event.
const waiting = 20 * time.Second

func (c *command) follow(ctx context.Context) error {
	q := c.query
	q.Limit = max(c.count, 1)
	p, err := c.ask(ctx, q, 0)
	if err != nil {
		return err
	}
	if c.count == 0 {
		p.Events = nil
	}
	q.Limit = 0
	for ctx.Err() == nil {
		if err := c.print(p); err != nil {
			return err
		}
		if q.After = p.Next; q.After == 0 {
			q.After, q.Limit = 0, events.MaxPage // the log is empty: everything is new
		}
		if p, err = c.ask(ctx, q, waiting); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *command) ask(ctx context.Context, q events.Query, wait time.Duration) (p events.Page, err error) {
	v := q.Values()
	if wait > 0 {
		v.Set("wait", wait.String())
	}
	err = c.driver.Get(ctx, "/events", v, &p)
	return p, err
}

func (c *command) print(p events.Page) error {
	if p.Missed > 0 {
		c.env.Errorf("%d events are no longer in the log", p.Missed)
	}
	if p.NotKept != "" && len(p.Events) > 0 {
		c.env.Errorf("events are not kept on disk: %s", p.NotKept)
	}
	var b strings.Builder
	for _, r := range p.Events {
		if c.json {
			line, err := json.Marshal(r)
			if err != nil {
				return err
			}
			b.Write(line)
			b.WriteString("\n")
			continue
		}
		fmt.Fprintf(&b, "%s  %-11s %-10s 0x%04x  %s\n", r.Time.In(c.now().Location()).Format("2006-01-02 15:04:05.000"), r.Severity,
			r.Source, r.ID, r.Message)
	}
	_, err := io.WriteString(c.env.Stdout, b.String())
	return err
}
