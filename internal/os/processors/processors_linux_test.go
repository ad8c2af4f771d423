package processors

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestParseList(t *testing.T) {
	for text, want := range map[string][]int{
		"0-3,8\n": {0, 1, 2, 3, 8}, "5": {5}, "": nil, "1,x": {1}, "3-1": nil, "0-99999999": nil, "2-": nil,
	} {
		if d := cmp.Diff(want, parseList(text)); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

// TestNodes: a processor is on the node whose list has it, and on node 0 where none does.
func TestNodes(t *testing.T) {
	root := t.TempDir()
	for name, list := range map[string]string{"node0": "0-1", "node3": "2-3\n", "has_cpu": "0,3"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name, "cpulist"), []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []Processor{{1, 0}, {3, 3}, {9, 0}}
	if d := cmp.Diff(want, onNodes([]int{1, 3, 9}, nodes(root))); d != "" {
		t.Error(d)
	}
}

// TestBind: a thread that is bound runs on its processor alone, and on all of the process's again afterwards.
func TestBind(t *testing.T) {
	all := List()
	if len(all) != runtime.NumCPU() {
		t.Fatalf("%d processors, want %d", len(all), runtime.NumCPU())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and the thread ends with the goroutine
		last := all[len(all)-1].Number
		may := func() (list []int) {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(0, &set); err != nil {
				t.Error(err)
			}
			for n := range 64 * len(set) {
				if set.IsSet(n) {
					list = append(list, n)
				}
			}
			return list
		}
		if err := Bind([]int{last}); err != nil || !cmp.Equal(may(), []int{last}) {
			t.Errorf("%v, runs on %v, want %d", err, may(), last)
		}
		if err := Bind([]int{1 << 9}); err == nil {
			t.Error("it is bound to a processor that is not there")
		}
		if err := Bind(nil); err != nil || len(may()) != len(all) {
			t.Errorf("%v, runs on %v, want %v", err, may(), all)
		}
	}()
	<-done
}
