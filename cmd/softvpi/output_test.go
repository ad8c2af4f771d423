package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// A command whose output cannot be written fails with a one-line error.
func TestOutputThatCannotBeWritten(t *testing.T) {
	beside(t)
	t.Chdir(t.TempDir())
	lines := []string{"--help", "version", "status", "status --json", "link show", "web", "tools list", "reg query HKLM /s", "reg query /?",
		"counters list", "counters -h",
		"events -h", "fabric generate star --hosts 2", "ndadapterinfo", "ndinstall -l", "vstat", "mst status", "mlxconfig query",
		"mlx5cmd -Stat", "mlxtool show ports"}
	for _, name := range toolNames() {
		lines = append(lines, name+" -h")
	}
	for _, line := range lines {
		var errs bytes.Buffer
		status := run(context.Background(), tool.Env{Name: "softvpi", Args: words(line), Stdin: strings.NewReader(""), Stdout: full{},
			Stderr: &errs})
		said := errs.String()
		if line == "web" {
			_, said, _ = strings.Cut(said, "\n") // how long the link is valid
		}
		if status != tool.Failure || strings.Count(said, "\n") != 1 || !strings.Contains(said, syscall.ENOSPC.Error()) {
			t.Errorf("%s: status %d, %q", line, status, errs.String())
		}
	}
}

// It is not a failure if the reader wants no more, as head does.
func TestReaderThatWantsNoMore(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(syscall.EPIPE)
	var errs bytes.Buffer
	status := run(context.Background(), tool.Env{Name: "softvpi", Args: []string{"tools", "list"}, Stdin: strings.NewReader(""), Stdout: w,
		Stderr: &errs})
	if status != tool.Success || errs.Len() > 0 {
		t.Errorf("status %d, %q", status, errs.String())
	}
}

// A service keeps running after the reader of its output is gone, and shuts down cleanly with its terminal.
func TestServicesOutliveTheirReaders(t *testing.T) {
	systemtest.Mark(t)
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals")
	}
	hangUp := syscall.SIGHUP
	if signal.Ignored(hangUp) { // as in processes started by nohup, which is correct
		hangUp = syscall.SIGTERM
	}
	p := newPlace(t)
	file := filepath.Join(p.dir, "net")
	_, netlist, _ := call(t, "softvpi", "fabric", "generate", "star", "--hosts", "2")
	if err := os.WriteFile(file, []byte(netlist), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"up", "--skip-self-check", "--adapter", "Ethernet 1=" + p.first},
		{"fabric", "run", file, "--name", filepath.Base(p.dir)},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
		defer cancel()
		c := exec.CommandContext(ctx, os.Args[0], args...)
		c.Env = p.env
		var errs bytes.Buffer
		c.Stderr = &errs
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		text, b := "", make([]byte, 1<<10)
		for !strings.Contains(text, "listening") {
			n, err := out.Read(b)
			if err != nil {
				t.Fatalf("%q: %v, %s%s", args, err, text, errs.String())
			}
			text += string(b[:n])
		}
		out.Close()
		if err := c.Process.Signal(hangUp); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil || errs.Len() > 0 {
			t.Errorf("%q: %v, %s", args, err, errs.String())
		}
	}
	again := p.spawn(t, "up", "--skip-self-check", "--adapter", "Ethernet 1="+p.first)
	again.until(t, "listening")
	if out := again.said(); strings.Contains(out, "did not stop cleanly") {
		t.Error(out)
	}
}
