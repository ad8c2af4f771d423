package report

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	dumpDirectory  = "temp"
	traceDirectory = "LogFiles/Mlnx"
	mostListed     = 10000
)

// machineFiles are where a Linux system says what it is.
var machineFiles = []string{
	"/proc/version", "/etc/os-release", "/proc/meminfo", "/proc/loadavg", "/proc/self/limits", "/proc/self/cgroup", "/proc/net/dev",
	"/proc/net/snmp", "/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max", "/proc/sys/kernel/yama/ptrace_scope",
	"/proc/sys/vm/overcommit_memory", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/pressure/cpu", "/proc/pressure/memory",
}

// machine takes facts about the kernel and the machine.
func (r *run) machine() {
	var b bytes.Buffer
	fmt.Fprintf(&b, "system %s/%s, %d processors, built with %s, user %d\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(),
		os.Getuid())
	for _, name := range machineFiles {
		text, err := readEnd(name, 1<<16)
		if err != nil {
			if runtime.GOOS == "linux" {
				r.omit(name, err.Error())
			}
			continue
		}
		fmt.Fprintf(&b, "\n%s:\n%s", name, text)
	}
	r.add("machine.txt", b.Bytes())
}

// traces takes the latest trace.
func (r *run) traces() {
	dir := filepath.Join(r.state, filepath.FromSlash(traceDirectory))
	list, err := newest(dir)
	if err != nil {
		r.omit("traces", err.Error())
		return
	}
	taken := map[string]bool{}
	for _, f := range list {
		kind := filepath.Ext(f.path)
		if name := filepath.ToSlash(filepath.Join("traces", filepath.Base(f.path))); taken[kind] {
			r.omit(name, "there is a later one")
		} else {
			taken[kind] = true
			r.file(name, f.path)
		}
	}
}

// dumps takes a list of all dumps, and the text of the latest folder.
func (r *run) dumps() {
	dir := filepath.Join(r.state, dumpDirectory)
	list, err := newest(dir)
	if err != nil {
		r.omit("dumps", err.Error())
		return
	}
	var b strings.Builder
	for _, f := range list[:min(len(list), mostListed)] {
		fmt.Fprintf(&b, "%s %10d %s\n", f.at.UTC().Format(time.RFC3339), f.size, f.name)
	}
	if len(list) > mostListed {
		fmt.Fprintf(&b, "and %d more\n", len(list)-mostListed)
	}
	r.add("dumps.txt", []byte(b.String()))
	folder := ""
	left := 0
	for _, f := range list {
		if folder == "" {
			folder = filepath.Dir(f.path)
		}
		if filepath.Dir(f.path) != folder {
			left++
			continue
		}
		r.file(filepath.ToSlash(filepath.Join("dumps", f.name)), f.path)
	}
	if left > 0 {
		r.omit("dumps", fmt.Sprintf("%d files of earlier ones, which dumps.txt lists", left))
	}
}

// found is a file of a directory.
type found struct {
	path, name string // name: below the directory
	at         time.Time
	size       int64
}

// newest returns the files below a directory, the latest first.
func newest(dir string) (list []found, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := e.Info()
		if err != nil || !i.Mode().IsRegular() {
			return nil // it is gone meanwhile, or no file
		}
		name, err := filepath.Rel(dir, path)
		list = append(list, found{path, name, i.ModTime(), i.Size()})
		return err
	})
	slices.SortStableFunc(list, func(a, b found) int { return b.at.Compare(a.at) })
	return list, err
}

// readEnd reads the end of a file, or what fits of one that has no length, such as those of /proc.
func readEnd(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	i, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !i.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	if i.Size() > most {
		if _, err := f.Seek(i.Size()-most, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, most))
}
