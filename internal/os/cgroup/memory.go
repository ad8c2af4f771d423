// Package cgroup reads how much memory the processes of this process's control group may have together:
// versions 1 and 2 of control groups, and machines that have both. It reads files only, from a file system
// that the caller passes.
package cgroup

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// Memory is a limit of memory.
type Memory struct {
	Bytes uint64
	From  string // the file that says so, as an absolute path
}

// Machine reports whether it is the memory of the machine, and no limit of a control group.
func (m Memory) Machine() bool { return m.From == "/"+memInfo }

const memInfo = "proc/meminfo"

// unlimited is from where on a limit of version 1 is none: without one the file has LONG_MAX, rounded down
// to a page.
const unlimited = math.MaxInt64 &^ (1<<20 - 1)

// Available returns how much memory this process may count on: that of the machine (MemTotal of
// /proc/meminfo), or the least limit of its control group and of the groups above that, if there is a
// smaller one (memory.max and memory.high of version 2, memory.limit_in_bytes and hierarchical_memory_limit
// of version 1). root is the root directory of the system. Files that are not there are no limits: in a
// container only the group's own directory may be visible. The error is that of /proc/meminfo.
func Available(root fs.FS) (Memory, error) {
	least, err := machine(root)
	if err != nil {
		return Memory{}, err
	}
	for _, dir := range directories(root) {
		for _, name := range [...]string{"memory.max", "memory.high", "memory.limit_in_bytes"} {
			least.lower(limitIn(root, path.Join(dir, name)))
		}
		least.lower(hierarchical(root, path.Join(dir, "memory.stat")))
	}
	return least, nil
}

// lower replaces a limit by a smaller one.
func (m *Memory) lower(to Memory) {
	if to.From != "" && to.Bytes < m.Bytes {
		*m = to
	}
}

func machine(root fs.FS) (Memory, error) {
	b, err := fs.ReadFile(root, memInfo)
	if err != nil {
		return Memory{}, err
	}
	kilobytes, ok := field(b, "MemTotal:")
	if !ok {
		return Memory{}, fmt.Errorf("/%s has no MemTotal", memInfo)
	}
	return Memory{kilobytes << 10, "/" + memInfo}, nil
}

// limitIn returns the limit in a file, without From if there is none.
func limitIn(root fs.FS, name string) Memory {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return Memory{}
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil || n >= unlimited { // "max"
		return Memory{}
	}
	return Memory{n, "/" + name}
}

// hierarchical returns the least limit of a group of version 1 and those above it, which its statistics
// have even where the directories above cannot be seen.
func hierarchical(root fs.FS, name string) Memory {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return Memory{}
	}
	n, ok := field(b, "hierarchical_memory_limit")
	if !ok || n >= unlimited {
		return Memory{}
	}
	return Memory{n, "/" + name}
}

// field returns the number behind a word at the beginning of a line.
func field(b []byte, name string) (n uint64, ok bool) {
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == name {
			n, err := strconv.ParseUint(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// directories returns the directories of this process's memory groups and of those above them, without the
// leading slash.
func directories(root fs.FS) (list []string) {
	groups := own(root)
	for _, m := range mounts(root) {
		group, ok := groups[m.version]
		if !ok {
			continue
		}
		// A mount shows the groups below one of them. A process that is not among those, as one in a
		// container whose /proc tells of the groups of the host, counts as being in the topmost.
		at, ok := below(group, m.group)
		if !ok {
			at = ""
		}
		for ; ; at = path.Dir(at) {
			if at == "." {
				at = ""
			}
			list = append(list, strings.TrimPrefix(path.Join(m.at, at), "/"))
			if at == "" {
				break
			}
		}
	}
	return list
}

// below returns a group's path from one above it; false if that is not above it.
func below(group, above string) (string, bool) {
	if above == "/" {
		return strings.Trim(path.Clean(group), "/"), !strings.HasPrefix(group, "/..")
	}
	rest, ok := strings.CutPrefix(group, above)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.Trim(rest, "/"), true
}

// own returns the groups of this process by version of the hierarchy (proc/self/cgroup).
func own(root fs.FS) map[int]string {
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	groups := map[int]string{}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		part := strings.SplitN(lines.Text(), ":", 3)
		switch {
		case len(part) < 3:
		case part[0] == "0" && part[1] == "":
			groups[2] = part[2]
		case has(part[1], "memory"):
			groups[1] = part[2]
		}
	}
	return groups
}

func has(list, word string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one == word {
			return true
		}
	}
	return false
}

// mount is where a hierarchy of groups can be seen.
type mount struct {
	version   int
	group, at string
}

// mounts returns the mounts of version 2, and those of version 1 that have the memory controller (proc(5),
// /proc/pid/mountinfo).
func mounts(root fs.FS) (list []mount) {
	b, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		left, right, ok := strings.Cut(lines.Text(), " - ")
		place, kind := strings.Fields(left), strings.Fields(right)
		if !ok || len(place) < 5 || len(kind) < 3 {
			continue
		}
		m := mount{group: unescape(place[3]), at: unescape(place[4])}
		switch {
		case kind[0] == "cgroup2":
			m.version = 2
		case kind[0] == "cgroup" && has(kind[2], "memory"):
			m.version = 1
		default:
			continue
		}
		list = append(list, m)
	}
	return list
}

// unescape replaces the octal escapes of mountinfo: space, tab, line feed and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
