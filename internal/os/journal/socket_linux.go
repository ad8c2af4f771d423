package journal

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
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
	send, err := dial(socket)
	if err != nil {
		return fallback
	}
	return NewHandler(send, level, fallback)
}

// dial returns a function that sends datagrams to a socket, and connects again if it was made anew.
func dial(path string) (send func([]byte) error, err error) {
	connect := func() (*net.UnixConn, error) {
		return net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	}
	c, err := connect()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return func(b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		_ = c.SetWriteDeadline(time.Now().Add(patience))
		_, err := c.Write(b)
		if err == nil {
			return nil
		}
		again, failed := connect()
		if failed != nil {
			return err
		}
		_ = c.Close()
		c = again
		_ = c.SetWriteDeadline(time.Now().Add(patience))
		_, err = c.Write(b)
		return err
	}, nil
}
