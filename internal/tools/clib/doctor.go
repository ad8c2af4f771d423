package clib

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/verbs"
)

// Verdict is the result of a check.
type Verdict int

// The verdicts.
const (
	Fine  Verdict = iota
	Note          // works, but the user may want to know
	Wrong         // keeps a program from seeing the device
)

func (v Verdict) String() string { return [...]string{"ok", "note", "WRONG"}[v] }

// Finding is the result of a check, in one line.
type Finding struct {
	Check   string
	Verdict Verdict
	Text    string // the finding, and what to do about it
}

// Doctor finds out why a program does not see the device.
type Doctor struct {
	Socket  string // of the driver; empty: the default
	Version string // of this program
	found   []Finding
	dir     string // of the libraries, if found
}

// Examine checks the machine and, if one is given, the program.
func (d *Doctor) Examine(ctx context.Context, program string) []Finding {
	d.found = nil
	if d.libraries() {
		d.cLibrary()
	}
	if d.driver(ctx) {
		d.attach(ctx)
	}
	scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		scope = []byte("0") // a kernel without Yama
	}
	d.ptrace(strings.TrimSpace(string(scope)))
	info, err := os.Stat("/dev/infiniband/uverbs0")
	d.character(err == nil && info.Mode()&os.ModeCharDevice != 0)
	if program != "" {
		d.program(program)
	}
	return d.found
}

// Write prints findings and reports whether one of them is Wrong.
func Write(w io.Writer, found []Finding) (wrong bool) {
	for _, f := range found {
		fmt.Fprintf(w, "%-5s  %-10s  %s\n", f.Verdict, f.Check, f.Text)
		wrong = wrong || f.Verdict == Wrong
	}
	return wrong
}

func (d *Doctor) say(check string, v Verdict, format string, args ...any) {
	d.found = append(d.found, Finding{check, v, fmt.Sprintf(format, args...)})
}

func (d *Doctor) libraries() bool {
	dir, err := Find()
	if err != nil {
		d.say("libraries", Wrong, "%s", err)
		return false
	}
	d.dir = dir
	machine, err := hostMachine()
	for _, name := range []string{verbsLibrary, cmLibrary, Preload} {
		path := filepath.Join(dir, name)
		b, e := readBinary(path)
		switch {
		case errors.Is(e, os.ErrNotExist):
			d.say("libraries", Wrong, "there is no %s: build the libraries again with make clib", path)
			return true
		case e != nil:
			d.say("libraries", Wrong, "%s cannot be read: %v; build it again with make clib", path, e)
			return false
		case err == nil && b.machine != machine:
			d.say("libraries", Wrong, "%s is for %v, this machine's programs are for %v: build it here with make clib", path, b.machine,
				machine)
			return false
		}
	}
	major, minor, ok := protocol(filepath.Join(dir, verbsLibrary))
	switch {
	case !ok:
		d.say("libraries", Wrong, "%s does not say which protocol it speaks: build it again with make clib",
			filepath.Join(dir, verbsLibrary))
	case major != proto.Major:
		d.say("libraries", Wrong, "%s speaks protocol %d.%d, this softvpi %d.%d: build both from the same sources (make build clib)",
			filepath.Join(dir, verbsLibrary), major, minor, proto.Major, proto.Minor)
	default:
		d.say("libraries", Fine, "%s, protocol %d.%d", dir, major, minor)
	}
	return true
}

// cLibrary compares what the libraries need with the system's C library.
func (d *Doctor) cLibrary() {
	var most glibc
	var last *binaryFile
	for _, name := range []string{verbsLibrary, cmLibrary, Preload} {
		b, err := readBinary(filepath.Join(d.dir, name))
		if err != nil {
			continue // already reported
		}
		if last = b; most.before(needsGlibc(b)) {
			most = needsGlibc(b)
		}
	}
	if last == nil {
		return
	}
	path := resolve("libc.so.6", last, d.dir)
	if path == "" {
		d.say("glibc", Wrong, "this system has no glibc: programs and libraries of musl cannot be mixed with it")
		return
	}
	got, err := hasGlibc(path)
	switch {
	case err != nil:
		d.say("glibc", Wrong, "%s cannot be read: %v", path, err)
	case got.before(most):
		d.say("glibc", Wrong, "this system has glibc %v, but the libraries need %v: build them here or on an older system (make clib)", got,
			most)
	default:
		d.say("glibc", Fine, "%v; the libraries need %v", got, most)
	}
}

// driver queries the management interface.
func (d *Doctor) driver(ctx context.Context) bool {
	socket := d.socket()
	st, err := api.NewClient(socket).Status(ctx)
	switch {
	case errors.Is(err, api.ErrNotAllowed):
		d.say("driver", Note, "it runs, but does not answer this user: %v", err)
		return true
	case errors.Is(err, api.ErrNoManagement):
		d.say("driver", Note, "%v", err)
		return true
	case errors.Is(err, api.ErrNotRunning):
		d.say("driver", Wrong, "no driver answers at %s: start one with softvpi up, or set %s to where it listens", socket,
			paths.SocketVariable)
		return false
	case err != nil:
		d.say("driver", Wrong, "at %s: %v", socket, err)
		return false
	case st.Attach != "":
		d.say("driver", Wrong, "it runs, but programs cannot attach: %s", st.Attach)
		return false
	case st.Version != d.Version:
		d.say("driver", Note, "process %d at %s is of version %s, this softvpi of %s: restart it if they do not work together", st.PID,
			socket, st.Version, d.Version)
	default:
		d.say("driver", Fine, "process %d at %s, version %s", st.PID, socket, st.Version)
	}
	up := 0
	for _, a := range st.Adapters {
		if a.Up && a.RDMA() {
			up++
		}
	}
	switch {
	case up == 0:
		d.say("adapters", Wrong, "none of %d is up: softvpi status tells why, softvpi adapter enable NAME enables one", len(st.Adapters))
	default:
		d.say("adapters", Fine, "%d of %d up", up, len(st.Adapters))
	}
	return true
}

func (d *Doctor) socket() string {
	if d.Socket != "" {
		return d.Socket
	}
	return paths.Socket()
}

// attach attaches like the libraries do.
func (d *Doctor) attach(ctx context.Context) {
	h, err := verbs.Open(ctx, verbs.Options{Mode: verbs.Attached, Socket: d.socket(), Name: "softvpi verbs doctor"})
	if err != nil {
		hint := ""
		if errors.Is(err, os.ErrPermission) {
			hint = fmt.Sprintf("; the socket is only for the driver's user: run softvpi up and the program as one user (this is user %d)",
				os.Getuid())
		}
		d.say("attach", Wrong, "%s%s", strings.ReplaceAll(err.Error(), "\n", " "), hint)
		return
	}
	defer h.Close()
	how := ""
	if st, err := api.NewClient(d.socket()).Status(ctx); err == nil {
		for _, p := range st.Programs {
			if p.PID == os.Getpid() {
				how = p.MemoryPath
			}
		}
	}
	switch how {
	case "":
		d.say("attach", Fine, "programs of this user can attach")
	case "copier":
		d.say("attach", Note, "the driver cannot reach this user's memory itself (another container, user or security module): a thread in each program copies, which is slower")
	default:
		d.say("attach", Fine, "programs of this user can attach; the driver reaches their memory with %s", how)
	}
}

// ptrace reports what Yama permits.
func (d *Doctor) ptrace(scope string) {
	switch scope {
	case "0":
		d.say("memory", Fine, "Yama does not keep the driver from programs' memory")
	case "1":
		d.say("memory", Fine, "Yama keeps processes from each other's memory; the libraries let the driver in (prctl PR_SET_PTRACER)")
	default:
		d.say("memory", Note, "kernel.yama.ptrace_scope is %s: a thread in each program copies, which is slower; sysctl kernel.yama.ptrace_scope=1 avoids that", scope)
	}
}

// character reports whether UCX finds what it needs; there: a character device in /dev/infiniband exists.
func (d *Doctor) character(there bool) {
	switch {
	case there:
		d.say("UCX", Fine, "there is a character device /dev/infiniband/uverbs0")
	case d.dir != "" && has(d.dir, Preload):
		d.say("UCX", Fine, "needs a character device under /dev/infiniband, which %s shows to it", Preload)
	default:
		d.say("UCX", Note, "needs a character device under /dev/infiniband: build %s (make clib), or as root ln -s /dev/null /dev/infiniband/uverbs0", Preload)
	}
}
