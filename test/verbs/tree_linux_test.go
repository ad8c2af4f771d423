package verbs

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// inPIDSpace is a command in a PID namespace of its own, where that can be made.
func inPIDSpace(t *testing.T, args ...string) []string {
	t.Helper()
	space := []string{"unshare", "--pid", "--fork", "--mount-proc"}
	if out, err := exec.Command(space[0], append(space[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no PID namespaces: %v %s", err, out)
	}
	return append(space, args...)
}

// What the preloaded library makes appear in /sys is in a directory of each program: that of a program that was killed
// goes when the next one starts, and that of a program that runs stays, also if the next one is in another PID namespace.
func TestTreesOfPrograms(t *testing.T) {
	b := newBench(t)
	b.need("tail", "ls")
	dir := t.TempDir()
	env := []string{"XDG_RUNTIME_DIR=" + dir}
	trees := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "softvpi-tree-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	running := b.start(env, "tail", "-f", "/sys/class/infiniband/softvpi0/node_type")
	waitFor(t, running, "CA")
	if n := trees(); n != 1 {
		t.Fatalf("%d trees of one program", n)
	}
	b.run(env, "ls", "/sys/class/infiniband")
	if n := trees(); n != 1 {
		t.Errorf("beside a program that runs: %d trees, want its own", n)
	}
	t.Run("another PID namespace", func(t *testing.T) {
		b.under(t).run(env, inPIDSpace(t, "ls", "/sys/class/infiniband")...)
		if n := trees(); n != 1 {
			t.Errorf("%d trees, want that of the program that runs outside", n)
		}
	})
	running.stop()
	b.run(env, "ls", "/sys/class/infiniband")
	if n := trees(); n != 0 {
		t.Errorf("after a program was killed and the next has run: %d trees", n)
	}
}
