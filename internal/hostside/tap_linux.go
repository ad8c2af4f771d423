package hostside

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/os/netspace"
	"github.com/softvpi/softvpi/internal/tun"
)

const (
	// mostPieces is how many pieces of a frame are written without joining them.
	mostPieces = 96
	mostQueues = 64
	// mark is the alias of interfaces that were made here and are removed with the driver: ip link shows it.
	mark = "softvpi: the host side of an adapter"
)

// tapEnd is the host's end at a TAP interface: a descriptor for each queue.
type tapEnd struct {
	name    string
	fds     []int
	ep      int // epoll set of them
	ask     *netlink.Handle
	made    bool       // it is removed by Close
	fresh   bool       // it was made by this process
	multi   bool       // it may have several queues
	where   sync.Mutex // held where fds changes, and by who asks from outside where the interface is
	burst   bool       // the system knows bursts of UDP datagrams (Linux 6.2)
	tunnels bool       // it knows large packets inside tunnels (Linux 6.17)
	gone    bool       // somebody has deleted it

	paused bool
	lent   uint64 // queues that their threads read

	list groupList

	events [mostQueues]unix.EpollEvent
	vector [mostPieces]unix.Iovec
	joined []byte // a frame of more pieces
}

func openTAP(name string) (_ End, err error) {
	e := &tapEnd{name: name, ep: -1, multi: true, list: groupList{bell: -1}}
	defer func() {
		if err != nil {
			e.release()
		}
	}()
	if e.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create", err)
	}
	if e.list.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	if e.ask, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, fmt.Errorf("host: netlink: %w", err)
	}
	before, missing := e.ask.LinkByName(name)
	if err := e.addQueue(); errors.Is(err, unix.EINVAL) && missing == nil { // it was made for one queue
		e.multi = false
		if err := e.addQueue(); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	e.burst = unix.IoctlSetInt(e.fds[0], unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|bursts) == nil
	if err := unix.IoctlSetInt(e.fds[0], unix.TUNSETOFFLOAD, 0); err != nil {
		return nil, fmt.Errorf("host: interface %q: %w", name, os.NewSyscallError("TUNSETOFFLOAD", err))
	}
	e.tunnels = tun.Tunnels(e.fds[0])
	if missing == nil {
		e.made = before.Attrs().Alias == mark
		return e, nil
	}
	e.fresh = true
	return e, e.mark()
}

// open opens a queue: of the interface where it is now, which may be another network namespace, or if there is none yet, here.
func (e *tapEnd) open() (fd int, err error) {
	if len(e.fds) == 0 {
		return tun.OpenQueue(e.name, e.multi)
	}
	space, name, err := tun.Whereabouts(e.fds[0])
	if err != nil { // the system does not say, or not to everybody
		return tun.OpenQueue(e.name, e.multi)
	}
	defer space.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, err := netns.Get()
	if err != nil {
		return -1, err
	}
	defer here.Close()
	if here.Equal(space) {
		return tun.OpenQueue(name, e.multi)
	}
	if err := netns.Set(space); err != nil {
		return -1, fmt.Errorf("interface %q is in another network namespace: %w", e.name, err)
	}
	defer func() {
		if back := netns.Set(here); back != nil {
			runtime.LockOSThread() // a thread that cannot go back ends with its goroutine
			err = errors.Join(err, back)
		}
	}()
	return tun.OpenQueue(name, e.multi)
}

// addQueue attaches another queue.
func (e *tapEnd) addQueue() error {
	fd, err := e.open()
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("host: %w; it takes CAP_NET_ADMIN (root, or unshare --user --map-root-user --net), or a TAP made for this user", err)
	}
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	q := len(e.fds)
	e.where.Lock()
	e.fds = append(e.fds, fd)
	e.where.Unlock()
	if e.tunnels { // the headers are the interface's, not the queue's
		if err := tun.Enclose(fd); err != nil {
			return fmt.Errorf("host: interface %q: %w", e.name, err)
		}
	}
	if err := unix.EpollCtl(e.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(q)}); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

// Kind implements End.
func (e *tapEnd) Kind() string {
	if e.gone {
		return "TAP " + e.name + ", which was deleted"
	}
	return "TAP " + e.name
}

// Virtio implements End.
func (e *tapEnd) Virtio() bool { return true }

// Datagrams implements End.
func (e *tapEnd) Datagrams() bool { return e.burst }

// Tunnels implements Enclosing.
func (e *tapEnd) Tunnels() bool { return e.tunnels }

// Queues implements End.
func (e *tapEnd) Queues() int { return len(e.fds) }

// SetQueues implements End. An interface that was made for one queue keeps it.
func (e *tapEnd) SetQueues(n int) error {
	if len(e.fds) > 0 && tun.Deleted(e.fds[0]) { // it was deleted while nobody read from it
		e.deleted()
	}
	if e.gone {
		e.closeQueues(0)
		e.gone, e.multi = false, true
		if err := errors.Join(e.addQueue(), e.mark()); err != nil {
			return err
		}
	}
	if !e.multi {
		n = 1
	}
	n = min(max(n, 1), mostQueues)
	e.closeQueues(n)
	for len(e.fds) < n {
		if err := e.addQueue(); err != nil {
			return err
		}
	}
	return nil
}

// closeQueues closes the queues from that number on.
func (e *tapEnd) closeQueues(from int) {
	e.where.Lock()
	defer e.where.Unlock()
	for len(e.fds) > from {
		last := len(e.fds) - 1
		unix.Close(e.fds[last])
		e.fds = e.fds[:last]
	}
}

// Space implements Placed.
func (e *tapEnd) Space() (netspace.ID, error) {
	e.where.Lock()
	defer e.where.Unlock()
	if len(e.fds) == 0 {
		return netspace.ID{}, os.ErrClosed
	}
	space, _, err := tun.Whereabouts(e.fds[0])
	if err != nil {
		return netspace.ID{}, err
	}
	defer space.Close()
	return netspace.OfFile(int(space))
}

// Ready implements End.
func (e *tapEnd) Ready() (set uint64) {
	if e.gone {
		return 0
	}
	if len(e.fds) == 1 {
		return 1
	}
	if bits.OnesCount64(e.lent) == len(e.fds) {
		return 0
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.ep), uintptr(unsafe.Pointer(&e.events[0])), uintptr(len(e.events)),
		0, 0, 0)
	if errno != 0 {
		return 0
	}
	for i := range n {
		set |= 1 << (e.events[i].Fd & (mostQueues - 1))
	}
	return set
}

// Read implements End.
func (e *tapEnd) Read(q int, b []byte) int {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(e.fds[q]), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n)
		case unix.EINTR:
		case unix.EBADFD:
			e.deleted()
			return 0
		default:
			return 0 // EAGAIN, or the interface is down
		}
	}
}

// deleted notes that somebody has deleted the interface: its descriptors signal that for ever.
func (e *tapEnd) deleted() {
	e.gone = true
	for _, fd := range e.fds {
		_ = unix.EpollCtl(e.ep, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

// Write implements End.
func (e *tapEnd) Write(q int, pieces [][]byte) Outcome {
	n := vectorOf(e.vector[:], pieces, &e.joined)
	fd := e.fds[q%len(e.fds)]
	defer clear(e.vector[:n])
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&e.vector)), uintptr(n))
		switch errno {
		case 0:
			return Taken
		case unix.EINTR:
		case unix.EAGAIN:
			return Full
		default:
			return Lost
		}
	}
}

// vectorOf fills in a vector with pieces, joined into one if there are too many, and returns how many it has.
func vectorOf(v []unix.Iovec, pieces [][]byte, joined *[]byte) (n int) {
	if len(pieces) > len(v) {
		*joined = (*joined)[:0]
		for _, p := range pieces {
			*joined = append(*joined, p...)
		}
		v[0].Base = &(*joined)[0]
		v[0].SetLen(len(*joined))
		return 1
	}
	for _, p := range pieces {
		if len(p) > 0 {
			v[n].Base = &p[0]
			v[n].SetLen(len(p))
			n++
		}
	}
	return n
}

// Pause implements End.
func (e *tapEnd) Pause(on bool) {
	e.paused = on
	for q := range e.fds {
		e.signal(q)
	}
}

// signal sets whether frames of a queue are signalled. While none are, that the interface is gone would be for ever.
func (e *tapEnd) signal(q int) {
	if e.gone {
		return
	}
	what := unix.EPOLL_CTL_ADD
	if e.paused || e.lent>>q&1 != 0 {
		what = unix.EPOLL_CTL_DEL
	}
	_ = unix.EpollCtl(e.ep, what, e.fds[q], &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(q)})
}

// Descriptors implements End.
func (e *tapEnd) Descriptors() []int { return []int{e.ep, e.list.bell} }

// Close implements End. An interface that somebody has deleted (EBADFD) is gone already.
func (e *tapEnd) Close() error {
	var err error
	if e.made && len(e.fds) > 0 {
		err = unix.IoctlSetInt(e.fds[0], unix.TUNSETPERSIST, 0)
	}
	e.release()
	if err == unix.EBADFD {
		return nil
	}
	return os.NewSyscallError("TUNSETPERSIST", err)
}

func (e *tapEnd) release() {
	e.list.end()
	if e.list.bell >= 0 {
		unix.Close(e.list.bell)
		e.list.bell = -1
	}
	e.closeQueues(0)
	if e.ep >= 0 {
		unix.Close(e.ep)
		e.ep = -1
	}
	if e.ask != nil {
		e.ask.Close()
		e.ask = nil
	}
}
