package scale

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// worker is the test's handle of a program in a process of its own.
type worker struct {
	cmd  *exec.Cmd
	pipe *os.File
	in   *json.Encoder
	out  *json.Decoder
	mu   sync.Mutex // held during a call
	dead bool
}

// request and answer are exchanged over the pipes, as one JSON value each.
type request struct {
	Method string
	Args   json.RawMessage
}

type answer struct {
	Result json.RawMessage `json:",omitempty"`
	Error  string          `json:",omitempty"`
}

// spawn starts a program, which is ended with the test at the latest.
func spawn(t testing.TB) *worker {
	t.Helper()
	w, err := start(t)
	check(t, err)
	return w
}

// start is spawn, for goroutines other than the test's own.
func start(t testing.TB) (*worker, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), programVariable+"=1")
	cmd.Stderr = os.Stderr
	in, inEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		inEnd.Close()
		return nil, err
	}
	cmd.Stdin = in
	if err := cmd.Start(); err != nil {
		inEnd.Close()
		return nil, err
	}
	w := &worker{cmd: cmd, pipe: inEnd, in: json.NewEncoder(inEnd), out: json.NewDecoder(out)}
	t.Cleanup(func() { w.end(t) })
	return w, nil
}

// try calls a method of the program.
func (w *worker) try(method string, args, result any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, err := json.Marshal(args)
	if err != nil {
		return err
	}
	if err := w.in.Encode(request{method, b}); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var a answer
	if err := w.out.Decode(&a); err != nil {
		return fmt.Errorf("%s: the program is gone: %w", method, err)
	}
	if a.Error != "" {
		return fmt.Errorf("%s: %s", method, a.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(a.Result, result)
}

// call is try, for calls that must succeed.
func (w *worker) call(t testing.TB, method string, args, result any) {
	t.Helper()
	check(t, w.try(method, args, result))
}

// kill ends the program as a crash would.
func (w *worker) kill(t testing.TB) {
	w.dead = true
	if err := w.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = w.cmd.Wait() // the error is that it was killed
	w.pipe.Close()
	w.forget()
}

// forget releases memory: a test may run a thousand programs.
func (w *worker) forget() { w.cmd, w.pipe, w.in, w.out = nil, nil, nil, nil }

// end closes the program's standard input, which makes it finish.
func (w *worker) end(t testing.TB) {
	if w.dead {
		return
	}
	w.dead = true
	w.pipe.Close()
	process := w.cmd.Process
	late := time.AfterFunc(await.Limit, func() { _ = process.Kill() })
	defer late.Stop()
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("program: %v", err)
	}
	w.forget()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// goOn returns a file for askArgs.While, and what removes it.
func goOn(t testing.TB) (file string, enough func()) {
	t.Helper()
	file = filepath.Join(tempDir(t), "on")
	check(t, os.WriteFile(file, nil, 0o600))
	return file, func() { _ = os.Remove(file) }
}

// tempDir returns a directory whose name is short enough for a socket's.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vpi")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
