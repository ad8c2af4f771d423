package ndcat

import (
	"bytes"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

func TestArguments(t *testing.T) {
	call := func(line string) (options, int, bool, string) {
		var out, errs bytes.Buffer
		o, status, done := parse(tool.Env{Name: "ndcat", Args: strings.Fields(line), Stdout: &out, Stderr: &errs})
		return o, status, done, errs.String()
	}
	if o, _, done, stderr := call("-s 127.9.0.1"); done || !o.listen || o.at.String() != "127.9.0.1:54326" {
		t.Errorf("-s 127.9.0.1 is read as %+v (%s), want a listener at port 54326", o, stderr)
	}
	for line, want := range map[string]string{
		"": "0 arguments; allowed: one", "a b": "2 arguments", "host": "allowed: an address with an optional port",
		"-c 127.9.0.1": "not defined: -c; allowed: --mode -L -s",
	} {
		_, status, done, stderr := call(line)
		if !done || status != tool.Usage || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, %q, want %q", line, status, stderr, want)
		}
	}
}
