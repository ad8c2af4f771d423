package lastwords

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// open begins a record as the next driver would.
func open(t *testing.T, state string, died bool) (*Recorder, *Remains) {
	t.Helper()
	r, left, err := Open(state, died, false)
	if err != nil {
		t.Fatal(err)
	}
	return r, left
}

// TestRemains: the next driver finds the latest commands in order, with the one that was being carried out, and the traceback; after
// a clean stop it finds nothing.
func TestRemains(t *testing.T) {
	state, at := t.TempDir(), time.Unix(1700000000, 5)
	r, left := open(t, state, false)
	if left != nil {
		t.Errorf("a first driver finds %+v", left)
	}
	for i := range Kept + 10 {
		c := Command{Began: at, Opcode: uint16(i), Program: "perftest", PID: 7, Adapter: -1}
		seq := r.Began(c)
		if c.Took, c.Failure, c.Adapter = time.Duration(i), uint32(i%3), 1; i != Kept+9 {
			r.Ended(seq, c)
		}
	}
	if err := os.WriteFile(filepath.Join(state, tracebackFile), []byte("\nSIGQUIT: quit\ngoroutine 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, left := open(t, state, true)
	if left == nil || len(left.Commands) != Kept || left.Cause() != "SIGQUIT: quit" || left.Reason() != "SIGQUIT" || left.Time.IsZero() {
		t.Fatalf("the next driver finds %+v", left)
	}
	for i, c := range left.Commands {
		n := i + 10
		want := Command{Began: at, Took: time.Duration(n), Opcode: uint16(n), Failure: uint32(n % 3), Adapter: 1, PID: 7, Program: "perftest"}
		if n == Kept+9 {
			want.Took, want.Failure, want.Adapter, want.Running = 0, 0, -1, true
		}
		if !c.Began.Equal(at) {
			t.Fatalf("command %d began at %v", i, c.Began)
		}
		if c.Began = at; c != want {
			t.Fatalf("command %d is %+v, want %+v", i, c, want)
		}
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, left := open(t, state, true); len(left.Commands) != 0 || len(left.Traceback) != 0 || left.Reason() != "killed" {
		t.Errorf("after a clean stop there is %+v", left)
	}
}

// TestRecordOfEndedCommand: a command that ends after so many others that its place is another's does not overwrite it.
func TestRecordOfEndedCommand(t *testing.T) {
	state := t.TempDir()
	r, _ := open(t, state, false)
	old := r.Began(Command{Program: "old"})
	for range Kept {
		r.Began(Command{Program: "new"})
	}
	r.Ended(old, Command{Program: "old"})
	_, left := open(t, state, true)
	for _, c := range left.Commands {
		if c.Program != "new" {
			t.Errorf("%+v is there", c)
		}
	}
}

// TestRecordsAreRead: what was written is read, whatever it was.
func TestRecordsAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Command{
			Began: time.Unix(0, rapid.Int64().Draw(t, "began")), Took: time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "took")),
			Opcode: rapid.Uint16().Draw(t, "opcode"), Failure: rapid.Uint32().Draw(t, "failure"), Adapter: rapid.IntRange(-1, 255).Draw(t, "adapter"),
			PID: rapid.IntRange(0, 1<<31).Draw(t, "pid"), Program: rapid.StringMatching(`[a-z]{0,28}`).Draw(t, "program"),
		}
		b := encode(9, &want)
		seq, got := decode(b[:])
		if seq != 9 || !got.Began.Equal(want.Began) {
			t.Fatalf("%d, %v", seq, got.Began)
		}
		if got.Began = want.Began; got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

// FuzzCommands: no file makes the reader fail.
func FuzzCommands(f *testing.F) {
	b := encode(1, &Command{Program: "p"})
	f.Add([]byte(nil))
	f.Add(append(append([]byte(magic), make([]byte, headerSize-len(magic))...), b[:]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(Commands(b)); n > Kept {
			t.Errorf("%d commands", n)
		}
		r := Remains{Traceback: b}
		if c := r.Cause(); c == "" || len(c) > 200 || strings.Contains(c, "\n") {
			t.Errorf("cause %q", c)
		}
	})
}

// BenchmarkCommand is what recording costs a command.
func BenchmarkCommand(b *testing.B) {
	r, _, err := Open(b.TempDir(), false, false)
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		seq := r.Began(Command{Program: "bench", PID: i})
		r.Ended(seq, Command{Program: "bench", PID: i, Took: 1})
	}
	if r.seq.Load() != uint64(b.N) {
		b.Error(fmt.Sprint(r.seq.Load()))
	}
}
