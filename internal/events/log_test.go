package events

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// open opens a log that accepts every event.
func open(t testing.TB, cfg Config) *Log {
	t.Helper()
	if cfg.Burst == 0 {
		cfg.Burst = 1 << 30
	}
	l := Open(cfg)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func all(t testing.TB, l *Log, q Query) Page {
	t.Helper()
	p, err := l.Query(q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// names returns the adapters of events, by which these tests tell them apart.
func names(records []Record) []string {
	var out []string
	for _, r := range records {
		out = append(out, r.Adapter)
	}
	return out
}

func up(i int) Event { return LinkUp{Adapter: fmt.Sprint(i), Port: 1} }

func numbers(from, to int) []string {
	var out []string
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

func TestEventsOutliveTheLog(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 11, 20, 12, 0, 0, 5e8, time.UTC)
	l := open(t, Config{Directory: dir, Now: func() time.Time { return at }})
	l.Raise(catalogue.MLX4, LinkDown{"Ethernet 1", 1})
	before := all(t, l, Query{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, Config{Directory: dir})
	if d := cmp.Diff(before, all(t, l, Query{})); d != "" || l.Kept() != nil {
		t.Error(d, l.Kept())
	}
	l.Raise(0, DriverStopped{})
	p := all(t, l, Query{})
	if len(p.Events) != 2 || p.Events[0].Sequence != 1 || p.Events[1].Sequence != 2 || p.Next != 2 || !p.Events[0].Time.Equal(at) {
		t.Errorf("%+v, want the events 1 and 2 with their times", p)
	}
}

// TestLogIsBounded: the log stays within its bound and keeps the newest events.
func TestLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	const limit = 64 << 10
	l := open(t, Config{Directory: dir, MaxBytes: limit})
	const n = 3000
	for i := range n {
		l.Raise(0, up(i))
	}
	var size int64
	files, _ := filepath.Glob(filepath.Join(dir, "*"+suffix))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > limit || size < limit/2 || len(files) > segmentsKept {
		t.Errorf("%d bytes in %d files", size, len(files))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p := all(t, open(t, Config{Directory: dir, MaxBytes: limit}), Query{})
	kept := len(p.Events)
	if kept < 100 || kept >= n {
		t.Fatalf("%d events were kept, want some but not all", kept)
	}
	if d := cmp.Diff(numbers(n-kept, n-1), names(p.Events)); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

var errFull = errors.New("no space left on device")

func TestManyRaise(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Directory: dir})
	const writers, each = 8, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				l.Raise(0, up(w*each+i))
				if i%50 == 0 {
					_, _ = l.Query(Query{After: 1})
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, r := range all(t, open(t, Config{Directory: dir}), Query{}).Events {
		if r.Sequence != uint64(i+1) || seen[r.Adapter] {
			t.Fatalf("event %d: %+v", i, r)
		}
		seen[r.Adapter] = true
	}
	if len(seen) != writers*each {
		t.Errorf("%d events", len(seen))
	}
}

// TestFollow: a reader that follows gets every event once, however slow it is, and learns how many it missed.
func TestFollow(t *testing.T) {
	l := open(t, Config{Directory: t.TempDir(), MaxBytes: 64 << 10, create: unsynced})
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	go func() {
		for i := range 3000 {
			l.Raise(0, up(i))
		}
		l.Raise(0, up(-1))
	}()
	var after, got, missed uint64
	for last := ""; last != "-1"; {
		if err := l.Wait(ctx, after); err != nil {
			t.Fatal(err)
		}
		p := all(t, l, Query{After: after, Limit: 7})
		for _, r := range p.Events {
			if after > 0 && p.Missed == 0 && r.Sequence != after+1 && p.Events[0].Sequence == r.Sequence {
				t.Fatalf("%d after %d, and %d missed", r.Sequence, after, p.Missed)
			}
			got, last = got+1, r.Adapter
		}
		missed += p.Missed
		if after == 0 {
			missed += p.Events[0].Sequence - 1 // the newest events were asked for
		}
		after = p.Next
	}
	if got+missed != 3001 {
		t.Errorf("%d events and %d missed", got, missed)
	}
	gone, stop := context.WithCancel(ctx)
	stop()
	if err := l.Wait(gone, after); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() { _ = l.Close() }()
	if err := l.Wait(ctx, after); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

func TestQuery(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := open(t, Config{Directory: t.TempDir(), Now: func() time.Time { at = at.Add(time.Minute); return at.Add(-time.Minute) }})
	l.Raise(0, DriverStarted{"1", 2, 2})              // event 1, 12:00
	l.Raise(0, LinkDown{"a", 1})                      // event 2, 12:01 and so on
	l.Raise(catalogue.MLX4, LinkDown{"b", 1})         // 3
	l.Raise(0, LinkUp{"a", 1})                        // 4
	l.Raise(0, SelfCheckFailed{errors.New("broken")}) // 5
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	first := all(t, l, Query{}).Events[0].Time
	for _, c := range []struct {
		name string
		q    Query
		want []uint64
	}{
		{"all", Query{}, []uint64{1, 2, 3, 4, 5}},
		{"source", Query{Sources: []string{"MLX5"}}, []uint64{2, 4}},
		{"sources", Query{Sources: []string{"mlx5", "mlx4eth63"}}, []uint64{2, 3, 4}},
		{"id", Query{IDs: []uint32{0x8008}}, []uint64{2}},
		{"severity", Query{Severity: []string{"warning", "Error"}}, []uint64{2, 3, 5}},
		{"adapter", Query{Adapters: []string{"a"}}, []uint64{2, 4}},
		{"both", Query{Adapters: []string{"a"}, Severity: []string{"Information"}}, []uint64{4}},
		{"newest", Query{Limit: 2}, []uint64{4, 5}},
		{"after", Query{After: 1, Limit: 2}, []uint64{2, 3}},
		{"after filtered", Query{After: 1, Limit: 1, Severity: []string{"Information"}}, []uint64{4}},
		{"since", Query{Since: first.Add(time.Nanosecond)}, []uint64{2, 3, 4, 5}},
		{"until", Query{Until: first.Add(time.Nanosecond)}, []uint64{1}},
		{"long ago", Query{Until: noon}, nil},
	} {
		var got []uint64
		for _, r := range all(t, l, c.q).Events {
			got = append(got, r.Sequence)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, d)
		}
	}
	for _, q := range []Query{{Severity: []string{"loud"}}, {Limit: -1}, {Limit: MaxPage + 1}} {
		var field *FieldError
		if _, err := l.Query(q); !errors.As(err, &field) || field.Allowed == "" {
			t.Errorf("%+v: %v, want an error with what is allowed", q, err)
		}
	}
}

// TestEventsOfTheOtherGeneration: an event that the adapter's generation does not have is not logged (WinOF has no
// Identification).
func TestEventsOfTheOtherGeneration(t *testing.T) {
	l := open(t, Config{})
	l.Raise(catalogue.MLX4, Identification{Adapter: "a"})
	l.Raise(catalogue.MLX5, Identification{Adapter: "b"})
	if d := cmp.Diff([]string{"b"}, names(all(t, l, Query{}).Events)); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestRepeatsAreCounted: an event that comes too often is counted instead, separately for each adapter.
func TestRepeatsAreCounted(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := open(t, Config{Burst: 3, Window: time.Minute, Now: func() time.Time { return now }})
	for range 10 {
		l.Raise(0, LinkUp{"a", 1})
	}
	l.Raise(0, LinkUp{"b", 1})
	l.Raise(0, LinkDown{"a", 1})
	now = now.Add(2 * time.Minute)
	l.Raise(0, LinkUp{"a", 1})
	got := []string{}
	for _, r := range all(t, l, Query{}).Events {
		got = append(got, r.Symbol+" "+r.Adapter+" "+r.Fields["Count"])
	}
	want := []string{"LinkUp a ", "LinkUp a ", "LinkUp a ", "LinkUp b ", "LinkDown a ", "Repeated a 7", "LinkUp a "}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestRepeatsAreToldAtTheEnd: repeats that are held back are logged when the log is closed.
func TestRepeatsAreToldAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Directory: dir, Burst: 1})
	for range 5 {
		l.Raise(0, LinkUp{"a", 1})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p := all(t, open(t, Config{Directory: dir}), Query{})
	if len(p.Events) != 2 || p.Events[1].Fields["Count"] != "4" {
		t.Errorf("the events are %+v, want one and its 4 repeats", p.Events)
	}
}
