package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
)

const (
	listenPID   = "LISTEN_PID"
	listenCount = "LISTEN_FDS"
	listenNames = "LISTEN_FDNAMES"

	firstDescriptor = 3 // SD_LISTEN_FDS_START
	mostSockets     = 64
)

// Sockets returns the listening unix sockets that the manager of the process with this ID has opened for it, which stay when they are
// closed here. They are taken over: it may be called once.
func Sockets(getenv func(string) string, pid int) ([]*net.UnixListener, error) {
	return sockets(getenv, pid, firstDescriptor)
}

func sockets(getenv func(string) string, pid int, first uintptr) (list []*net.UnixListener, err error) {
	if getenv(listenPID) != strconv.Itoa(pid) { // it is not set, or for another process
		return nil, nil
	}
	n, err := strconv.Atoi(getenv(listenCount))
	if err != nil || n < 0 || n > mostSockets {
		return nil, fmt.Errorf("%s is %q; allowed: 0 to %d", listenCount, getenv(listenCount), mostSockets)
	}
	for i := range uintptr(n) {
		l, e := listener(first + i)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		list = append(list, l)
	}
	if err == nil {
		return list, nil
	}
	for _, l := range list {
		l.Close()
	}
	return nil, err
}

// listener takes a descriptor over. Go's own duplicate is not passed on to other programs.
func listener(fd uintptr) (*net.UnixListener, error) {
	f := os.NewFile(fd, "passed")
	if f == nil {
		return nil, fmt.Errorf("passed descriptor %d: %w", fd, os.ErrInvalid)
	}
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("passed descriptor %d: %w", fd, err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("passed descriptor %d listens at %v (%s); allowed: a unix socket, ListenStream=PATH", fd, l.Addr(), l.Addr().Network())
	}
	return u, nil
}
