package processors

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// allowed are the processors on which the process might run before any of its threads was bound: its main thread may be.
var allowed = sync.OnceValue(func() (set unix.CPUSet) {
	if unix.SchedGetaffinity(0, &set) != nil {
		for n := range runtime.NumCPU() {
			set.Set(n)
		}
	}
	return set
})

// List returns the processors, in the order of their numbers, one at least. It must not be modified.
func List() []Processor { return list() }

var list = sync.OnceValue(func() []Processor {
	set := allowed()
	var numbers []int
	for n := range len(set) * 64 {
		if set.IsSet(n) {
			numbers = append(numbers, n)
		}
	}
	return onNodes(numbers, nodes("/sys/devices/system/node"))
})

// nodes returns the processors of each NUMA node.
func nodes(root string) map[int][]int {
	all := map[int][]int{}
	files, _ := filepath.Glob(filepath.Join(root, "node[0-9]*", "cpulist"))
	for _, f := range files {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(f)), "node"))
		b, unread := os.ReadFile(f)
		if err == nil && unread == nil {
			all[n] = parseList(string(b))
		}
	}
	return all
}

// Bind binds the calling thread, which must be locked to its goroutine, to processors; with none it may run on all again on
// which the process may. The error is the system's: there is no such processor, or it may not.
func Bind(numbers []int) error {
	set := allowed()
	if len(numbers) > 0 {
		set.Zero()
	}
	for _, n := range numbers {
		set.Set(n)
	}
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, &set))
}
