package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// call runs the program in this process.
func call(t *testing.T, name string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return callTyping(t, "", append([]string{name}, args...)...)
}

// callTyping is call for a program that asks something; typed is what the user answers.
func callTyping(t *testing.T, typed string, line ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(context.Background(), tool.Env{Name: line[0], Args: line[1:], Stdin: strings.NewReader(typed), Stdout: &out,
		Stderr: &errs})
	return status, out.String(), errs.String()
}

func TestWrongCommandLines(t *testing.T) {
	t.Setenv(paths.SocketVariable, filepath.Join(t.TempDir(), "none.sock"))
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"nosuch"}, 2, "unexpected argument nosuch; allowed: up status "},
		{[]string{"up", "--foo"}, 2, "unknown flag --foo, did you mean \"--log\"?; allowed: --help --config"},
		{[]string{"up", "--adapter", "x"}, 2, "--adapter is \"x\"; allowed: NAME=ADDRESS"},
		{[]string{"up", "--config", ""}, 2, `--config is ""; it takes: Configuration file`},
		{[]string{"up", "--socket", ""}, 2, `--socket is ""; it takes: Socket that programs attach to`},
		{[]string{"up", "--state="}, 2, `--state is ""; it takes: Directory of the registry`},
		{[]string{"up", "--adapter", ""}, 2, `--adapter is ""; allowed: NAME=ADDRESS`},
		{[]string{"fabric", "do", "--name", "", "help"}, 2, `--name is ""; it takes: Name of the fabric`},
		{[]string{"up", "--config", "/nonexistent/x.json"}, 2, "configuration file: open /nonexistent/x.json: no such file"},
		{[]string{"link", "set", "Ethernet 1"}, 2, "expected \"<settings> ...\""},
		{[]string{"link", "set", "Ethernet 1", "loss=200"}, 2, "impairment loss=200: want a percentage from 0 to 100"},
		{[]string{"link", "set", "Ethernet 1", "colour=red"}, 2, "want one of loss, delay"},
		{[]string{"adapter", "enable"}, 2, "expected \"<name>\""},
		{[]string{"tools", "install"}, 2, "expected \"<dir>\""},
		{[]string{"status"}, 1, "no driver is running at "},
		{[]string{"status", "--socket", ""}, 2, `--socket is ""; it takes: Socket of the driver (default: $SOFTVPI_SOCKET`},
		{[]string{"ibdump", "--socket", ""}, 2, `ibdump: --socket is ""; it is the path of the driver's socket`},
		{[]string{"mlx5cmd", "-Stat", "--socket", ""}, 2, `mlx5cmd: --socket is ""; it is the path of the driver's socket`},
		{[]string{"counters", "list", "--socket="}, 2, `counters: --socket is ""; it is the path of the driver's socket`},
		{[]string{"nd_send_bw", "-z"}, 2, "nd_send_bw: flag provided but not defined: -z; allowed: "},
	} {
		status, stdout, stderr := call(t, "softvpi", c.args...)
		if status != c.status || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: status %d, %q, %q; want %d and one line with %q", c.args, status, stdout, stderr, c.status, c.want)
		}
	}
}

// What is wrong in a configuration file is bad usage, whichever command reads it, and so is a file that is not there.
func TestWrongConfigurations(t *testing.T) {
	t.Setenv("SOFTVPI_STATE", t.TempDir())
	t.Setenv("IBDIAG_CONFIG_PATH", t.TempDir())
	file := filepath.Join(t.TempDir(), "wrong")
	none := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		text string
		args []string
		want string
	}{
		{`{"fabric": {"netlist": "` + none + `"}, "adapters": [{"link": "cable"}]}`, []string{"up", "--config", file},
			"fabric.netlist: open " + none},
		{`{"fabric": {"netlist": "` + file + `"}, "adapters": [{"link": "cable"}]}`, []string{"up", "--config", file},
			"fabric.netlist: " + file + ": netlist line 1: "},
		{`{"fabric": {"connect": "udp://127.0.0.1", "key": "` + none + `"}, "adapters": [{"link": "cable"}]}`,
			[]string{"up", "--config", file}, "fabric.key: open " + none},
		{`{"subnet_manager": {"partitions": "` + none + `"}, "adapters": [{"link": "cable"}]}`, []string{"up", "--config", file},
			"subnet_manager.partitions: open " + none},
		{`{"subnet_manager": {"dir": "` + none + `"}, "adapters": [{"link": "cable"}]}`, []string{"up", "--config", file},
			"subnet_manager.dir: stat " + none},
		{"", []string{"up", "--config", none}, "configuration file: open " + none},
		{"", []string{"fabric", "run", none}, "netlist: open " + none},
		{"", []string{"opensm", "-F", none}, "options file (-F): open " + none},
		{"", []string{"counters", "watch", "-cf", none}, "-cf: open " + none},
		{"", []string{"smpquery", "-z", none, "nodeinfo", "1"}, none},
		{"", []string{"ibnetdiscover", "--node-name-map", none}, "--node-name-map: open " + none},
		{"", []string{"ibnetdiscover", "--load-cache", none}, "loading cached fabric failed: open " + none},
		{"", []string{"ibcacheedit", none, file}, "loading cached fabric failed: open " + none},
		{`{"nonsense": 1}`, []string{"up", "--config", file}, `unknown field "nonsense"; allowed: socket, state, `},
		{`{"subnet_manager": {"x": 1}, "adapters": [{"link": "cable"}]}`, []string{"up", "--config", file}, `unknown field "x"; allowed: `},
		{`{"web": 3}`, []string{"up", "--config", file}, "web is a number; allowed: a string"},
		{`{"adapters": {}}`, []string{"up", "--config", file}, "adapters is an object; allowed: an array"},
		{`[]`, []string{"up", "--config", file}, "the configuration is an array; allowed: an object"},
		{`{"readers": "all"}`, []string{"up", "--config", file}, `readers is "all"; allowed: owner, group, everyone`},
		{`{`, []string{"up", "--config", file}, "not a configuration: unexpected EOF"},
		{`{} {}`, []string{"up", "--config", file}, "something follows the configuration object; allowed: one JSON object"},
		{"x\n", []string{"fabric", "run", file}, "netlist line 1: "},
		{"nonsense 1\n", []string{"opensm", "-F", file}, "line 1: nonsense"},
		{"x=\n", []string{"opensm", "-P", file}, "partition configuration (-P): "},
		{"timeout=abc\n", []string{"smpquery", "-z", file, "nodeinfo", "1"}, `timeout is "abc"; allowed: `},
		{"zzz\n", []string{"ibnetdiscover", "--node-name-map", file}, `--node-name-map: ` + file +
			`, line 1: "zzz" is not a name; allowed: `},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := call(t, "softvpi", c.args...)
		if status != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, file) &&
			!strings.Contains(stderr, none) && !strings.Contains(stderr, "readers") {
			t.Errorf("%q with %q: status %d, %q; want 2 and one line with %q", c.args, c.text, status, stderr, c.want)
		}
	}
}

func TestToolsRunByTheirName(t *testing.T) {
	for _, name := range toolNames() {
		status, stdout, stderr := call(t, name, "-h")
		if status != 0 || !strings.Contains(stdout, "usage: "+name) || stderr != "" {
			t.Errorf("%s -h: status %d, %q, %q", name, status, stdout, stderr)
		}
		again, same, _ := call(t, "softvpi", name, "-h")
		if again != 0 || same != stdout {
			t.Errorf("softvpi %s -h differs from %s -h", name, name)
		}
	}
	if got := calledAs([]string{filepath.Join("x", "nd_rping.exe")}); got != "nd_rping" {
		t.Errorf("called as %q", got)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"up", "--help"}, {"version"}} {
		status, stdout, stderr := call(t, "softvpi", args...)
		if status != 0 || stdout == "" || stderr != "" {
			t.Errorf("%q: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
}

func TestInstallMakesLinksAndLeavesForeignFilesAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows may refuse symbolic links to ordinary users")
	}
	dir := t.TempDir()
	target := filepath.Join(dir, "softvpi")
	foreign := filepath.Join(dir, "bin", "nd_rping")
	if err := os.WriteFile(target, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(foreign), 0o755); err != nil {
		t.Fatal(err)
	}
	names := []string{"nd_send_bw", "nd_rping"}
	for range 2 { // a second install replaces the links of the first
		if n, err := installLinks(filepath.Dir(foreign), target, names); n != 2 || err != nil {
			t.Fatalf("%d links, %v", n, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "bin", "nd_send_bw")); err != nil || to != target {
		t.Errorf("link to %q, %v", to, err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	n, err := installLinks(filepath.Dir(foreign), target, names)
	if n != 1 || err == nil || !strings.Contains(err.Error(), foreign) {
		t.Errorf("%d links, %v; want 1 and an error that names %s", n, err, foreign)
	}
	if b, _ := os.ReadFile(foreign); string(b) != "mine" {
		t.Error("a foreign file was overwritten")
	}
	for _, other := range []string{"/bin/true", filepath.Join(dir, "softvpi-old")} {
		os.Remove(foreign)
		if err := os.Symlink(other, foreign); err != nil {
			t.Fatal(err)
		}
		if _, err := installLinks(filepath.Dir(foreign), target, names); err == nil {
			t.Errorf("a link to %s was overwritten", other)
		}
	}
}

func TestDemoTakesFreeAddresses(t *testing.T) {
	a, b, err := demoAddresses()
	if err != nil || a == b || !a.IsLoopback() || !b.IsLoopback() {
		t.Errorf("%v, %v, %v", a, b, err)
	}
}
