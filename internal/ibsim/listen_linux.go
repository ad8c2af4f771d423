package ibsim

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// DefaultName is the base of the socket names where nothing says another.
const DefaultName = "sim"

type localListener struct {
	*net.UnixConn
	base string
}

// ListenLocal lets programs of this machine attach over abstract sockets, those with IBSIM_SOCKNAME set to the name.
func ListenLocal(name string) (Listener, error) {
	l := &localListener{base: name}
	c, err := net.ListenUnixgram("unixgram", l.addr("ctl"))
	if err != nil {
		return nil, err
	}
	l.UnixConn = c
	return l, nil
}

// addr is an abstract name of the protocol, which ends with a zero byte.
func (l *localListener) addr(what string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: fmt.Sprintf("@%s:%s\x00", l.base, what)}
}

func (l *localListener) read(b []byte) (int, peer, error) {
	n, from, err := l.ReadFromUnix(b)
	return n, from, err
}

// reply answers. Names of peers have lost their last zero byte. A client that has gone is not the listener's trouble.
func (l *localListener) reply(to peer, b []byte) {
	if a, ok := to.(*net.UnixAddr); ok && a != nil {
		_, _ = l.WriteToUnix(b, &net.UnixAddr{Net: a.Net, Name: a.Name + "\x00"})
	}
}

func (l *localListener) same(a, b peer) bool { return a.String() == b.String() }

func (l *localListener) open(number, id uint32, _ peer) (net.Conn, error) {
	return net.DialUnix("unixgram", l.addr(fmt.Sprintf("out%d", number)), l.addr(fmt.Sprintf("in%d", id)))
}

// alive tries the client's socket: its name ends with the program, however that ends.
func (l *localListener) alive(id uint32) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: l.addr(fmt.Sprintf("in%d", id)).Name})
	return !errors.Is(err, unix.ECONNREFUSED)
}

// tryWrite writes where that needs no waiting.
func tryWrite(c net.Conn, b []byte) bool {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	written := false
	err = raw.Write(func(fd uintptr) bool {
		n, err := unix.Write(int(fd), b)
		written = err == nil && n == len(b)
		return true
	})
	return err == nil && written
}
