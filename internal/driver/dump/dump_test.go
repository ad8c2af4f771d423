package dump

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/commandlog"
	"github.com/softvpi/softvpi/internal/events"
)

func TestDirectory(t *testing.T) {
	for value, want := range map[string]string{
		`\SystemRoot\temp\Mlx4_Dump_Me_Now`: "/temp/Mlx4_Dump_Me_Now", `\systemroot\TEMP`: "/temp", `\SystemRoot\temp\a\b`: "/temp/a/b",
		"/var/dumps": "/var/dumps", `\??\/var/dumps/`: "/var/dumps", `\??\C:\DMN_DIR`: "/temp/C/DMN_DIR",
	} {
		if !filepath.IsAbs("/var") {
			t.Skip("other paths")
		}
		if got, err := Directory(value, "/temp"); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", value, got, err, want)
		}
	}
	for _, value := range []string{"", "dumps", `\SystemRoot\temp\..\x`, `\SystemRoot\temporary`, `\SystemRoot\system32`, `..\x`} {
		var wrong *directoryError
		if got, err := Directory(value, "/temp"); !errors.As(err, &wrong) {
			t.Errorf("%s: %q, %v; want a refusal", value, got, err)
		}
	}
}

var six = []File{{Type: "crspace", Text: []byte("a")}, {Type: "crspace", Index: 1}, {Type: "crspace", Index: 2}, {Type: "eq_dump"},
	{Type: "eq_print"}, {Type: "fwtrace"}}

// The files are named as in the manual's example: SingleFunc_4_0_0_p000_eth-down-1_eq_dump_0.log.
func TestSetNames(t *testing.T) {
	dir := t.TempDir()
	n, paths, err := Set{Mode: "SingleFunc", Location: "4_0_0", Tag: "p", Event: "eth-down-1", Keep: 20}.Write(dir, six)
	if err != nil || n != 0 || len(paths) != 6 || filepath.Base(paths[3]) != "SingleFunc_4_0_0_p000_eth-down-1_eq_dump_0.log" {
		t.Fatal("want set 0 with six files, got ", n, paths, err)
	}
	if b, err := os.ReadFile(paths[0]); err != nil || string(b) != "a" {
		t.Errorf("the first file holds %q, %v; want a", b, err)
	}
}

// At most Keep sets of a tag are kept: the oldest is removed with all its files, and nothing else is touched.
func TestSetsAreBounded(t *testing.T) {
	dir := t.TempDir()
	other := Set{Mode: "SingleFunc", Location: "4_0_0", Tag: "u", Event: "ioctl", Keep: 9}
	if _, _, err := other.Write(dir, six); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "SingleFunc_4_0_0_p0xy.txt")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := Set{Mode: "SingleFunc", Location: "4_0_0", Tag: "p", Event: "eth-down-1", Keep: 3}
	past := time.Now().Add(-time.Hour)
	for i, want := range []int{0, 1, 2, 0, 1} {
		n, paths, err := s.Write(dir, six)
		if err != nil || n != want {
			t.Fatalf("set %d has number %d, %v; want %d", i, n, err, want)
		}
		for _, p := range paths { // the files of a set have the same time
			if err := os.Chtimes(p, past, past.Add(time.Duration(i)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		s.Event = "eth-up-1"
	}
	if got := count(t, dir, "*_p00*"); got != 18 {
		t.Errorf("%d files, want 18", got)
	}
	s.Keep = 1
	if n, _, err := s.Write(dir, six); n != 0 || err != nil || count(t, dir, "*_p00*") != 6 {
		t.Errorf("keeping fewer: set %d, %v, %d files", n, err, count(t, dir, "*_p00*"))
	}
	if count(t, dir, "*_u000_*") != 6 || count(t, dir, "*.txt") != 1 || count(t, dir, ".*") != 0 {
		t.Error("the files of others are not there, or a temporary file is")
	}
}

func count(t *testing.T, dir, pattern string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// The first folders are preserved; of the others the oldest is removed for a new one (WinOF 5.50, 4.7.3).
func TestIncidentsAreCyclic(t *testing.T) {
	root := t.TempDir()
	keep := filepath.Join(root, "dmn-notes")
	if err := os.Mkdir(keep, 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2017, 4, 13, 7, 49, 2, 747e6, time.UTC)
	i := Incident{Device: "Ethernet 1", Type: "GENERAL", Source: "SH", Reason: "", Time: at, Total: 4, Preserved: 2}
	var names []string
	for range 7 {
		folder, err := i.Write(root, six)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Base(folder))
		i.Time = i.Time.Add(time.Hour * 24 * 20) // so that the order of names is not that of times
	}
	if names[0] != "dmn-Ethernet_1-GENERAL-SH-NA--4.13.2017-07.49.02.747" {
		t.Error("the first folder is named ", names[0])
	}
	there, err := incidents(root)
	if want := []string{names[0], names[1], names[5], names[6]}; err != nil || strings.Join(there, " ") != strings.Join(want, " ") {
		t.Errorf("the folders are %v, want %v", there, want)
	}
	if count(t, filepath.Join(root, names[6]), "*.log") != 6 || count(t, root, ".*") != 0 || count(t, root, "dmn-notes") != 1 {
		t.Error("files of the newest folder are missing, a temporary one is left, or another directory was removed")
	}
	i.Time = at // the time of the first folder, whose name is taken
	i.Total = 5
	if folder, err := i.Write(root, six); err != nil || filepath.Base(folder) != "dmn-Ethernet_1-GENERAL-SH-NA--4.13.2017-07.49.02.748" {
		t.Error("want the name of the next millisecond, got ", folder, err)
	}
	i.Preserved = 5
	if _, err := i.Write(root, six); !errors.Is(err, errFull) {
		t.Errorf("all folders are preserved: %v, want %v", err, errFull)
	}
	i.Total = 0
	if _, err := i.Write(root, six); !errors.Is(err, errOff) {
		t.Errorf("no folders are to be kept: %v, want %v", err, errOff)
	}
}

func TestText(t *testing.T) {
	s := device.Inspection{
		PKeys:   []uint16{0xffff},
		QPs:     []device.QPInspection{{QPInfo: command.QPInfo{Number: 0x12, SendPosted: 3}, Program: "p", PID: 7}},
		Queues:  []device.EventQueueInspection{{Program: "p", PID: 7, Waiting: 2, Events: []command.Event{{Type: command.EventPortDown}}}},
		LeftOut: 5,
	}
	s.Counters.Name, s.Counters.Transport.RequesterTimeouts = "left", 17
	at := time.Unix(0, 0).UTC()
	counted := false
	for _, c := range Counters(&s) {
		counted = counted || c.Name == "Transport.RequesterTimeouts" && c.Value == 17
	}
	if !counted {
		t.Errorf("no RequesterTimeouts among %v", Counters(&s))
	}
	for _, c := range []struct {
		text []byte
		want []string
	}{
		{Queues(at, &s), []string{"1970-01-01T00:00:00", "5 objects are left out", `eq 0 program "p" pid 7 waiting 2`}},
		{Events(at, &s), []string{"eq 0 pid 7 type 13", "1 more"}},
		{
			Trace([]events.Record{{Source: "mlx5", ID: 0x8007, Message: "up"}},
				[]commandlog.Record{{Command: "CREATE_QP", Failure: command.Busy}, {Command: "MODIFY_QP"}}),
			[]string{"mlx5 0x8007", "CREATE_QP", "object in use", "success"},
		},
	} {
		for _, w := range c.want {
			if !strings.Contains(string(c.text), w) {
				t.Errorf("%q is missing in\n%s", w, c.text)
			}
		}
	}
}
