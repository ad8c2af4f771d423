package mlx5cmd

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/os/wholefile"
)

// trace implements -Trace: sessions of the driver, whose files are for Perfetto and text.
func (r *run) trace() (report, error) {
	if err := r.only("Start", "Stop", "Collect", "Query", "Level=", "Components=", "Size=", "FileName="); err != nil {
		return nil, err
	}
	action, err := r.action("Start", "Stop", "Collect", "Query")
	if err != nil {
		return nil, err
	}
	file := r.value("FileName")
	if writes := action == "Stop" || action == "Collect"; file != "" && !writes {
		return nil, r.usagef("-FileName goes with -Stop and -Collect")
	}
	var s api.TraceStatus
	if action == "Query" {
		s, err = r.client.TraceStatus(r.ctx)
	} else {
		var q api.TraceRequest
		if q, err = r.traceRequest(action); err != nil {
			return nil, err
		}
		s, err = r.client.Trace(r.ctx, q)
	}
	if err != nil {
		return nil, err
	}
	if file != "" {
		if s.Files, err = copied(s.Files, file); err != nil {
			return nil, err
		}
	}
	b := block{title: "Trace session " + strconv.Quote(s.Session), section: "trace"}
	b.add("Started", s.Started.Format(time.RFC3339))
	for _, c := range slices.Sorted(maps.Keys(s.Levels)) {
		b.add("Level of "+c, s.Levels[c])
	}
	b.add("Size MB", s.Megabytes)
	b.add("Memory bytes", s.Bytes)
	b.add("Records", s.Records)
	b.add("Overwritten", s.Overwritten)
	if s.LeftOut > 0 {
		b.add("Left out of file", s.LeftOut)
	}
	for i, f := range s.Files {
		b.add(fmt.Sprintf("File[%d]", i), f)
	}
	return blocks{list: []block{b}, notes: []string{done}}, nil
}

func (r *run) traceRequest(action string) (q api.TraceRequest, err error) {
	q = api.TraceRequest{Action: api.TraceAction(strings.ToLower(action)), Level: r.value("Level"), Levels: map[string]string{}}
	if size := r.value("Size"); size != "" {
		if q.Megabytes, err = strconv.Atoi(size); err != nil || q.Megabytes <= 0 {
			return q, r.usagef("-Size is %q; it is a number of megabytes, 1 to 1024", size)
		}
	}
	if words := r.value("Components"); words != "" {
		for _, word := range strings.Split(words, ",") {
			name, level, ok := strings.Cut(word, "=")
			if !ok {
				return q, r.usagef("-Components has %q; it is <name>=<level>,...", word)
			}
			q.Levels[name] = level
		}
	}
	return q, nil
}

// copied copies the trace for Perfetto to a file, and the text beside it, with the extension .txt.
func copied(files []string, to string) (out []string, err error) {
	if to, err = filepath.Abs(to); err != nil {
		return nil, err
	}
	for _, from := range files {
		b, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		name := to
		if strings.HasSuffix(from, ".txt") {
			name = strings.TrimSuffix(to, filepath.Ext(to)) + ".txt"
		}
		if name == to && len(out) > 0 {
			continue // the name that is asked for is that of the text
		}
		if err := wholefile.Write(name, b); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, nil
}
