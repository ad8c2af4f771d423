package journald

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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

// Journal is systemd's journald in a mount namespace.
type Journal struct {
	dir  string
	said bytes.Buffer // what it says itself; to be read when it has ended
}

// Start starts one, which the end of the test ends, or skips the test.
func Start(t *testing.T) *Journal {
	t.Helper()
	binary := "/lib/systemd/systemd-journald"
	if _, err := os.Stat(binary); err != nil {
		t.Skip("no systemd-journald")
	}
	systemtest.Programs(t, "journalctl", "unshare")
	args := []string{"--mount"}
	if os.Getuid() != 0 {
		args = append(args, "--map-root-user")
	}
	if out, err := exec.Command("unshare", append(args, "mount", "-t", "tmpfs", "none", "/run")...).CombinedOutput(); err != nil {
		t.Skipf("no mount namespace: %s", bytes.TrimSpace(out))
	}
	j := &Journal{dir: t.TempDir()}
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
	await.Eventually(t, "a journal that has started", func() bool { return len(j.Entries(t, "_TRANSPORT=driver")) > 0 })
	return j
}

// Path returns that of one of its sockets: socket, or stdout.
func (j *Journal) Path(socket string) string { return filepath.Join(j.dir, "sockets", socket) }

// Stream connects to the journal as systemd does for a service's standard error (sd_journal_stream_fd(3)).
func (j *Journal) Stream(t *testing.T) *os.File {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: j.Path("stdout"), Net: "unix"})
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

// Entries returns what journalctl finds in the files.
func (j *Journal) Entries(t *testing.T, match ...string) (list []map[string]any) {
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
