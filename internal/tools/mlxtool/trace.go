package mlxtool

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/trace"
)

// trace starts, stops or writes a trace of the driver.
func (r *run) trace() (report, error) {
	if len(r.args) == 0 {
		return nil, r.usagef("what is to be done is missing")
	}
	action, rest := strings.ToLower(r.args[0]), r.args[1:]
	q := api.TraceRequest{Action: api.TraceAction(action), Levels: map[string]string{}}
	switch action {
	case "start":
		if len(rest) > 0 && rest[0] != "file" && !strings.Contains(rest[0], "=") {
			q.Level, rest = rest[0], rest[1:]
		}
		for _, word := range rest {
			if word == "file" {
				q.File = true
				continue
			}
			component, level, ok := strings.Cut(word, "=")
			if !ok {
				return nil, r.usagef("unexpected argument %q", word)
			}
			if component != "size" {
				q.Levels[component] = level
				continue
			}
			n, err := strconv.Atoi(level)
			if err != nil || n < trace.LeastBytes>>20 || n > trace.MostBytes>>20 {
				return nil, r.usagef("size is %q; allowed: %d to %d, in MB", level, trace.LeastBytes>>20, trace.MostBytes>>20)
			}
			q.Megabytes = n
		}
	case "stop", "collect", "query":
		if len(rest) > 0 {
			return nil, r.usagef("unexpected argument %q", rest[0])
		}
	case "read":
		return r.readTrace(rest)
	default:
		return nil, r.usagef("%q is not start, stop, collect, query or read", r.args[0])
	}
	var s api.TraceStatus
	var err error
	if action == "query" {
		s, err = r.client.TraceStatus(r.ctx)
	} else {
		s, err = r.client.Trace(r.ctx, q)
	}
	if err != nil {
		return nil, err
	}
	t := table{Label: "Trace session", Name: s.Session, Fields: []string{"Started", "Levels", "Records", "Overwritten", "MB", "Left out", "File"}}
	levels := ""
	for _, c := range slices.Sorted(maps.Keys(s.Levels)) {
		levels += c + "=" + s.Levels[c] + " "
	}
	row := []any{s.Started.Format(time.RFC3339), strings.TrimSpace(levels), s.Records, s.Overwritten, s.Megabytes, s.LeftOut}
	for _, f := range s.Files {
		t.add(append(slices.Clone(row), f)...)
	}
	if s.Kept != "" {
		kept := s.Kept
		if s.KeptProblem != "" {
			kept += ", not written any more: " + s.KeptProblem
		}
		t.add(append(slices.Clone(row), kept)...)
	}
	if len(s.Files) == 0 && s.Kept == "" {
		t.add(append(row, notKnown)...)
	}
	return report{t}, nil
}
