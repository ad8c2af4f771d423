package reach

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ring"
)

// trustTime is how long a process is taken for the one that it was: its id cannot be given to another one
// so soon, since all others have their turn first.
const trustTime = time.Millisecond

// Neighbour is access of a program to the memory of another one, for the direct path. Any number of
// goroutines may use it. It implements direct.Process.
type Neighbour struct {
	pid     int
	address uint64
	nonce   [16]byte
	began   time.Time
	trusted atomic.Int64 // until then, since began
}

var _ direct.Process = (*Neighbour)(nil)

// NewNeighbour returns access to the process that has the nonce at address. The error says why there is
// none: the process is in another PID namespace, or the kernel does not permit it.
func NewNeighbour(pid int, address uint64, nonce [16]byte) (*Neighbour, error) {
	n := &Neighbour{pid: pid, address: address, nonce: nonce, began: time.Now()}
	if err := n.verify(); err != nil {
		return nil, err
	}
	return n, nil
}

// verify reads the nonce.
func (n *Neighbour) verify() error {
	now := time.Since(n.began) // before it is read
	var b [16]byte
	piece := [1]direct.Piece{{Address: n.address, Length: uint64(len(b))}}
	if got, err := n.copy(unix.SYS_PROCESS_VM_READV, [][]byte{b[:]}, piece[:]); err != nil || got != len(b) {
		return fmt.Errorf("process %d: %d bytes of its nonce read: %w", n.pid, got, err)
	}
	if b != n.nonce {
		return fmt.Errorf("process %d does not have the nonce of the program", n.pid)
	}
	n.trusted.Store(int64(now + trustTime))
	return nil
}

// same reports whether the process is still the program's: it may have ended, or run another program.
func (n *Neighbour) same() bool {
	return int64(time.Since(n.began)) < n.trusted.Load() || n.verify() == nil
}

// Write implements direct.Process.
func (n *Neighbour) Write(far []direct.Piece, near [][]byte) bool {
	return n.all(unix.SYS_PROCESS_VM_WRITEV, near, far)
}

// Read implements direct.Process.
func (n *Neighbour) Read(near [][]byte, far []direct.Piece) bool {
	return n.all(unix.SYS_PROCESS_VM_READV, near, far)
}

func (n *Neighbour) all(call uintptr, near [][]byte, far []direct.Piece) bool {
	want := 0
	for i := range near {
		want += len(near[i])
	}
	if !n.same() {
		return false
	}
	got, err := n.copy(call, near, far)
	return err == nil && got == want
}

// copy makes one system call of a message. The kernel takes the pieces in order (process_vm_readv(2)).
func (n *Neighbour) copy(call uintptr, near [][]byte, far []direct.Piece) (int, error) {
	var local [ring.MaxSGE]unix.Iovec
	var remote [ring.MaxSGE + 1]unix.RemoteIovec
	for i, b := range near {
		local[i].Base = unsafe.SliceData(b)
		local[i].SetLen(len(b))
	}
	for i, p := range far {
		if uint64(uintptr(p.Address)) != p.Address {
			return 0, unix.EFAULT
		}
		remote[i] = unix.RemoteIovec{Base: uintptr(p.Address), Len: int(p.Length)}
	}
	for {
		got, _, errno := unix.Syscall6(call, uintptr(n.pid), uintptr(unsafe.Pointer(&local)), uintptr(len(near)),
			uintptr(unsafe.Pointer(&remote)), uintptr(len(far)), 0)
		switch errno {
		case 0:
			return int(got), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
