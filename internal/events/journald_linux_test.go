package events

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/os/journal"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/journald"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestJournald: systemd's own journald takes every event with its fields, as journalctl finds them, one of which is longer than a datagram.
func TestJournald(t *testing.T) {
	systemtest.Mark(t)
	j := journald.Start(t)
	s, err := openSystemLog(Journald, j.Path("socket"), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	down, _ := newRecord(0, LinkDown{"left", 1})
	up, _ := newRecord(0, LinkUp{"left", 1})
	failed, _ := newRecord(0, SelfCheckFailed{fmt.Errorf("two\nlines")})
	long := failed
	long.Fields = map[string]string{"cause": strings.Repeat("line\n", 1<<19), "two words": "x"}
	all := []Record{down, up, failed, long}
	for i := range all {
		all[i].Sequence = uint64(i + 1)
		s.Write(all[i])
	}
	await.Eventually(t, "the events", func() bool { return len(j.Entries(t, "SYSLOG_IDENTIFIER=softvpi")) >= len(all) })
	entries := j.Entries(t, "SYSLOG_IDENTIFIER=softvpi")
	if len(entries) != len(all) || s.lost.Load() != 0 {
		t.Fatalf("%d entries and %d lost of %d events", len(entries), s.lost.Load(), len(all))
	}
	for i, r := range all {
		want := map[string]string{
			"MESSAGE": r.Message, "PRIORITY": strconv.Itoa(priority(r.Severity)), "SYSLOG_FACILITY": "3", "SOFTVPI_SOURCE": r.Source,
			"SOFTVPI_ID": fmt.Sprint(r.ID), "SOFTVPI_SYMBOL": r.Symbol, "SOFTVPI_SEQUENCE": fmt.Sprint(i + 1),
			"MESSAGE_ID": catalogue.MessageID(r.Source, r.ID), "_PID": fmt.Sprint(os.Getpid()),
		}
		for name, value := range r.Fields {
			want["SOFTVPI_"+strings.ToUpper(strings.ReplaceAll(name, " ", "_"))] = value
		}
		for name, value := range want {
			if got := entries[i][name]; got != value {
				t.Errorf("event %s: %s is %.100q, want %.100q", r.Symbol, name, got, value)
			}
		}
	}
	if found := j.Entries(t, "MESSAGE_ID="+catalogue.MessageID(down.Source, down.ID)); len(found) != 1 {
		t.Errorf("by its MESSAGE_ID journalctl finds %v", found)
	}
	if found := j.Entries(t, "-p", "warning", "SOFTVPI_SYMBOL=LinkDown"); len(found) != 1 || found[0]["PRIORITY"] != "4" {
		t.Errorf("journalctl finds %v", found)
	}
}

// TestJournalCatalog: systemd compiles the message catalogue, and has an entry for every event; each of its fields is one that the events
// have in the journal.
func TestJournalCatalog(t *testing.T) {
	systemtest.Mark(t)
	journalctl, err := exec.LookPath("journalctl")
	if err != nil {
		t.Skip("no journalctl")
	}
	root := t.TempDir()
	for _, d := range []string{"usr/lib/systemd/catalog", "var/lib/systemd/catalog"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text := catalogue.JournalCatalog()
	if err := os.WriteFile(filepath.Join(root, "usr/lib/systemd/catalog/softvpi.catalog"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(journalctl, "--root="+root, "--update-catalog").CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	if info, err := os.Stat(filepath.Join(root, "var/lib/systemd/catalog/database")); err != nil || info.Size() == 0 {
		t.Fatalf("no database: %v", err)
	}
	if n := strings.Count(text, "\n-- "); n != len(catalogue.Events()) {
		t.Errorf("%d entries of %d events", n, len(catalogue.Events()))
	}
	out, err := exec.Command(journalctl, "--root="+root, "--dump-catalog").Output()
	if err != nil {
		t.Fatal(err)
	}
	for i := range catalogue.Events() {
		e := &catalogue.Events()[i]
		id := catalogue.MessageID(e.Source, e.ID)
		_, rest, ok := strings.Cut(string(out), "-- "+id+"\n")
		rest, _, _ = strings.Cut(rest, "\n-- ")
		if !ok || !strings.HasPrefix(rest, "Subject: "+e.Symbol+": ") || !strings.Contains(rest, "Defined-By: SoftVPI\n") {
			t.Errorf("%s, %s, is explained as %q", e.Symbol, id, rest)
		}
		for _, f := range e.Fields {
			if !strings.Contains(rest, "@"+journal.FieldName(f)+"@") {
				t.Errorf("%s: no field %s in %q", e.Symbol, journal.FieldName(f), rest)
			}
		}
	}
}

// TestJournalThatVanishes: events while nobody listens are counted as lost, hold up nobody, and those after it was started anew arrive.
func TestJournalThatVanishes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	at := listener(t, path)
	s, err := openSystemLog(Journald, path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, _ := newRecord(0, LinkUp{"left", 1})
	arrives := func(at *net.UnixConn, sequence uint64) {
		t.Helper()
		r.Sequence = sequence
		s.Write(r)
		if got := receive(t, at); !strings.Contains(got, fmt.Sprint("\nSOFTVPI_SEQUENCE=", sequence, "\n")) {
			t.Errorf("event %d arrives as %q", sequence, got)
		}
	}
	arrives(at, 1)
	_ = at.Close()
	_ = os.Remove(path)
	s.Write(r)
	await.Eventually(t, "an event that gets nowhere", func() bool { return s.lost.Load() == 1 })
	arrives(listener(t, path), 2)
}
