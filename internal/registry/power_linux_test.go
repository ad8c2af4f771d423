package registry

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// diskOp is an operation of a process on its file, or an acknowledgement that it printed.
type diskOp struct {
	kind  string // write, truncate, sync, acknowledged
	at    int64  // offset, size or number
	bytes []byte
}

const sector = 512

// TestPowerLoss: a loss of power keeps what was synced, and any sectors of what was written since. Whenever it
// happens, the registry found afterwards has everything that was acknowledged, and every change whole. The writer is
// traced, so that its writes and syncs are those that the system was really asked for.
func TestPowerLoss(t *testing.T) {
	systemtest.Mark(t)
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, FileName)
	r := open2(t, dir)
	r.Close()
	image, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ops, err := trace(dir, file, 14)
	if errors.Is(err, os.ErrPermission) {
		t.Skip("processes cannot be traced here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, o := range ops {
		count[o.kind]++
	}
	if count["acknowledged"] != 14 || count["write"] < 28 || count["sync"] < 28 {
		t.Fatalf("traced %v; want 14 acknowledged, and two writes and two syncs for each", count)
	}
	seed := rand.Uint64()
	t.Logf("seed %d, %v", seed, count)
	random := rand.New(rand.NewPCG(seed, 1))
	acknowledged := 0
	var pending []diskOp
	for i, o := range ops {
		switch o.kind {
		case "acknowledged":
			acknowledged = int(o.at)
			continue
		case "sync":
			image = replay(image, pending, func() bool { return true })
			pending = nil
		default:
			pending = append(pending, o)
		}
		for _, keep := range []func() bool{
			func() bool { return false }, func() bool { return true },
			func() bool { return random.Uint64()&1 == 0 }, func() bool { return random.Uint64()&7 == 0 },
			func() bool { return random.Uint64()&7 != 0 },
		} {
			got, err := roundOf(t.TempDir(), replay(image, pending, keep))
			if err != nil || got != acknowledged && got != acknowledged+1 {
				t.Fatalf("power lost after operation %d (%s): round %d, %v; acknowledged was %d", i, o.kind, got, err, acknowledged)
			}
			if len(pending) == 0 {
				break
			}
		}
	}
}

// replay returns the file after the operations; keep chooses the sectors that were written.
func replay(image []byte, ops []diskOp, keep func() bool) []byte {
	out := append([]byte(nil), image...)
	for _, o := range ops {
		if o.kind == "truncate" {
			if keep() {
				out = append(out, make([]byte, max(0, int(o.at)-len(out)))...)[:o.at]
			}
			continue
		}
		for from := 0; from < len(o.bytes); from += sector {
			if !keep() {
				continue
			}
			to := min(from+sector, len(o.bytes))
			if need := int(o.at) + to - len(out); need > 0 {
				out = append(out, make([]byte, need)...)
			}
			copy(out[int(o.at)+from:], o.bytes[from:to])
		}
	}
	return out
}

func roundOf(dir string, image []byte) (int, error) {
	if err := os.WriteFile(filepath.Join(dir, FileName), image, 0o600); err != nil {
		return 0, err
	}
	r, err := Open(dir)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if aside, cause := r.SetAside(); aside != "" {
		return 0, fmt.Errorf("set aside: %w", cause)
	}
	return round(r), nil
}

// syscallInfo is struct ptrace_syscall_info (ptrace(2)).
type syscallInfo struct {
	op   uint8 // 1 entry, 2 exit
	_    [3]uint8
	_    uint32
	_, _ uint64
	nr   uint64 // at exit the result
	args [6]uint64
	_    [2]uint64
}

const getSyscallInfo = 0x420e

// trace runs a writer and returns what it does to the file.
func trace(dir, file string, times int) (ops []diskOp, err error) {
	runtime.LockOSThread() // the thread that starts the process is its tracer
	defer runtime.UnlockOSThread()
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	defer in.Close()
	c := writer(dir, times)
	c.Stdout = in
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := c.Start(); err != nil {
		return nil, err
	}
	pid := c.Process.Pid
	defer c.Process.Release()
	defer c.Process.Kill()
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		return nil, err
	}
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		return nil, err
	}
	running := map[int]syscallInfo{}
	for at, signal := pid, 0; ; {
		if err := unix.PtraceSyscall(at, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return nil, err
		}
		at, err = waitThread(pid, &status)
		if err != nil {
			return nil, err
		}
		signal = 0
		switch {
		case status.Exited() || status.Signaled():
			if at == pid {
				if status.ExitStatus() != 0 {
					return nil, fmt.Errorf("the writer ended with %v", status)
				}
				return ops, nil
			}
		case status.StopSignal() == unix.SIGTRAP|0x80:
			var info syscallInfo
			_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(at), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)),
				0, 0)
			if e == unix.ESRCH { // the process ends in another of its threads, which kills those that stand
				break
			}
			if e != 0 {
				return nil, fmt.Errorf("ptrace: %w", e)
			}
			if info.op == 1 {
				running[at] = info
			} else if o, ok := operation(pid, file, running[at], int64(info.nr)); ok {
				ops = append(ops, o)
			}
		case status.StopSignal() == unix.SIGTRAP || status.StopSignal() == unix.SIGSTOP: // a new thread
		default:
			signal = int(status.StopSignal())
		}
	}
}

// waitThread waits for any thread of the traced process, and for no other child.
func waitThread(pid int, status *unix.WaitStatus) (int, error) {
	for {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil { // gone: collect it
			return unix.Wait4(pid, status, unix.WALL, nil)
		}
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			got, err := unix.Wait4(tid, status, unix.WALL|unix.WNOHANG, nil)
			if err == nil && got == tid {
				return tid, nil
			}
		}
		runtime.Gosched()
	}
}

// operation returns the operation of a system call that has returned, if it was one on the file.
func operation(pid int, file string, call syscallInfo, result int64) (diskOp, bool) {
	name, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, call.args[0]))
	switch call.nr {
	case unix.SYS_PWRITE64:
		if name == file && result > 0 {
			return diskOp{"write", int64(call.args[3]), peek(pid, call.args[1], int(result))}, true
		}
	case unix.SYS_WRITE:
		if call.args[0] == 1 && result > 0 {
			n, err := strconv.Atoi(strings.TrimSpace(string(peek(pid, call.args[1], int(result)))))
			return diskOp{kind: "acknowledged", at: int64(n)}, err == nil
		}
	case unix.SYS_FTRUNCATE:
		return diskOp{kind: "truncate", at: int64(call.args[1])}, name == file && result == 0
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		return diskOp{kind: "sync"}, name == file && result == 0
	}
	return diskOp{}, false
}

// peek reads memory of a process.
func peek(pid int, at uint64, n int) []byte {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, n)
	if _, err := f.ReadAt(b, int64(at)); err != nil {
		return nil
	}
	return b
}
