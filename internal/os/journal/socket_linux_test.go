package journal

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSocket: a record goes to the socket if standard error is the stream that JOURNAL_STREAM names, and to the fallback if it was
// redirected, or nobody listens. A journal that was started anew gets records again.
func TestSocket(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "stream"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var s syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &s); err != nil {
		t.Fatal(err)
	}
	stream, path := fmt.Sprintf("%d:%d", s.Dev, s.Ino), filepath.Join(dir, "socket")
	if h := For(f, stream, path, slog.LevelInfo, slog.DiscardHandler); h != slog.DiscardHandler {
		t.Error("nobody listens, and the journal is used")
	}
	c := listen(t, path)
	for name, h := range map[string]slog.Handler{
		"redirected":   For(f, "1:2", path, slog.LevelInfo, slog.DiscardHandler),
		"no journal":   For(f, "", path, slog.LevelInfo, slog.DiscardHandler),
		"not a stream": For(&bytes.Buffer{}, stream, path, slog.LevelInfo, slog.DiscardHandler),
	} {
		if h != slog.DiscardHandler {
			t.Errorf("%s: the journal is used", name)
		}
	}
	log := slog.New(For(f, stream, path, slog.LevelInfo, slog.DiscardHandler))
	for _, message := range []string{"first", "after a restart"} {
		log.Info(message)
		b := make([]byte, 4096)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := parse(t, b[:n])["MESSAGE"]; got != message {
			t.Errorf("the journal got %q, want %q", got, message)
		}
		_ = c.Close()
		_ = os.Remove(path)
		c = listen(t, path)
	}
	_ = c.Close()
}

func listen(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
