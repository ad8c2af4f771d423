package ibsim

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// DefaultName is the default base of the socket names.
const DefaultName = "sim"

type localListener struct {
	*net.UnixConn
	base string
	poll *poll
	do   *net.UnixConn // where commands arrive
	// control is what read receives besides a message: the credentials of its sender. Descriptors, which nobody wants, are
	// closed by the kernel because there is no room for them.
	control []byte
}

// ListenLocal lets programs on this machine attach over abstract sockets, those with IBSIM_SOCKNAME set to
// the name.
func ListenLocal(name string) (Listener, error) {
	l := &localListener{base: name, control: make([]byte, unix.CmsgSpace(unix.SizeofUcred))}
	c, err := net.ListenUnixgram("unixgram", l.addr("ctl"))
	if err != nil {
		return nil, err
	}
	l.UnixConn = c
	if err = tellUser(c); err != nil {
		c.Close()
		return nil, err
	}
	if l.do, err = net.ListenUnixgram("unixgram", l.addr("do")); err != nil {
		c.Close()
		return nil, err
	}
	if l.poll, err = newPoll(); err != nil {
		c.Close()
		l.do.Close()
		return nil, err
	}
	return l, nil
}

// addr returns an abstract name of the protocol, which ends with a zero byte.
func (l *localListener) addr(what string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: fmt.Sprintf("@%s:%s\x00", l.base, what)}
}

// localPeer is a program on this machine.
type localPeer struct {
	*net.UnixAddr
	user uint32
}

// tellUser makes the kernel say with each datagram which user sent it.
func tellUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	wrong := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	return errors.Join(wrong, err)
}

func (l *localListener) read(b []byte) (int, peer, error) {
	n, control, _, from, err := l.ReadMsgUnix(b, l.control)
	if err != nil || from == nil {
		return n, nil, err
	}
	p := localPeer{UnixAddr: from, user: unknownUser}
	if m, err := unix.ParseSocketControlMessage(l.control[:control]); err == nil && len(m) > 0 {
		if c, err := unix.ParseUnixCredentials(&m[0]); err == nil {
			p.user = c.Uid
		}
	}
	return n, p, nil
}

// unknownUser is the user of a program of which the kernel does not say whose it is.
const unknownUser = ^uint32(0)

func (l *localListener) user(from peer) uint32 {
	if p, ok := from.(localPeer); ok {
		return p.user
	}
	return unknownUser
}

// reply answers. The names of peers have lost their final zero byte. It ignores that a client has gone.
func (l *localListener) reply(to peer, b []byte) {
	if p, ok := to.(localPeer); ok {
		_, _ = l.WriteToUnix(b, &net.UnixAddr{Net: p.Net, Name: p.Name + "\x00"})
	}
}

func (l *localListener) same(a, b peer) bool {
	return a != nil && b != nil && a.String() == b.String()
}

func (l *localListener) open(number, id uint32, _ peer) (socket, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: l.addr(fmt.Sprintf("out%d", number)).Name})
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: l.addr(fmt.Sprintf("in%d", id)).Name})
	}
	if err == nil {
		err = l.poll.add(fd, number)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &localSocket{l.poll, fd, number}, nil
}

// Close ends the listening and the loop.
func (l *localListener) Close() error {
	err := l.UnixConn.Close()
	if err == nil { // the first time
		l.poll.stop()
		l.do.Close()
	}
	return err
}

// alive tries the client's socket: its name vanishes with the program, however that ends.
func (l *localListener) alive(id uint32) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: l.addr(fmt.Sprintf("in%d", id)).Name})
	return !errors.Is(err, unix.ECONNREFUSED)
}
