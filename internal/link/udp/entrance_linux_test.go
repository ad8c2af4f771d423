package udp

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/link/packet"
)

// dropAtEntrance has the system drop everything that comes in by an interface (tcx, Linux 6.6), in the network namespace
// of this thread, until the result is closed.
func dropAtEntrance(name string) (int, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return -1, err
	}
	// r0 = TCX_DROP; exit (linux/bpf.h).
	code := []struct {
		op, registers uint8
		offset        int16
		value         int32
	}{{op: 0xb7, value: 2}, {op: 0x95}}
	license := []byte("GPL\x00")
	call := func(command uintptr, a []byte) (int, error) {
		fd, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(&a[0])), uintptr(len(a)))
		if errno != 0 {
			return -1, os.NewSyscallError("bpf", errno)
		}
		return int(fd), nil
	}
	load := make([]byte, 48)
	binary.NativeEndian.PutUint32(load[0:], unix.BPF_PROG_TYPE_SCHED_CLS)
	binary.NativeEndian.PutUint32(load[4:], uint32(len(code)))
	binary.NativeEndian.PutUint64(load[8:], uint64(uintptr(unsafe.Pointer(&code[0]))))
	binary.NativeEndian.PutUint64(load[16:], uint64(uintptr(unsafe.Pointer(&license[0]))))
	program, err := call(unix.BPF_PROG_LOAD, load)
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	if err != nil {
		return -1, err
	}
	defer unix.Close(program)
	join := make([]byte, 64)
	binary.NativeEndian.PutUint32(join[0:], uint32(program))
	binary.NativeEndian.PutUint32(join[4:], uint32(l.Attrs().Index))
	binary.NativeEndian.PutUint32(join[8:], unix.BPF_TCX_INGRESS)
	return call(unix.BPF_LINK_CREATE, join)
}

// The ring has packets before tc looks at them only while tc has nothing to look with: what a program at the entrance
// of the interface drops does not arrive, whether it was there first or came later, and what comes after it has gone does.
func TestFramesKeepToTheEntrance(t *testing.T) {
	n := newNamespaces(t, 1500)
	l := n.pairOf([2]Config{}, false)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	drop := func() (fd int) {
		why := error(nil)
		n.in(1, func() error { fd, why = dropAtEntrance("b"); return nil })
		if why != nil {
			t.Skipf("this system attaches no programs: %v", why)
		}
		return fd
	}
	arrives := func() bool {
		r := routeTo(t, l[0], l[1])
		drain(t, l[1])
		before := l[1].Stats().ReceivedPackets
		sendAll(t, l[0], numbered(r, l[0].Capabilities(), 0, 8, 8))
		drain(t, l[1])
		return l[1].Stats().ReceivedPackets != before
	}
	follow := func() { // as long as it may take
		n.in(1, func() error {
			for range 300 {
				tend(l[1])
			}
			return nil
		})
	}
	for range 2 {
		fd := drop()
		follow()
		if arrives() {
			t.Error("what tc drops arrives")
		}
		unix.Close(fd)
		follow()
		if !arrives() {
			t.Error("nothing arrives when tc drops nothing any more")
		}
	}
	fd := drop()
	defer unix.Close(fd)
	var other Link
	n.in(1, func() (err error) {
		other, err = Open(Config{Addr: n.v4[1], Port: 4792, Frames: packet.On})
		return err
	})
	defer other.Close()
	r := routeTo(t, l[0], other)
	sendAll(t, l[0], numbered(r, l[0].Capabilities(), 0, 8, 8))
	drain(t, other)
	if s := other.Stats(); s.ReceivedPackets != 0 {
		t.Errorf("%d packets arrive past a program that was there first", s.ReceivedPackets)
	}
}
