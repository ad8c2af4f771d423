package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lose has the system lose packets at random where they arrive at the interfaces of these
// addresses, each with this probability, until the process ends or the result is called. It
// takes Linux 6.6 and root.
func lose(probability float64, addrs ...netip.Addr) (stop func() error, err error) {
	program, err := loadLoss(probability)
	if err != nil {
		return nil, err
	}
	fds := []int{program}
	stop = func() error {
		var errs []error
		for _, fd := range fds {
			errs = append(errs, unix.Close(fd))
		}
		return errors.Join(errs...)
	}
	for _, a := range addrs {
		link, err := attachLoss(program, a)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		fds = append(fds, link)
	}
	return stop, nil
}

// The numbers of the system's bytecode (include/uapi/linux/bpf.h).
const (
	bpfCall, bpfExit, bpfMove = 0x85, 0x95, 0xb7 // instructions
	bpfIfLess32               = 0xa6
	bpfRandom                 = 7 // function bpf_get_prandom_u32
	tcxNext, tcxDrop          = -1, 2
)

func loadLoss(probability float64) (int, error) {
	code := []struct {
		op, registers uint8
		offset        int16
		value         int32
	}{
		{op: bpfCall, value: bpfRandom},
		{op: bpfIfLess32, offset: 2, value: int32(uint32(min(probability, 1) * (1<<32 - 1)))},
		{op: bpfMove, value: tcxNext},
		{op: bpfExit},
		{op: bpfMove, value: tcxDrop},
		{op: bpfExit},
	}
	license := []byte("GPL\x00")
	var a [48]byte
	binary.NativeEndian.PutUint32(a[0:], unix.BPF_PROG_TYPE_SCHED_CLS)
	binary.NativeEndian.PutUint32(a[4:], uint32(len(code)))
	binary.NativeEndian.PutUint64(a[8:], uint64(uintptr(unsafe.Pointer(&code[0]))))
	binary.NativeEndian.PutUint64(a[16:], uint64(uintptr(unsafe.Pointer(&license[0]))))
	fd, err := bpf(unix.BPF_PROG_LOAD, a[:])
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	return fd, err
}

func attachLoss(program int, addr netip.Addr) (int, error) {
	i, err := interfaceOf(addr)
	if err != nil {
		return -1, err
	}
	var a [64]byte
	binary.NativeEndian.PutUint32(a[0:], uint32(program))
	binary.NativeEndian.PutUint32(a[4:], uint32(i.Index))
	binary.NativeEndian.PutUint32(a[8:], unix.BPF_TCX_INGRESS)
	fd, err := bpf(unix.BPF_LINK_CREATE, a[:])
	if err != nil {
		return -1, fmt.Errorf("losing packets on %s: %w", i.Name, err)
	}
	return fd, nil
}

func bpf(command uintptr, attributes []byte) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(&attributes[0])), uintptr(len(attributes)))
	if errno != 0 {
		return -1, os.NewSyscallError("bpf", errno)
	}
	return int(fd), nil
}

func interfaceOf(addr netip.Addr) (*net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for i := range all {
		own, err := all[i].Addrs()
		if err != nil {
			return nil, err
		}
		for _, o := range own {
			if p, err := netip.ParsePrefix(o.String()); err == nil && p.Addr() == addr {
				return &all[i], nil
			}
		}
	}
	return nil, fmt.Errorf("no interface has the address %v", addr)
}
