package events

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// listener opens a socket as journald and syslogd have it.
func listener(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func receive(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(await.Limit))
	b := make([]byte, 64<<10)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestSystemLog(t *testing.T) {
	dir := t.TempDir()
	journal, syslog := filepath.Join(dir, "journal"), filepath.Join(dir, "syslog")
	if _, err := openSystemLog(AnyLog, journal, syslog, nil); err == nil {
		t.Error("a system log was opened though there is none")
	}
	var field *FieldError
	if _, err := OpenSystemLog("paper", nil); !errors.As(err, &field) {
		t.Errorf("paper as a system log: %v, want an error about the field", err)
	}

	at := listener(t, syslog)
	s, err := openSystemLog(AnyLog, journal, syslog, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Journal() {
		t.Error("syslog is taken for the journal")
	}
	l := open(t, Config{Sinks: []func(Record){s.Write}})
	l.Raise(0, LinkDown{"Ethernet\n1", 1})
	if line := receive(t, at); !regexp.MustCompile(`^<28>[A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d softvpi\[\d+\]: mlx5 0x8008: Ethernet 1: the link is down\. [^\n]*$`).MatchString(line) {
		t.Errorf("the line is %q, want a warning in the form of syslog", line)
	}
	// The owner of the socket is restarted.
	at.Close()
	if err := os.Remove(syslog); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	at = listener(t, syslog)
	l.Raise(0, LinkUp{"Ethernet 1", 1})
	if line := receive(t, at); !strings.HasPrefix(line, "<30>") {
		t.Errorf("the line is %q, want the priority <30>", line)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	s.Close()
	if s.lost.Load() != 0 {
		t.Errorf("%d lost", s.lost.Load())
	}

	at = listener(t, journal)
	if s, err = openSystemLog(AnyLog, journal, syslog, nil); err != nil {
		t.Fatal(err)
	}
	if !s.Journal() {
		t.Error("the journal is not known")
	}
	r, _ := newRecord(0, SelfCheckFailed{errors.New("broken")})
	s.Write(r)
	lines := strings.Split(strings.TrimSuffix(receive(t, at), "\n"), "\n")
	for _, want := range []string{
		"MESSAGE=" + r.Message, "PRIORITY=3", "SYSLOG_IDENTIFIER=softvpi", "SOFTVPI_SOURCE=softvpi", "SOFTVPI_ID=4",
		"SOFTVPI_SYMBOL=SelfCheckFailed", "SOFTVPI_CAUSE=broken",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %q in %q", want, lines)
		}
	}
	s.Close()
}

// TestSystemLogThatIsSlow: a system log that accepts nothing holds up nobody.
func TestSystemLogThatIsSlow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	listener(t, path) // and never read
	s, err := openSystemLog(Syslog, "", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := newRecord(0, LinkUp{"Ethernet 1", 1})
	for range 3 * waitingForSystemLog {
		s.Write(r)
	}
	if s.lost.Load() == 0 {
		t.Error("all of them wait")
	}
	go s.Close() // what waits takes its time
}
