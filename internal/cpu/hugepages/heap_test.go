package hugepages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The heap is what may be written of the mappings without a gap around an address, with and without names (proc(5)).
func TestHeapOf(t *testing.T) {
	const maps = `00400000-00aba000 r-xp 00000000 fe:00 9977961      /usr/bin/softvpi
0135b000-033a9000 rw-p 00000000 00:00 0
0c81f000-0c840000 rw-p 00000000 00:00 0                         [heap]
14145c000000-14145e400000 ---p 00000000 00:00 0
14145e400000-141462800000 rw-p 00000000 00:00 0                 [anon: Go: heap]
141462800000-141464000000 rw-p 00000000 00:00 0
141464000000-141468000000 ---p 00000000 00:00 0                 [anon: Go: heap reservation]
141468000000-141468100000 rw-s 00000000 00:01 1036              /memfd:rings (deleted)
141468100000-141468200000 rw-p 00000000 00:00 0
7ffd0000-7ffe0000 rw-p 00000000 00:00 0                         [stack]
not a mapping
ffff-eeee rw-p 00000000 00:00 0
`
	heap := []stretch{{0x14145e400000, 0x141464000000}}
	for _, c := range []struct {
		at   uint64
		want []stretch
	}{
		{0x14145e400000, heap},
		{0x141463ffffff, heap},
		{0x14145c000000, heap}, // reserved, and of the same arenas
		{0x0135b000, []stretch{{0x0135b000, 0x033a9000}}},
		{0x141468100000, []stretch{{0x141468100000, 0x141468200000}}},
		{0x00400000, nil}, // a file's
		{0x0c81f000, nil}, // C's
		{0x141468000000, nil},
		{0x7ffd0000, nil},
		{1, nil},
	} {
		if diff := cmp.Diff(c.want, heapOf(strings.NewReader(maps), c.at), cmp.AllowUnexported(stretch{})); diff != "" {
			t.Errorf("around %#x (-want +got):\n%s", c.at, diff)
		}
	}
}

// FuzzHeapOf: whatever the system prints, stretches are in order, and nothing panics.
func FuzzHeapOf(f *testing.F) {
	f.Add("1000-2000 rw-p 0 00:00 0\n2000-3000 ---p 0 00:00 0 [anon: x]\n", uint64(0x1800))
	f.Fuzz(func(t *testing.T, maps string, at uint64) {
		var end uint64
		for _, x := range heapOf(strings.NewReader(maps), at) {
			if x.from < end || x.to <= x.from {
				t.Fatalf("%#x to %#x after %#x", x.from, x.to, end)
			}
			end = x.to
		}
	})
}
