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

// TestCompletion_Shells: each shell that is installed completes with its script, names of adapters with spaces and values behind "="
// included, and names of files where the program has nothing to offer.
func TestCompletion_Shells(t *testing.T) {
	systemtest.Mark(t)
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
	if err := os.WriteFile(filepath.Join(dir, "keys.reg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range shells {
		t.Run(s.name, func(t *testing.T) {
			program, err := exec.LookPath(s.name)
			if err != nil {
				t.Skipf("%s is not installed: test/shells.sh installs it", s.name)
			}
			_, script, _ := call(t, "softvpi", "completion", s.name)
			for _, c := range []struct {
				words []string
				want  []string
			}{
				{[]string{"softvpi", "link", "s"}, []string{"set", "show"}},
				{[]string{"/usr/bin/softvpi", "adapter", "enable", "E"}, s.quoted},
				{[]string{"softvpi", "up", "--socket=x"}, nil},
				{[]string{"softvpi", "status", "--so"}, []string{"--socket="}},
				{[]string{"vstat", "--js"}, []string{"--json"}},
				{[]string{"softvpi", "reg", "import", "key"}, s.file},
			} {
				cmd := exec.Command(program, s.runs(script, c.words)...)
				cmd.Dir = dir
				cmd.Env = append(append(slices.Clone(os.Environ()), p.env...), "PATH="+dir+":/usr/bin:/bin", "HOME="+dir, asProgram+"=1")
				out, err := cmd.CombinedOutput()
				got := strings.Split(strings.TrimSpace(string(out)), "\n")
				if len(got) == 1 && got[0] == "" {
					got = nil
				}
				if err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%q: %v, %q, want %q", c.words, err, got, c.want)
				}
			}
		})
	}
}

// shells says how each is asked what it offers for words, of which the last is begun, one offer a line. bash and zsh are told of the words
// as they tell a script's function, and zsh's own ways to offer something print it; fish answers by itself.
var shells = []struct {
	name         string
	quoted, file []string // what is offered for adapters, and for the beginning of a file's name
	runs         func(script string, words []string) (arguments []string)
}{
	{"bash", []string{`Ethernet\ 1`, `Ethernet\ 2`}, nil, // bash looks for files itself
		func(script string, words []string) []string {
			return []string{"--norc", "-c", script + "COMP_WORDS=(" + strings.ReplaceAll(quotedAll(words), "=", "' '=' '") +
				"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _softvpi; printf '%s\\n' \"${COMPREPLY[@]}\""}
		}},
	{"zsh", []string{"Ethernet 1", "Ethernet 2"}, []string{"files"},
		func(script string, words []string) []string {
			return []string{"-f", "-c", "compdef() {}; compset() {}; _files() { [[ $words[CURRENT] != key* ]] || print files; }\n" +
				"compadd() { local -a all=(\"${(@P)@[-1]}\"); (( ! $#all )) || print -l -- $all; }\n" +
				script + "words=(" + quotedAll(words) + "); CURRENT=$#words; _softvpi"}
		}},
	{"fish", []string{"Ethernet 1", "Ethernet 2"}, []string{"keys.reg"},
		func(script string, words []string) []string {
			return []string{"--no-config", "-c", script + "complete -C '" + strings.Join(words, " ") + "'"}
		}},
}

func quotedAll(words []string) string { return "'" + strings.Join(words, "' '") + "'" }
