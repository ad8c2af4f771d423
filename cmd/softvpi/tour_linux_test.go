package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// tours are the documents of which a reader types the lines after a $, from first to last, and what is run before.
var tours = []struct{ document, before string }{
	{"README.md", ""},
	{"docs/go.md", ""},
	{"docs/ci.md", ""},
	{"docs/containers.md", ""},
	{"docs/verbs.md", ""},
	{"docs/fabric.md", ""},
	{"docs/subnet.md", ""},
	{"docs/driver.md", ""},
	{"docs/ethernet.md", ""},
	{"docs/qos.md", ""},
	{"docs/virtualization.md", ""},
	{"docs/teaming.md", ""},
	{"docs/powershell.md", ""},
	{"docs/simulate.md", ""},
	{"docs/switches.md", ""},
	{"docs/diagnostics.md", ""},
	{"docs/healing.md", ""},
	{"docs/api.md", "softvpi up &"},
	{"docs/counters.md", "softvpi up &"},
	{"docs/events.md", "softvpi up &"},
	{"docs/web.md", "softvpi up &"},
	{"docs/dumps.md", "softvpi up &"},
}

// Every command line that a document shows works as shown, and prints what is shown except for numbers and names.
// Each document has a network, processes and a home directory of its own. Blocks that need programs missing on the
// machine are left out.
func TestToursOfTheDocuments(t *testing.T) {
	systemtest.Mark(t)
	isolated := []string{"--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if out, err := exec.Command("unshare", append(isolated, "ip", "link", "set", "lo", "up")...).CombinedOutput(); err != nil {
		t.Skipf("needs namespaces and ip: %v %s", err, out)
	}
	libraries := builtLibraries(t)
	for _, tour := range tours {
		t.Run(filepath.Base(tour.document), func(t *testing.T) {
			t.Parallel()
			typed, shown := script(t, tour.document, libraries != "")
			p := newTourist(t, libraries)
			ctx, cancel := context.WithTimeout(context.Background(), 4*await.Limit)
			defer cancel()
			c := exec.CommandContext(ctx, "unshare", append(isolated, "bash", "-c", prologue+"\n"+step(tour.before)+typed)...)
			var out bytes.Buffer
			c.Env, c.Dir, c.Stdout, c.Stderr, c.WaitDelay = p.env, p.dir, &out, &out, time.Second
			c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			err := c.Run()
			if err != nil && !strings.Contains(out.String(), "the tour ends here") { // programs still in the background are killed
				t.Fatalf("%v\n%s", err, out.String())
			}
			for _, line := range missing(shown, out.String()) {
				t.Errorf("not printed: %s", line)
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}

// prologue: the sources are built already. A line that fails is typed again for a while, as a reader would, because
// programs in the background need a moment to start.
const prologue = `
ip link set lo up
make() { :; }
go() { (cd "$TOUR_SOURCES" && command go "$@"); }
typed() {
	echo "\$ $1"
	for try in $(seq 150); do
		eval "$1" && return
		sleep 0.2
	done
	echo "this line fails: $1"
	exit 9
}
up() { # what it prints may come after the first answer
	local said
	said=$(mktemp)
	echo "\$ $1"
	eval "${1%&} > >(tee '$said') 2>&1 &"
	for try in $(seq 300); do
		grep -q '^listening' "$said" && softvpi status >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "it does not come up: $1"
	exit 9
}
there() {
	echo "\$ $1"
	eval "$1"
	for try in $(seq 300); do
		eval "$2" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "it does not come up: $1"
	exit 9
}
`

// endless are lines that run until Ctrl-C.
var endless = []string{"softvpi events follow", "softvpi counters watch -f json transport.probes"}

// step returns a line as the tour's shell script runs it.
func step(line string) string {
	quoted := "'" + strings.ReplaceAll(line, "'", `'\''`) + "'"
	switch {
	case line == "":
		return ""
	case strings.HasPrefix(strings.TrimPrefix(line, "bin/"), "softvpi up") && strings.HasSuffix(line, "&"):
		return "up " + quoted + "\n"
	case strings.HasPrefix(line, "softvpi fabric run") && strings.HasSuffix(line, "&"):
		return "there " + quoted + " 'softvpi fabric do help'\n"
	case slices.Contains(endless, line):
		return "typed '{ timeout 2 " + line + "; [ $? = 124 ]; }'\n"
	case strings.HasPrefix(line, "kill %"): // then wait until the driver has ended
		return "typed " + quoted + "; wait\n"
	}
	return "typed " + quoted + "\n"
}

// script returns the lines of a document as a script, and what the document says that they print.
func script(t *testing.T, document string, libraries bool) (typed string, shown []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", document))
	if err != nil {
		t.Fatal(err)
	}
	lines, left := 0, ""
	for block := range strings.SplitSeq(string(text), "\n\n") {
		if !strings.HasPrefix(block, "    $ ") {
			continue
		}
		if why := lacks(block, libraries); why != "" {
			t.Logf("left out, needs %s:\n%s", why, block)
			left = why
			continue
		}
		for line := range strings.Lines(block) {
			line = strings.TrimRight(strings.TrimPrefix(line, "    "), "\n")
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				command, _, _ = strings.Cut(command, "  #")
				typed += step(strings.TrimRight(command, " "))
				lines++
			} else if line != "..." {
				shown = append(shown, line)
			}
		}
	}
	if lines == 0 && left == "" {
		t.Fatalf("%s shows no commands", document)
	}
	return typed + "echo the tour ends here\n", shown
}

// program matches the beginning of a command.
var program = regexp.MustCompile(`(?m)^    \$ (?:[A-Z_]+=\S+ )*(?:\w+=\$\()?(?:softvpi verbs run -- )?([\w./-]+)|(softvpi verbs|make clib)`)

// lacks returns what a block needs and this machine does not have.
func lacks(block string, libraries bool) string {
	for _, m := range program.FindAllStringSubmatch(block, -1) {
		name := m[1]
		switch {
		case m[2] != "" || strings.HasPrefix(name, "ibv_"):
			if !libraries {
				return "the C libraries"
			}
		}
		if name == "" || toolNamed(name) != nil || slices.Contains([]string{"softvpi", "bin/softvpi", "until", "make", "eval", "kill",
			"export", "cd"}, name) {
			continue
		}
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	return ""
}

// newTourist returns a place with a home directory, and with links to the tools in its path.
func newTourist(t *testing.T, libraries string) place {
	p := newPlace(t)
	home := filepath.Join(p.dir, "home")
	for _, dir := range []string{filepath.Join(p.dir, "bin"), filepath.Join(home, "bin")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	itself := filepath.Join(p.dir, "bin", "softvpi")
	if err := os.Link(os.Args[0], itself); err != nil {
		t.Skip("needs the test and its directories on one file system: ", err)
	}
	if _, err := installLinks(filepath.Join(home, "bin"), itself, append(toolNames(), "softvpi")); err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	p.env = []string{asProgram + "=1", "HOME=" + home, "XDG_RUNTIME_DIR=" + p.dir, "PATH=" + filepath.Join(home, "bin") + ":" +
		os.Getenv("PATH"),
		"TOUR_SOURCES=" + sources, "SOFTVPI_CLIB=" + libraries, "TMPDIR=" + p.dir}
	if out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOROOT").Output(); err == nil {
		dirs := strings.Fields(string(out))
		p.env = append(p.env, "GOCACHE="+dirs[0], "GOMODCACHE="+dirs[1], "CGO_ENABLED=0", "GOTOOLCHAIN=local")
	}
	return p
}

// builtLibraries builds the C libraries, if possible.
func builtLibraries(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		return ""
	}
	dir := t.TempDir()
	for _, what := range []string{"../../clib", "../../clib/preload"} {
		if out, err := exec.Command("make", "-s", "-C", what, "OUT="+dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return dir
}

var (
	path   = regexp.MustCompile(`/\S+/`)
	number = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?(?:ns|µs|us|ms|s)?\b`)
	once   = regexp.MustCompile(`once=\S+`)
	spaces = regexp.MustCompile(`\s+`)
)

// form returns a line without numbers, directories and secrets.
func form(line string) string {
	line = once.ReplaceAllString(path.ReplaceAllString(line, "/"), "once=")
	return strings.TrimSpace(spaces.ReplaceAllString(number.ReplaceAllString(line, "N"), " "))
}

// missing returns the lines that a document shows and nothing printed.
func missing(shown []string, printed string) (lines []string) {
	have := map[string]bool{}
	for line := range strings.Lines(printed) {
		have[form(line)] = true
	}
	for _, line := range shown {
		if !have[form(line)] {
			lines = append(lines, fmt.Sprintf("%s (%s)", line, form(line)))
		}
	}
	return lines
}
