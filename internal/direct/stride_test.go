package direct

import "testing"

// TestStridePrefetch: it prefetches where the next messages go if their distances are equal, two thousand bytes
// ahead, and nothing while the distances differ or all messages go to one place.
func TestStridePrefetch(t *testing.T) {
	for name, c := range map[string]struct {
		n    int
		at   []uintptr
		next []uintptr
	}{
		"along memory": {4096, []uintptr{0x10000, 0x11000, 0x12000, 0x13000}, []uintptr{0, 0, 0x13000, 0x14000}},
		"in a queue":   {256, []uintptr{0x10000, 0x10400, 0x10800}, []uintptr{0, 0, 0x12800}},
		"downwards":    {4096, []uintptr{0x13000, 0x12000, 0x11000}, []uintptr{0, 0, 0x10000}},
		"around": {4096, []uintptr{0x10000, 0x11000, 0x12000, 0x10000, 0x11000, 0x12000},
			[]uintptr{0, 0, 0x13000, 0, 0, 0x13000}},
		"to one place":        {4096, []uintptr{0x10000, 0x10000, 0x10000}, []uintptr{0, 0, 0}},
		"to and fro":          {4096, []uintptr{0x10000, 0x11000, 0x10000, 0x11000}, []uintptr{0, 0, 0, 0}},
		"wherever they do go": {1024, []uintptr{0x10000, 0x17000, 0x13000, 0x19000}, []uintptr{0, 0, 0, 0}},
	} {
		var f stridePrefetch
		for i, at := range c.at {
			if next := f.next(at, c.n); next != c.next[i] {
				t.Errorf("%s: after message %d to %#x: %#x, want %#x", name, i, at, next, c.next[i])
			}
		}
	}
}
