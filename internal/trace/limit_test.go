package trace

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSessionKeepsItsSize: however much is recorded, by the loop and by others, the buffers never have more than the session's size, of
// what they may have most is used, and the oldest records go.
func TestSessionKeepsItsSize(t *testing.T) {
	s := begin(t, Config{Levels: Uniform(Verbose), Bytes: LeastBytes})
	records := 3 * LeastBytes / recordBytes
	for i := range records {
		s.Loop.Add(Record{At: int64(2 * i), Component: Loop, A: uint64(i)})
		s.Add(Record{At: int64(2*i + 1), Component: Driver, A: uint64(i)})
		if u := s.Usage(); u.Bytes > LeastBytes || u.Records*recordBytes > u.Bytes || uint64(u.Records)+u.Overwritten != uint64(2*i+2) {
			t.Fatalf("after %d records %+v", 2*i+2, u)
		}
	}
	if u := s.Usage(); u.Bytes < LeastBytes*3/4 {
		t.Errorf("%+v of %d bytes are used", u, LeastBytes)
	}
	list := s.Records(func(f func()) { f() })
	for i, r := range list {
		if want := int64(2*records - len(list) + i); r.At != want {
			t.Fatalf("record %d of %d is of %d, want %d: the newest", i, len(list), r.At, want)
		}
	}
}

// spare is what a file's writer may keep free: a separator before the first event, and digits of the number that it leaves out.
const spare = 8

// TestFilesKeepTheirSize: a file has at most as many bytes as it may, and of the records the newest that fit: one more would not. It
// says how many it leaves out, and is as whole as any.
func TestFilesKeepTheirSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []Record
		at := int64(rapid.Uint32().Draw(t, "first")) * int64(time.Second)
		for i := range rapid.IntRange(0, 60).Draw(t, "records") {
			at += int64(rapid.IntRange(0, 1<<30).Draw(t, "later"))
			list = append(list, Record{At: at, Took: int64(rapid.IntRange(0, 3000).Draw(t, "took")), A: uint64(i), Level: Error,
				Adapter: int16(rapid.IntRange(-1, 3).Draw(t, "adapter")), Component: Component(rapid.IntRange(0, int(Components)-1).Draw(t, "component"))})
		}
		for name, write := range map[string]Writer{"JSON": WriteJSON, "text": WriteText} {
			var whole, part bytes.Buffer
			if n, err := write(&whole, list, plain{}, 1<<20); n != 0 || err != nil {
				t.Fatalf("%s: %d left out, %v", name, n, err)
			}
			most := rapid.IntRange(200, 200+whole.Len()).Draw(t, "most")
			n, err := write(&part, list, plain{}, most)
			if err != nil || part.Len() > most {
				t.Fatalf("%s: %d of %d bytes, %v", name, part.Len(), most, err)
			}
			if kept := written(t, name, part.Bytes()); len(kept) != len(list)-n || len(kept) > 0 && kept[0] != uint64(n) {
				t.Fatalf("%s: records %v are kept of %d, %d left out", name, kept, len(list), n)
			}
			if n == 0 {
				continue
			}
			var again bytes.Buffer // what is written for the size that was used has as many records, and for less than that fewer
			if m, err := write(&again, list, plain{}, part.Len()+spare); m > n || err != nil {
				t.Fatalf("%s: %d records are left out of %d bytes, and %d if there is room for %d: %v", name, n, part.Len(), m, part.Len()+spare, err)
			}
			if m, err := write(&again, list, plain{}, part.Len()-1); m <= n && n < len(list) || err != nil {
				t.Fatalf("%s: %d records are left out of %d bytes, and %d if there is room for one byte less: %v", name, n, part.Len(), m, err)
			}
		}
	})
}

// written returns the numbers of the records in a file.
func written(t *rapid.T, kind string, file []byte) (list []uint64) {
	if kind == "text" {
		for text := range strings.Lines(string(file)) {
			var args struct{ A uint64 }
			if err := json.Unmarshal([]byte(text[strings.IndexByte(text, '{'):]), &args); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			list = append(list, args.A)
		}
		return list
	}
	var doc struct {
		Events []struct {
			Ph   string
			Args map[string]any
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(file, &doc); err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	for _, e := range doc.Events {
		if e.Ph != "M" {
			list = append(list, uint64(e.Args["a"].(float64)))
		}
	}
	return list
}
