package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/completion"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestCompletion_Words: what is offered is what the command line's parser would take next.
func TestCompletion_Words(t *testing.T) {
	t.Setenv("SOFTVPI_SOCKET", filepath.Join(t.TempDir(), "none.sock"))
	for _, c := range []struct {
		line string // the last word is begun
		want string // all of it
	}{
		{"softvpi ad", "adapter"},
		{"softvpi nd_s", "nd_send_bw nd_send_lat"},
		{"softvpi adapter ", "disable enable oid restart sleep wake"},
		{"softvpi adapter e", "enable"},
		{"softvpi bench-", ""},
		{"softvpi status --j", "--json"},
		{"softvpi link set --so", "--socket="},
		{"softvpi link set x", ""},
		{"vstat --h", "--hca"},
		{"softvpi vstat --h", "--hca"},
		{"ibdump --du", "--duration"},
		{"softvpi counters -s", "-sc -si"},
		{"softvpi ps -c Get-NetQosT", "Get-NetQosTrafficClass"},
		{"softvpi ps --command=Where-", "--command=Where-Object"},
		{"softvpi nothing ", ""},
		{"softvpi", ""},
	} {
		if got := strings.Join(fitting(t.Context(), strings.Split(c.line, " ")), " "); got != c.want {
			t.Errorf("%q is offered %q, want %q", c.line, got, c.want)
		}
	}
}

// TestCompletion_Scripts: there is one for each shell, for every tool; another shell is refused.
func TestCompletion_Scripts(t *testing.T) {
	for _, shell := range completion.Shells {
		status, out, stderr := call(t, "softvpi", "completion", shell)
		if status != 0 || !strings.Contains(out, "nd_send_bw") || !strings.Contains(out, "softvpi complete -- ") {
			t.Errorf("%s: status %d, %q, %q", shell, status, out, stderr)
		}
	}
	if status, out, stderr := call(t, "softvpi", "completion", "tcsh"); status != 2 || out != "" || !strings.Contains(stderr, "bash, zsh, fish") {
		t.Errorf("tcsh: status %d, %q, %q", status, out, stderr)
	}
}

// TestCompletion_Bash: bash completes with the script, names of adapters with spaces and values behind "=" included.
func TestCompletion_Bash(t *testing.T) {
	systemtest.Mark(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	p := newPlace(t)
	p.up(t)
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "softvpi")); err != nil {
		t.Fatal(err)
	}
	_, script, _ := call(t, "softvpi", "completion", "bash")
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{[]string{"softvpi", "link", "s"}, []string{"set", "show"}},
		{[]string{"/usr/bin/softvpi", "adapter", "enable", "E"}, []string{`Ethernet\ 1`, `Ethernet\ 2`}},
		{[]string{"softvpi", "up", "--socket", "=", "x"}, nil},
		{[]string{"softvpi", "status", "--so"}, []string{"--socket="}},
		{[]string{"vstat", "--js"}, []string{"--json"}},
	} {
		var words []string
		for _, w := range c.words {
			words = append(words, "'"+w+"'")
		}
		cmd := exec.Command(bash, "--norc", "-c", script+"COMP_WORDS=("+strings.Join(words, " ")+
			"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _softvpi; printf '%s\\n' \"${COMPREPLY[@]}\"")
		cmd.Env = append(append(slices.Clone(os.Environ()), p.env...), "PATH="+dir+":/usr/bin:/bin", asProgram+"=1")
		out, err := cmd.CombinedOutput()
		got := strings.Split(strings.TrimSpace(string(out)), "\n")
		if len(got) == 1 && got[0] == "" {
			got = nil
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, %q, want %q", c.words, err, got, c.want)
		}
	}
}
