package journal

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/journald"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestJournald: systemd's own journald takes records with a field for each attribute, a value of several lines included, and journalctl
// finds them by a field or a priority. What is too long for a datagram comes in a file.
func TestJournald(t *testing.T) {
	systemtest.Mark(t)
	j := journald.Start(t)
	f := j.Stream(t)
	var s syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &s); err != nil {
		t.Fatal(err)
	}
	h := For(f, fmt.Sprintf("%d:%d", s.Dev, s.Ino), j.Path("socket"), slog.LevelInfo, slog.NewTextHandler(f, nil))
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

	await.Eventually(t, "four entries", func() bool { return len(j.Entries(t, "SYSLOG_IDENTIFIER=softvpi", "SOFTVPI_ADAPTER=left")) >= 4 })
	all := j.Entries(t, "SYSLOG_IDENTIFIER=softvpi")
	if len(all) != 4 {
		t.Fatalf("%d entries, want 4", len(all))
	}
	pid := strconv.Itoa(os.Getpid())
	for i, want := range []map[string]any{
		{"MESSAGE": `went down adapter=left link.port=1 link.why="two\nlines = \"quoted\""`, "PRIORITY": "4", "SOFTVPI_ADAPTER": "left",
			"SOFTVPI_LINK_PORT": "1", "SOFTVPI_LINK_WHY": "two\nlines = \"quoted\"", "_PID": pid, "_TRANSPORT": "journal"},
		{"PRIORITY": "3", "SOFTVPI_ERROR": strings.Repeat("ä", 3000), "SOFTVPI__PID": "1", "_PID": pid},
		{"MESSAGE": "came back adapter=left", "PRIORITY": "6", "SOFTVPI_LINK_PORT": nil},
		{"MESSAGE": "long adapter=left text=" + long, "PRIORITY": "6", "SOFTVPI_TEXT": long, "_PID": pid, "_TRANSPORT": "journal"},
	} {
		for name, value := range want {
			if all[i][name] != value {
				t.Errorf("entry %d: %s is %.100q, want %.100q", i, name, all[i][name], value)
			}
		}
	}
	if found := j.Entries(t, "-p", "warning", "SYSLOG_IDENTIFIER=softvpi"); len(found) != 2 {
		t.Errorf("journalctl -p warning finds %d, want 2", len(found))
	}
}
