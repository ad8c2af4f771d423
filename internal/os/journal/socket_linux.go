package journal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is where the journal listens.
const Socket = "/run/systemd/journal/socket"

// patience is how long a record may wait for a journal that is busy.
const patience = time.Second

// For returns a handler of the journal at a socket if w goes there, as JOURNAL_STREAM says (systemd.exec(5)): the device and the inode
// of the stream that systemd has connected. Else it returns the fallback.
func For(w io.Writer, stream, socket string, level slog.Leveler, fallback slog.Handler) slog.Handler {
	f, ok := w.(*os.File)
	if !ok || stream == "" {
		return fallback
	}
	var s syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &s); err != nil || fmt.Sprintf("%d:%d", s.Dev, s.Ino) != stream {
		return fallback // it was redirected
	}
	c, err := Dial(socket)
	if err != nil {
		return fallback
	}
	return NewHandler(c.Send, level, fallback)
}

// Dial returns what sends entries to a socket, and connects again if that was made anew.
func Dial(path string) (*Conn, error) {
	c := &Conn{path: path}
	return c, c.connect()
}

// Conn is the connection with a journal. Its methods may be called by several goroutines.
type Conn struct {
	path string
	mu   sync.Mutex
	unix *net.UnixConn
}

func (c *Conn) connect() error {
	next, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: c.path, Net: "unixgram"})
	if err != nil {
		return err
	}
	if c.unix != nil {
		_ = c.unix.Close()
	}
	c.unix = next
	return nil
}

// Send sends an entry.
func (c *Conn) Send(entry []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.send(entry)
	if err != nil && c.connect() == nil {
		err = c.send(entry)
	}
	return err
}

// send sends an entry as a datagram, or if it is too long for one as a sealed file in memory (systemd's JOURNAL_NATIVE_PROTOCOL).
func (c *Conn) send(entry []byte) error {
	if err := c.unix.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := c.unix.Write(entry)
	if !errors.Is(err, unix.EMSGSIZE) && !errors.Is(err, unix.ENOBUFS) {
		return err
	}
	f, err := sealed(entry)
	if err != nil {
		return err
	}
	defer f.Close()
	raw, err := c.unix.SyscallConn()
	if err != nil {
		return err
	}
	rights := unix.UnixRights(int(f.Fd()))
	if e := raw.Write(func(fd uintptr) bool {
		err = unix.Sendmsg(int(fd), nil, rights, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(err, unix.EAGAIN)
	}); e != nil {
		return e
	}
	return err
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unix.Close()
}

// sealed returns a file in memory that nobody can change any more.
func sealed(b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("journal entry", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "journal entry")
	if _, err = f.Write(b); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("memfd: %w", err)
	}
	return f, nil
}
