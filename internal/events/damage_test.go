package events

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unsynced makes files that are fast and not durable.
func unsynced(path string) (file, error) {
	f, err := createFile(path)
	return unsyncedFile{f}, err
}

type unsyncedFile struct{ file }

func (unsyncedFile) Sync() error { return nil }

// TestCutAnywhere: a log that is cut at any byte keeps every event before the cut, reports what it dropped, and
// continues.
func TestCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Directory: dir, create: unsynced})
	var ends []int64 // where the events end
	path := ""
	for i := range 5 {
		l.Raise(0, up(i))
		files, _ := filepath.Glob(filepath.Join(dir, "*"+suffix))
		path = files[0]
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		intact, at := 0, int64(0)
		for _, end := range ends {
			if end <= int64(cut) {
				intact, at = intact+1, end
			}
		}
		l := Open(Config{Directory: dir, create: unsynced})
		l.Raise(0, up(99))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		want := numbers(0, intact-1)
		if lost := int64(cut) - at; lost > 0 {
			want = append(want, "")
			if p := all(t, l, Query{}); p.Events[intact].Symbol != "LogRepaired" || p.Events[intact].Fields["Bytes"] != fmt.Sprint(lost) {
				t.Errorf("cut at %d: %+v", cut, p.Events[intact])
			}
		}
		want = append(want, "99")
		again := Open(Config{Directory: dir, create: unsynced})
		if d := cmp.Diff(want, names(all(t, again, Query{}).Events)); d != "" {
			t.Errorf("cut at %d: %s", cut, d)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamageInTheMiddle: damage in the middle costs the events it hits, once.
func TestDamageInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Directory: dir})
	for i := range 9 {
		l.Raise(0, up(i))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"+suffix))
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 0x10
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l = open(t, Config{Directory: dir})
		p := all(t, l, Query{})
		if len(p.Events) != 9 || p.Events[8].Symbol != "LogRepaired" {
			t.Fatalf("events %v, want 9 with LogRepaired as the last", names(p.Events))
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// device is a disk that is full when the test says so.
type device struct {
	mu   sync.Mutex
	full bool
	torn int // bytes that a write on the full disk still writes
}

type diskFile struct {
	file
	d *device
}

func (d *device) create(path string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return nil, errFull
	}
	f, err := createFile(path)
	return &diskFile{f, d}, err
}

func (f *diskFile) Write(b []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.full {
		n, _ := f.file.Write(b[:min(f.d.torn, len(b))])
		return n, errFull
	}
	return f.file.Write(b)
}

func (d *device) set(full bool) { d.mu.Lock(); defer d.mu.Unlock(); d.full = full }

// TestFullDisk: on a full disk no event that fits into memory is lost: the log reports the problem, continues, and
// writes the events when there is room.
func TestFullDisk(t *testing.T) {
	for _, torn := range []int{0, 7} {
		d := &device{torn: torn}
		dir := t.TempDir()
		l := open(t, Config{Directory: dir, create: d.create})
		l.Raise(0, up(0))
		d.set(true)
		l.Raise(0, up(1))
		l.Raise(0, up(2))
		p := all(t, l, Query{})
		if d := cmp.Diff([]string{"0", "1", "", "2"}, names(p.Events)); d != "" || p.NotKept != errFull.Error() ||
			!errors.Is(l.Kept(), errFull) {
			t.Fatalf("events %s, not kept for %q; want all four and %v", d, p.NotKept, errFull)
		}
		if s := p.Events[2].Symbol; s != "NothingKept" {
			t.Errorf("the problem was reported by %s, want NothingKept", s)
		}
		d.set(false)
		l.Raise(0, up(3))
		if l.Kept() != nil {
			t.Error("the log is not kept: ", l.Kept())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"0", "1", "", "2", "3"}, names(all(t, open(t, Config{Directory: dir}), Query{}).Events)); d != "" {
			t.Error("(-want +got):\n", d)
		}
	}
}

// TestNoDirectory: if its directory cannot be made the log is in memory.
func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, Config{Directory: filepath.Join(file, "events")})
	l.Raise(0, up(1))
	p := all(t, l, Query{})
	if len(p.Events) != 2 || p.Events[0].Symbol != "NothingKept" || !strings.Contains(p.Events[0].Message, file) || p.NotKept == "" {
		t.Errorf("%+v, want NothingKept with the file's name as the first of 2 events", p)
	}
	for i := range 5 * recentKept {
		l.Raise(0, up(i))
	}
	if n := len(all(t, l, Query{}).Events); n < recentKept || n > 2*recentKept {
		t.Errorf("%d events in memory", n)
	}
}

func FuzzScanFrames(f *testing.F) {
	r, _ := newRecord(0, up(1))
	b, _ := r.encode()
	frame := appendFrame(nil, b)
	f.Add(frame)
	f.Add(append(append([]byte("noise"), frame...), frame[:len(frame)-3]...))
	f.Add(mark)
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		end, damaged := scanFrames(b, func(Record) { n++ })
		if end < 0 || damaged < 0 || end > len(b) || damaged > end || end == 0 && n > 0 {
			t.Fatalf("end %d, damaged %d of %d", end, damaged, len(b))
		}
		again := 0
		scanFrames(append(b, frame...), func(Record) { again++ })
		if again < n {
			t.Errorf("%d records, and %d with one behind them", n, again)
		}
	})
}
