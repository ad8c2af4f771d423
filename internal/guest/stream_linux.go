package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// dial opens a machine's end of the stream to its host. line says that others may have used it before.
func dial(ctx context.Context, a Address) (s io.ReadWriteCloser, line bool, err error) {
	switch a.Kind {
	case Unix:
		s, err = new(net.Dialer).DialContext(ctx, "unix", a.Path)
		return s, false, err
	case Device:
		var f *os.File
		if f, err = os.OpenFile(a.Path, os.O_RDWR, 0); err != nil {
			return nil, false, err
		}
		if i, err := f.Stat(); err != nil || i.Mode()&os.ModeCharDevice == 0 {
			f.Close()
			return nil, false, fmt.Errorf("%s is no character device; allowed: a port of virtio-serial", a.Path)
		}
		return f, true, nil
	case Vsock:
		s, err = dialVsock(a)
		return s, false, err
	}
	return nil, false, errors.ErrUnsupported
}

// listener accepts the streams of machines.
type listener struct {
	accept func() (io.ReadWriteCloser, error)
	io.Closer
}

func dialVsock(a Address) (io.ReadWriteCloser, error) {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrVM{CID: a.CID, Port: a.Port}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("%v: %w", a, os.NewSyscallError("connect", err))
	}
	return vsockFile(fd)
}

func vsockFile(fd int) (io.ReadWriteCloser, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "vsock"), nil
}

// listenVsock waits for one machine: others that come to the port are turned away.
func listenVsock(a Address) (*listener, error) {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: a.Port}); err == nil {
		err = unix.Listen(fd, MostStreams)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("%v: %w", a, err)
	}
	f := os.NewFile(uintptr(fd), "vsock")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &listener{Closer: f, accept: func() (io.ReadWriteCloser, error) {
		for {
			var n int
			var from unix.Sockaddr
			var failed error
			err := raw.Read(func(fd uintptr) bool {
				n, from, failed = unix.Accept4(int(fd), unix.SOCK_CLOEXEC)
				return failed != unix.EAGAIN
			})
			if err := errors.Join(err, failed); err != nil {
				return nil, err
			}
			if v, ok := from.(*unix.SockaddrVM); ok && v.CID == a.CID {
				return vsockFile(n)
			}
			unix.Close(n)
		}
	}}, nil
}
