package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestLog: --log chooses the level and the format, -v is its debug, and what is neither is refused with what is allowed.
func TestLog(t *testing.T) {
	t.Setenv("JOURNAL_STREAM", "")
	for _, c := range []struct {
		cmd   upCmd
		lines int // of debug, info, warn, error
		json  bool
	}{
		{upCmd{}, 2, false}, {upCmd{Verbose: true}, 4, false}, {upCmd{Log: "debug"}, 4, false}, {upCmd{Log: "info,text"}, 3, false},
		{upCmd{Log: "warn,json"}, 2, true}, {upCmd{Log: "error,json"}, 1, true},
	} {
		var b bytes.Buffer
		log, err := c.cmd.logger(&b)
		if err != nil {
			t.Fatalf("%+v: %v", c.cmd, err)
		}
		log.Debug("a", "port", 1)
		log.Info("b", "port", 1)
		log.Warn("c", "port", 1)
		log.Error("d", "port", 1)
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != c.lines {
			t.Errorf("%+v: %d lines, want %d: %s", c.cmd, len(lines), c.lines, b.String())
		}
		for _, l := range lines {
			var doc struct{ Port int }
			if isJSON := json.Unmarshal([]byte(l), &doc) == nil && doc.Port == 1; isJSON != c.json || !c.json && !strings.Contains(l, "port=1") {
				t.Errorf("%+v: %s", c.cmd, l)
			}
		}
	}
	for want, cmd := range map[string]upCmd{
		`the level is "loud"; allowed: debug, info, warn, error`: {Log: "loud"},
		`the level is ""`:                          {Log: ",json"},
		`the format is "xml"; allowed: text, json`: {Log: "info,xml"},
		"allowed: one of both":                     {Log: "info", Verbose: true},
	} {
		if _, err := cmd.logger(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cmd, err, want)
		}
	}
}
