package journal

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
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

// take returns the next entry, from a datagram or from the file in memory that came instead of one, which nobody can change any more.
func take(t *testing.T, c *net.UnixConn) (entry []byte, inFile bool) {
	t.Helper()
	b, oob := make([]byte, 64<<10), make([]byte, 64)
	n, rights, _, _, err := c.ReadMsgUnix(b, oob)
	if err != nil {
		t.Fatal(err)
	}
	if rights == 0 {
		return b[:n], false
	}
	list, err := unix.ParseSocketControlMessage(oob[:rights])
	if err != nil || len(list) != 1 || n != 0 {
		t.Fatalf("%d bytes beside %d messages, %v", n, len(list), err)
	}
	fds, err := unix.ParseUnixRights(&list[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("descriptors %v, %v", fds, err)
	}
	f := os.NewFile(uintptr(fds[0]), "entry")
	defer f.Close()
	const all = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0); err != nil || seals&all != all {
		t.Errorf("the file has the seals %#x, %v; want %#x", seals, err, all)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if entry, err = io.ReadAll(f); err != nil {
		t.Fatal(err)
	}
	return entry, true
}

// TestSocket_Long: an entry that is too long for a datagram comes whole, as a sealed file, with its fields.
func TestSocket_Long(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	at := listen(t, path)
	defer at.Close()
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, size := range []int{10, 4 << 20} { // the second is longer than a socket's buffer
		text := strings.Repeat("line\n", size/5)
		if err := c.Send(Field(Field(nil, "MESSAGE", "long"), "SOFTVPI_TEXT", text)); err != nil {
			t.Fatal(err)
		}
		b, inFile := take(t, at)
		if got := parse(t, b); got["MESSAGE"] != "long" || got["SOFTVPI_TEXT"] != text {
			t.Errorf("of %d bytes of text %d arrive, with the message %q", size, len(got["SOFTVPI_TEXT"]), got["MESSAGE"])
		}
		if inFile != (size > 1<<20) {
			t.Errorf("%d bytes of text come in a file: %v", size, inFile)
		}
	}
}

// TestSocket_Vanishes: while nobody listens records go to the fallback, and to the journal again when it is back.
func TestSocket_Vanishes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	at := listen(t, path)
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var fallback bytes.Buffer
	log := slog.New(NewHandler(c.Send, slog.LevelInfo, slog.NewTextHandler(&fallback, nil)))
	for round := range 2 {
		log.Info("heard", "round", round)
		if b, _ := take(t, at); parse(t, b)["SOFTVPI_ROUND"] != fmt.Sprint(round) {
			t.Errorf("round %d: the journal gets %q", round, b)
		}
		_ = at.Close()
		_ = os.Remove(path)
		fallback.Reset()
		log.Warn("alone", "round", round)
		log.Error("alone still")
		if got := fallback.String(); !strings.Contains(got, fmt.Sprint("level=WARN msg=alone round=", round)) || !strings.Contains(got, "alone still") {
			t.Errorf("round %d: without a journal the fallback has %q", round, got)
		}
		at = listen(t, path)
	}
	_ = at.Close()
}
