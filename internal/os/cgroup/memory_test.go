package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestAvailable: the least of the machine's memory and the limits of the process's own control group and of those above
// it counts, in both versions, in containers, and where nothing can be seen. Limits of other groups do not.
func TestAvailable(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		tree  string
		bytes uint64
		from  string
	}{
		{"bare", 8192 * mib, "/proc/meminfo"},
		{"v2", 300 * mib, "/sys/fs/cgroup/user.slice/job/memory.max"},
		{"v2-above", 512 * mib, "/sys/fs/cgroup/user.slice/memory.max"},
		{"v2-high", 200 * mib, "/sys/fs/cgroup/job/memory.high"},
		{"v2-none", 8192 * mib, "/proc/meminfo"},
		{"v2-more-than-machine", 8192 * mib, "/proc/meminfo"},
		{"v2-container", 300 * mib, "/sys/fs/cgroup/memory.max"},
		{"v2-outside", 300 * mib, "/sys/fs/cgroup/memory.max"},
		{"v1", 300 * mib, "/sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes"},
		{"v1-above", 256 * mib, "/sys/fs/cgroup/memory/a b/job/memory.stat"},
		{"v1-none", 8192 * mib, "/proc/meminfo"},
		{"v1-container", 300 * mib, "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		{"both", 100 * mib, "/sys/fs/cgroup/unified/job/memory.max"},
		{"nonsense", 8192 * mib, "/proc/meminfo"},
	} {
		m, err := Available(os.DirFS(filepath.Join("testdata", c.tree)))
		if err != nil || m != (Memory{c.bytes, c.from}) {
			t.Errorf("%s: %d bytes from %q: %v; want %d from %q", c.tree, m.Bytes, m.From, err, c.bytes, c.from)
		}
	}
	for _, tree := range []string{"missing", "no-total"} {
		if m, err := Available(os.DirFS(filepath.Join("testdata", tree))); err == nil {
			t.Errorf("%s: %+v without an error", tree, m)
		}
	}
}

// TestThisMachine: on a system with /proc something is available.
func TestThisMachine(t *testing.T) {
	m, err := Available(os.DirFS("/"))
	if _, missing := fs.Stat(os.DirFS("/"), "proc/meminfo"); missing != nil {
		t.Skip("no /proc/meminfo here")
	}
	if err != nil || m.Bytes < 1<<20 {
		t.Errorf("%+v: %v", m, err)
	}
}
