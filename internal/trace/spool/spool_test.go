package spool

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/trace"
)

// image is a file in memory.
type image struct{ b []byte }

func (m *image) WriteAt(p []byte, at int64) (int, error) {
	if end := int(at) + len(p); end > len(m.b) {
		m.b = append(m.b, make([]byte, end-len(m.b))...)
	}
	return copy(m.b[at:], p), nil
}

func (m *image) read(t interface{ Fatal(...any) }) Contents {
	c, err := Read(bytes.NewReader(m.b), int64(len(m.b)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// numbered returns records whose numbers go on from first.
func numbered(first, n int) (list []trace.Record) {
	for i := range n {
		list = append(list, trace.Record{At: int64(first + i), Took: 1, A: uint64(first + i), B: 3, Code: 7, Adapter: -1,
			Component: trace.Link, Level: trace.Verbose})
	}
	return list
}

// TestNewestRecordsAreKept: of any batches the newest are read back unchanged and without a gap, the file never exceeds its size, and
// what is missing is counted.
func TestNewestRecordsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(Least, Least+3*blockSize).Draw(t, "size")
		var m image
		w, err := Create(&m, Header{Session: "s", Program: "v", Adapters: []string{"a"}}, size)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for range rapid.IntRange(0, 12).Draw(t, "batches") {
			n := rapid.IntRange(1, 3000).Draw(t, "records")
			if err := w.Append(numbered(total, n), 0); err != nil {
				t.Fatal(err)
			}
			total += n
		}
		c := m.read(t)
		if int64(len(m.b)) > size || c.Session != "s" || c.Program != "v" || !slices.Equal(c.Adapters, []string{"a"}) {
			t.Errorf("%d bytes of %d, header %+v", len(m.b), size, c.Header)
		}
		if n, gone := w.Usage(); n != len(c.Records) || gone != c.Overwritten {
			t.Errorf("the writer has %d records and %d are gone, the file %d and %d", n, gone, len(c.Records), c.Overwritten)
		}
		if want := numbered(int(c.Overwritten), total-int(c.Overwritten)); !slices.Equal(c.Records, want) || c.Damaged != 0 {
			t.Errorf("%d records behind %d that are overwritten, of %d; %d damaged", len(c.Records), c.Overwritten, total, c.Damaged)
		}
		if least := int(size-pageSize-2*blockSize)/recordSize*9/10 - 2*total/1000; c.Overwritten > 0 && len(c.Records) < least {
			t.Errorf("%d records are kept, want %d at least", len(c.Records), least)
		}
	})
}

// TestHalfWritten: of a file that is cut anywhere, or in which a byte is another, what is whole is read, in order and unchanged.
func TestHalfWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m image
		w, err := Create(&m, Header{Session: "s"}, Least)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			n := rapid.IntRange(1, 1500).Draw(t, "records")
			if err := w.Append(numbered(total, n), 0); err != nil {
				t.Fatal(err)
			}
			total += n
		}
		if rapid.Bool().Draw(t, "cut") {
			m.b = m.b[:rapid.IntRange(pageSize, len(m.b)).Draw(t, "length")]
		} else {
			m.b[rapid.IntRange(pageSize, len(m.b)-1).Draw(t, "byte")] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		}
		last := int64(-1)
		for _, r := range m.read(t).Records {
			if r.At <= last || r.At >= int64(total) || r != numbered(int(r.At), 1)[0] {
				t.Fatalf("record %+v behind %d", r, last)
			}
			last = r.At
		}
	})
}

// TestDamageIsCounted: frames that are missing between others are counted, and so is what was lost before it could be written.
func TestDamageIsCounted(t *testing.T) {
	var m image
	w, err := Create(&m, Header{}, Least)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // the second begins in the first block and ends in the second
		if err := w.Append(numbered(i*1000, 1000), uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	m.b[pageSize+frameHead+1000*recordSize+50] ^= 1 // in the second frame: what of that call is in the first block
	c := m.read(t)
	if c.Damaged != 1 || c.Lost != 2 || len(c.Records) >= 3000 || len(c.Records) < 2000 {
		t.Errorf("%d records, %d frames damaged, %d records lost", len(c.Records), c.Damaged, c.Lost)
	}
}

// TestForeignFiles: what is no file of a trace is refused.
func TestForeignFiles(t *testing.T) {
	for _, b := range []string{"", "SVPITRC1", "{}", string(make([]byte, 9000)), signature + "\x02\x00\x00\x00\x00\x00\x00\x00{}"} {
		if _, err := Read(bytes.NewReader([]byte(b)), int64(len(b))); err == nil {
			t.Errorf("%.20q is accepted", b)
		}
	}
	if _, err := Read(bytes.NewReader([]byte("PK")), 2); !errors.Is(err, ErrNoTrace) {
		t.Errorf("%v", err)
	}
	if _, err := Create(&image{}, Header{}, Least-1); err == nil {
		t.Error("a file too small for two blocks is begun")
	}
}

// FuzzRead: no file makes Read panic.
func FuzzRead(f *testing.F) {
	var m image
	w, err := Create(&m, Header{Session: "s"}, Least)
	if err != nil || w.Append(numbered(0, 10), 1) != nil {
		f.Fatal(err)
	}
	f.Add(m.b)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = Read(bytes.NewReader(b), int64(len(b)))
	})
}
