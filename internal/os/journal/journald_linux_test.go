package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// inNamespace makes a /run of a mount namespace's own, whose sockets and files lie in the directory $1, and becomes journald.
const inNamespace = `set -e
mount -t tmpfs none /run
mkdir -p /run/systemd/journal /run/systemd/journald.conf.d /run/log/journal
printf '[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nForwardToWall=no\nForwardToSyslog=no\n' >/run/systemd/journald.conf.d/test.conf
mount --bind "$1/sockets" /run/systemd/journal
mount --bind "$1/files" /run/log/journal
exec "$2"`

// realJournal is systemd's journald in a mount namespace.
type realJournal struct {
	dir  string
	said bytes.Buffer // what it says itself; to be read when it has ended
}

// startJournald starts one, which the end of the test ends, or skips the test.
func startJournald(t *testing.T) *realJournal {
	t.Helper()
	binary := "/lib/systemd/systemd-journald"
	if _, err := os.Stat(binary); err != nil {
		t.Skip("no systemd-journald")
	}
	for _, p := range []string{"journalctl", "unshare"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip("no " + p)
		}
	}
	args := []string{"--mount"}
	if os.Getuid() != 0 {
		args = append(args, "--map-root-user")
	}
	if out, err := exec.Command("unshare", append(args, "mount", "-t", "tmpfs", "none", "/run")...).CombinedOutput(); err != nil {
		t.Skipf("no mount namespace: %s", bytes.TrimSpace(out))
	}
	j := &realJournal{dir: t.TempDir()}
	for _, d := range []string{"sockets", "files"} {
		if err := os.Mkdir(filepath.Join(j.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("unshare", append(args, "sh", "-c", inNamespace, "sh", j.dir, binary)...)
	c.Env = append(os.Environ(), "SYSTEMD_LOG_TARGET=console")
	c.Stdout, c.Stderr = &j.said, &j.said
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
		if t.Failed() {
			t.Logf("journald says %s", &j.said)
		}
	})
	// It says this itself when it has set its sockets up: before, a record has no sender.
	await.Eventually(t, "a journal that has started", func() bool { return len(j.entries(t, "_TRANSPORT=driver")) > 0 })
	return j
}

func (j *realJournal) path(socket string) string { return filepath.Join(j.dir, "sockets", socket) }

// stream connects to the journal as systemd does for a service's standard error (sd_journal_stream_fd(3)).
func (j *realJournal) stream(t *testing.T) *os.File {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: j.path("stdout"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "softvpi-stream\n\n6\n1\n0\n0\n0\n"); err != nil {
		t.Fatal(err)
	}
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// entries returns what journalctl finds in the files.
func (j *realJournal) entries(t *testing.T, match ...string) (list []map[string]any) {
	t.Helper()
	args := append([]string{"-D", filepath.Join(j.dir, "files"), "-o", "json", "--all", "--quiet"}, match...)
	out, err := exec.Command("journalctl", args...).Output()
	if err != nil {
		return nil // there are no files yet
	}
	for line := range bytes.Lines(out) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		list = append(list, e)
	}
	return list
}

// TestJournald: systemd's own journald takes records with a field for each attribute, a value of several lines included, and journalctl
// finds them by a field or a priority. What is too long for a datagram comes by the stream.
func TestJournald(t *testing.T) {
	systemtest.Mark(t)
	j := startJournald(t)
	f := j.stream(t)
	var s syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &s); err != nil {
		t.Fatal(err)
	}
	h := For(f, fmt.Sprintf("%d:%d", s.Dev, s.Ino), j.path("socket"), slog.LevelInfo, slog.NewTextHandler(f, nil))
	if _, ok := h.(*Handler); !ok {
		t.Fatalf("the records go to %T", h)
	}
	log := slog.New(h).With("adapter", "left")
	log.Debug("below the level")
	log.WithGroup("link").Warn("went down", "port", 1, "why", "two\nlines = \"quoted\"")
	log.Error("failed", "_pid", 1, "error", strings.Repeat("ä", 3000))
	log.Info("came back")
	long := strings.Repeat("x", 4<<20) // longer than a socket's buffer
	log.Info("long", "text", long)

	await.Eventually(t, "three entries", func() bool { return len(j.entries(t, "SYSLOG_IDENTIFIER=softvpi", "SOFTVPI_ADAPTER=left")) >= 3 })
	all := j.entries(t, "SYSLOG_IDENTIFIER=softvpi")
	if len(all) != 3 {
		t.Fatalf("%d entries, want 3", len(all))
	}
	pid := strconv.Itoa(os.Getpid())
	for i, want := range []map[string]any{
		{"MESSAGE": `went down adapter=left link.port=1 link.why="two\nlines = \"quoted\""`, "PRIORITY": "4", "SOFTVPI_ADAPTER": "left",
			"SOFTVPI_LINK_PORT": "1", "SOFTVPI_LINK_WHY": "two\nlines = \"quoted\"", "_PID": pid, "_TRANSPORT": "journal"},
		{"PRIORITY": "3", "SOFTVPI_ERROR": strings.Repeat("ä", 3000), "SOFTVPI__PID": "1", "_PID": pid},
		{"MESSAGE": "came back adapter=left", "PRIORITY": "6", "SOFTVPI_LINK_PORT": nil},
	} {
		for name, value := range want {
			if all[i][name] != value {
				t.Errorf("entry %d: %s is %.100q, want %.100q", i, name, all[i][name], value)
			}
		}
	}
	if found := j.entries(t, "-p", "warning", "SYSLOG_IDENTIFIER=softvpi"); len(found) != 2 {
		t.Errorf("journalctl -p warning finds %d, want 2", len(found))
	}
	await.Eventually(t, "the long record", func() bool {
		list := j.entries(t, "SYSLOG_IDENTIFIER=softvpi-stream")
		return len(list) > 0 && strings.Contains(fmt.Sprint(list[0]["MESSAGE"]), "msg=long adapter=left text=xxx")
	})
}
