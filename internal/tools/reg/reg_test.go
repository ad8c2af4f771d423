package reg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// words splits a command line at the blanks that are outside quotes.
func words(line string) (out []string) {
	var word strings.Builder
	quoted, any := false, false
	for _, c := range line {
		switch {
		case c == '"':
			quoted, any = !quoted, true
		case c == ' ' && !quoted:
			if any || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(c)
		}
	}
	if any || word.Len() > 0 {
		out = append(out, word.String())
	}
	return out
}

// Each line of a transcript in testdata is a call of the tool. Its output, standard error included, and its exit
// status follow. $DIR stands for the test's directory.
func TestTranscripts(t *testing.T) {
	t.Setenv("SOFTVPI_SOCKET", filepath.Join(t.TempDir(), "none"))
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		dir := t.TempDir()
		prepare(t, dir)
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "reg":
				return runLine(dir, d.Input)
			case "file": // the contents of a file
				b, err := os.ReadFile(filepath.Join(dir, d.CmdArgs[0].Key))
				if err != nil {
					t.Fatal(err)
				}
				return strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(string(b), "\xff\xfe"), "\x00", ""), "\r\n", "\n")
			case "write":
				if err := os.WriteFile(filepath.Join(dir, d.CmdArgs[0].Key), []byte(d.Input+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return ""
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// prepare makes the registry of a driver that has run with two adapters.
func prepare(t *testing.T, dir string) {
	r, err := registry.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.AddAdapter("Ethernet 1", catalogue.MLX5); err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddAdapter("Ethernet 2", catalogue.MLX4); err != nil {
		t.Fatal(err)
	}
}

// runLine runs the call in a line of a transcript. What follows < is typed at its prompt.
func runLine(dir, line string) string {
	line, typed, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(line, "\n", " "), "$DIR", dir), " < ")
	var out strings.Builder
	env := tool.Env{
		Name: "reg", Args: append(words(line), "--state", dir), Stdout: &out, Stderr: &out,
		Stdin: strings.NewReader(strings.ReplaceAll(typed, `\n`, "\n")),
	}
	status := Main(context.Background(), env)
	text := strings.ReplaceAll(out.String(), dir, "$DIR")
	return fmt.Sprintf("%s[%d]\n", text, status)
}

// TestReading_MakesNothing: what only reads or deletes leaves a state directory without a registry as it is; add makes both.
func TestReading_MakesNothing(t *testing.T) {
	const key = `HKLM\SYSTEM\CurrentControlSet\Services\mlx5`
	dir := filepath.Join(t.TempDir(), "state")
	for _, line := range []string{`query ` + key, `delete ` + key + ` /f`, `export ` + key + ` ` + filepath.Join(t.TempDir(), "out.reg")} {
		if got, want := runLine(dir, line), "ERROR: "+notFound+"\n[1]\n"; got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s has made the state directory: %v", line, err)
		}
	}
	if got := runLine(dir, `query HKLM\SYSTEM\CurrentControlSet\Services`); !strings.HasSuffix(got, "[0]\n") {
		t.Errorf("what every registry has: %q", got)
	}
	if got := runLine(dir, `add `+key+` /v MaxNumRssCpus /t REG_SZ /d 4 /f --unchecked`); !strings.HasSuffix(got, "[0]\n") {
		t.Errorf("add: %q", got)
	}
	if got := runLine(dir, `query `+key); !strings.HasSuffix(got, "[0]\n") {
		t.Errorf("query after add: %q", got)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"/?"}, {"query", "/?"}, {"ADD", "-?"}} {
		var out strings.Builder
		if status := Main(context.Background(), tool.Env{Args: args, Stdout: &out, Stderr: &out,
			Stdin: strings.NewReader("")}); status != 0 || out.String() != synopsis {
			t.Errorf("%v: status %d, %q; want 0 and the synopsis", args, status, out.String())
		}
	}
}
