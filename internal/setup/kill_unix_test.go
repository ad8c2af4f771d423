//go:build unix

package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

const (
	childVariable = "SETUP_TEST_CHILD" // a job as JSON: the process does it
	stepVariable  = "SETUP_TEST_STEP"  // and kills itself at this step
)

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		step, _ := strconv.Atoi(os.Getenv(stepVariable))
		if err := child(text, step); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// job is what a process does.
type job struct {
	Prefix  string
	Install string // version; empty: remove
	Moves   []Move
	Purge   []string
}

// child does a job as setup does, and kills itself, as kill -9 would, at a step counted from 1.
func child(text string, at int) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	t, err := Open(j.Prefix)
	if err != nil {
		return err
	}
	n := 0
	t.Step = func(string) {
		if n++; n == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if _, err := t.Recover(); err != nil {
		return err
	}
	if j.Install == "" {
		_, err = t.Remove(j.Purge)
	} else {
		_, err = t.Install(j.Install, itemsOf(j.Install), j.Moves)
	}
	return err
}

// itemsOf returns the contents of versions 1 and 2: each has a file and a directory that the other has not.
func itemsOf(version string) []Item {
	return []Item{
		{Path: "bin/softvpi", Content: []byte("program " + version), Mode: 0o755},
		{Path: "bin/vstat", Link: "softvpi"},
		{Path: "share/of" + version + "/page", Content: []byte(version), Mode: 0o644},
		{Path: "lib/softvpi/lib.so", Content: []byte("library " + version), Mode: 0o644},
	}
}

// run does a job in a process of its own, and reports whether it was killed.
func run(t *testing.T, j job, step int) (killed bool) {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVariable+"="+string(text), stepVariable+"="+strconv.Itoa(step))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() && w.Signal() == syscall.SIGKILL {
			return true
		}
	}
	if err != nil {
		t.Fatalf("%s, step %d: %v\n%s", text, step, err, out)
	}
	return false
}

// tree returns the files below a directory with what they contain, and the directories.
func tree(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		in, _ := filepath.Rel(dir, p)
		switch {
		case d.IsDir():
			in += "/"
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			in += " -> " + to
		default:
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			in += ": " + string(b)
		}
		list = append(list, in)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestKilledAtEveryStep: wherever a process is killed, by SIGKILL, that installs, upgrades, downgrades or removes, the program is the one
// before, the one after or, only where one of the two is none, not there; and the next run of any kind ends in the same tree as if
// nothing had been killed.
func TestKilledAtEveryStep(t *testing.T) {
	systemtest.Mark(t)
	for _, c := range []struct {
		name        string
		before, job string // versions; "" is none
	}{
		{"install", "", "1"}, {"upgrade", "1", "2"}, {"downgrade", "2", "1"}, {"remove", "2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			prepare := func(name string) job {
				root := filepath.Join(dir, name)
				j := job{Prefix: filepath.Join(root, "prefix")}
				write(t, filepath.Join(j.Prefix, "share", "of others"), "theirs")
				write(t, filepath.Join(root, "driver.json"), "{}")
				if c.before != "" {
					run(t, job{Prefix: j.Prefix, Install: c.before}, 0)
				}
				j.Install = c.job
				if c.job == "" {
					j.Purge = []string{filepath.Join(root, "driver.json")}
				} else {
					j.Moves = []Move{{filepath.Join(root, "driver.json"), filepath.Join(root, "driver.json.before-setup")}}
				}
				return j
			}
			run(t, prepare("whole"), 0)
			want := tree(t, filepath.Join(dir, "whole"))
			programs := []string{"program " + c.before, "program " + c.job}
			for step := 1; ; step++ {
				name := "killed" + strconv.Itoa(step)
				j := prepare(name)
				if !run(t, j, step) {
					if step < 12 {
						t.Errorf("only %d steps", step)
					}
					break
				}
				b, err := os.ReadFile(filepath.Join(j.Prefix, "bin", "softvpi"))
				if err != nil && c.before != "" && c.job != "" || err == nil && !slices.Contains(programs, string(b)) {
					t.Errorf("step %d: the program is %q, %v", step, b, err)
				}
				if run(t, j, 0) {
					t.Fatal("killed without being asked for")
				}
				if got := tree(t, filepath.Join(dir, name)); !slices.Equal(got, want) {
					t.Errorf("step %d: after the next run\n%s\nwant\n%s", step, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
