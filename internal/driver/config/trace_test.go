package config

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/trace"
)

// TestTrace: the trace that runs from the start has the levels and the size of the file, or else level information and 8 MB.
func TestTrace(t *testing.T) {
	quiet := trace.Uniform(trace.Off)
	loud := trace.Uniform(trace.Error)
	loud[trace.Loop] = trace.Verbose
	for text, want := range map[string]trace.Config{
		`{}`:                          {Levels: trace.Uniform(trace.Information), Bytes: 8 << 20},
		`{"trace":{}}`:                {Levels: trace.Uniform(trace.Information), Bytes: 8 << 20},
		`{"trace":{"level":"off"}}`:   {Levels: quiet, Bytes: 8 << 20},
		`{"trace":{"megabytes":100}}`: {Levels: trace.Uniform(trace.Information), Bytes: 100 << 20},
		`{"trace":{"file":true}}`:     {Levels: trace.Uniform(trace.Information), Bytes: 100 << 20, File: true},
		`{"trace":{"megabytes":1024,"level":"1","levels":{"loop":"Verbose"}}}`: {Levels: loud, Bytes: 1 << 30},
	} {
		c, err := decode(strings.NewReader(text))
		if err == nil {
			c, err = c.Complete()
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := c.Trace.Session(); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// TestWrongTrace: what is wrong is refused with the name of the field and what is allowed.
func TestWrongTrace(t *testing.T) {
	for text, want := range map[string]string{
		`{"trace":true}`:                            "trace is a bool; allowed: an object",
		`{"trace":{"size":1}}`:                      "trace with level, levels, megabytes, file",
		`{"trace":{"megabytes":-1}}`:                "trace.megabytes is -1; allowed: 1 to 1024",
		`{"trace":{"megabytes":1025}}`:              "trace.megabytes is 1025; allowed: 1 to 1024",
		`{"trace":{"file":1}}`:                      "trace.file",
		`{"trace":{"megabytes":0.5}}`:               "trace.megabytes",
		`{"trace":{"level":"loud"}}`:                `trace.level is "loud"; allowed: off, error, warning, information, verbose, or 0 to 4`,
		`{"trace":{"levels":{"wire":"error"}}}`:     `trace.levels is "wire"; allowed: driver, command, loop, transport, cm, link`,
		`{"trace":{"levels":{"loop":"5"}}}`:         `trace.levels.loop is "5"; allowed: off`,
		`{"trace":{"levels":{"cm":""}}}`:            `trace.levels.cm is ""; allowed: off`,
		`{"trace":{"level":"","levels":["error"]}}`: "trace.levels",
	} {
		c, err := decode(strings.NewReader(text))
		if err == nil {
			_, err = c.Complete()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
