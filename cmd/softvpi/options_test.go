package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// An option in the help of a tool: " -q number", " --Port, -P <port> port of ...", " -t MS time-out ...".
var (
	optionLine = regexp.MustCompile(`^ +(--?[\w-]+(?:, --?[\w-]+)*)(?: (<[^>]+>|\S+))?`)
	apart      = regexp.MustCompile(`^ +-[^ ]+(?:, --?[^ ]+)* {2,}`)
)

// takenOptions returns the options listed in a tool's help, with the kind of value that each takes; empty: none.
func takenOptions(help string) map[string]string {
	taken := map[string]string{}
	for line := range strings.Lines(help) {
		m := optionLine.FindStringSubmatch(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "  "))
		if m == nil {
			continue
		}
		if apart.MatchString(line) { // nothing between the names and the description
			m[2] = ""
		}
		for name := range strings.SplitSeq(m[1], ", ") {
			taken[name] = m[2]
		}
	}
	return taken
}

// numeric are the kinds of values that are numbers.
var numeric = []string{"number", "seconds", "port", "<port>", "<ms>", "<lid>", "<key>", "<mlid>", "<hops>", "<count>", "<num>", "<0-3>",
	"<0-15>",
	"NUMBER", "N", "S", "MS", "MILLISECONDS", "MB", "LMC", "KEY", "PRIORITY", "SECONDS", "SL", "PREFIX", "GUID", "FLAGS", "<port_guid>"}

// closed are the other kinds of values for which not every word is valid.
var closed = []string{"mode", "kind", "address", "<gid>", "WAY", "ENGINES"}

// Every tool refuses an unknown option, an option without its value, and an invalid value, in one line that names the
// option.
func TestOptionsOfEveryTool(t *testing.T) {
	for _, name := range []string{"IBSIM_SOCKNAME", "IBSIM_SERVER_NAME", "SIM_HOST", "SOFTVPI_FABRIC"} {
		t.Setenv(name, "")
	}
	t.Setenv(paths.SocketVariable, filepath.Join(t.TempDir(), "none.sock"))
	t.Chdir(t.TempDir())
	valued := 0
	for _, name := range toolNames() {
		refused := func(named string, args ...string) {
			status, stdout, stderr := call(t, name, args...)
			if name == "osmtest" { // it prints a heading first, as OpenSM's does
				stdout = strings.Replace(stdout, "\nCommand Line Arguments\n", "", 1)
			}
			if status != tool.Usage || strings.TrimSpace(stdout) != "" || strings.Count(stderr, "\n") != 1 ||
				!strings.HasPrefix(stderr, name+": ") || !strings.Contains(stderr, named) {
				t.Errorf("%s %q: status %d, %q, %q", name, args, status, stdout, stderr)
			}
		}
		refused("-no-such-option", "--no-such-option")
		_, help, _ := call(t, name, "-h")
		for option, kind := range takenOptions(help) {
			if kind == "" {
				continue
			}
			valued++
			refused(option, option)
			bad := []string{}
			switch {
			case strings.HasPrefix(name, "ibdiag") && option != "--timeout": // checked only when the fabric is known
			case slices.Contains(numeric, kind):
				bad = []string{"", "x", "NaN", "-1", "0x", "1e+400", "99999999999999999999999", "1 2"}
			case slices.Contains(closed, kind):
				bad = []string{"", "x", "-1", "\xff"}
			}
			for _, value := range bad {
				refused(option, option, value)
			}
		}
	}
	if valued < 200 {
		t.Errorf("%d options with a value", valued)
	}
}
