package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// TestStandardInput: what reads the standard input ends when the user stops it, though nothing comes and no end, and reads
// what comes otherwise.
func TestStandardInput(t *testing.T) {
	t.Setenv("SOFTVPI_STATE", t.TempDir())
	t.Setenv(paths.SocketVariable, filepath.Join(t.TempDir(), "none.sock"))
	var errs bytes.Buffer
	key := `HKLM\SYSTEM\CurrentControlSet\Services\mlx5\x`
	text := "REGEDIT4\r\n\r\n[HKEY_LOCAL_MACHINE" + strings.TrimPrefix(key, "HKLM") + "]\r\n\"a\"=dword:1\r\n"
	env := tool.Env{Name: "softvpi", Args: []string{"reg", "import", "-", "--unchecked"}, Stdin: strings.NewReader(text),
		Stdout: io.Discard, Stderr: &errs}
	if status := run(t.Context(), env); status != 0 {
		t.Fatalf("import: status %d, %s", status, &errs)
	}
	for _, args := range [][]string{{"reg", "import", "-"}, {"reg", "delete", key}, {"fabric", "run", "-"}} {
		ctx, stop := context.WithCancel(t.Context())
		silent, writer := io.Pipe()
		env := tool.Env{Name: "softvpi", Args: args, Stdin: awaited{silent, stop}, Stdout: io.Discard, Stderr: &errs}
		errs.Reset()
		if status := run(ctx, env); status != 1 || !strings.Contains(errs.String(), "stopped") {
			t.Errorf("%q: status %d, %q; want 1 and that it was stopped", args, status, &errs)
		}
		writer.Close()
	}
	if status, out, _ := call(t, "softvpi", "reg", "query", key); status != 0 || !strings.Contains(out, "0x1") {
		t.Errorf("the key that was not deleted: status %d, %q", status, out)
	}
}

// awaited is an input whose reader is stopped as soon as it waits.
type awaited struct {
	io.Reader
	stop func()
}

func (a awaited) Read(b []byte) (int, error) {
	a.stop()
	return a.Reader.Read(b)
}
