package worker

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// fileLimit raises the limit of descriptors as far as permitted and returns it.
func fileLimit() int {
	r := unix.Rlimit{Cur: 1 << 17, Max: 1 << 17}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &r) == nil {
		return int(r.Cur)
	}
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return math.MaxInt
	}
	r.Cur = r.Max
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &r)
	}
	return int(r.Cur)
}

// socket is a TCP connection's descriptor.
type socket struct {
	fd      int
	polling bool
}

func dialWire(a netip.AddrPort, polling bool) (wire, error) {
	fd, to, err := newSocket(a)
	if err != nil {
		return nil, err
	}
	// The other side is told to listen at the same time as this one is told to connect.
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err = unix.Connect(fd, to); !errors.Is(err, unix.ECONNREFUSED) || time.Now().After(end) {
			break
		}
	}
	return ready(fd, polling, err)
}

func acceptWire(a netip.AddrPort, polling bool) (wire, error) {
	l, at, err := newSocket(a)
	if err != nil {
		return nil, err
	}
	defer unix.Close(l)
	if err := errors.Join(unix.SetsockoptInt(l, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(l, at), unix.Listen(l, 1)); err != nil {
		return nil, err
	}
	fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
	return ready(fd, polling, err)
}

func newSocket(a netip.AddrPort) (int, unix.Sockaddr, error) {
	family, sa := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(a.Port())})
	if a.Addr().Is4() {
		sa.(*unix.SockaddrInet4).Addr = a.Addr().As4()
	} else {
		family, sa = unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return fd, sa, err
}

// ready turns a connected descriptor into a wire.
func ready(fd int, polling bool, err error) (wire, error) {
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if err != nil {
		if fd >= 0 {
			unix.Close(fd)
		}
		return nil, err
	}
	return &socket{fd, polling}, nil
}

func (s *socket) readFull(b []byte) error {
	flags := 0
	if s.polling {
		flags = unix.MSG_DONTWAIT
	}
	for len(b) > 0 {
		n, _, err := unix.Recvfrom(s.fd, b, flags)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return errEnd
		}
		b = b[n:]
	}
	return nil
}

func (s *socket) write(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(s.fd, b)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		b = b[max(n, 0):]
	}
	return nil
}

func (s *socket) close() { unix.Close(s.fd) }

// keepAwake makes every processor run a thread that yields to every other: the processors do not sleep,
// and nobody waits for them to wake up. It runs until ctx ends.
func keepAwake(ctx context.Context) error {
	runtime.GOMAXPROCS(runtime.NumCPU() + 1) // one is left for the calls
	started := make(chan error)
	for range runtime.NumCPU() {
		go func() {
			runtime.LockOSThread()
			attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
			err := unix.SchedSetAttr(0, &attr, 0)
			started <- err
			for err == nil && ctx.Err() == nil {
			}
		}()
	}
	var errs []error
	for range runtime.NumCPU() {
		errs = append(errs, <-started)
	}
	return errors.Join(errs...)
}
