package ring

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestArenaProperty: blocks never overlap, are aligned and zeroed, and everything that is freed can be used again.
func TestArenaProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := NewArena(4<<20, private)
		var live []Block
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				for _, c := range live[i].Bytes {
					if c != live[i].Bytes[0] {
						t.Fatal("blocks overlap")
					}
				}
				if err := a.Free(live[i]); err != nil {
					t.Fatal(err)
				}
				live = append(live[:i], live[i+1:]...)
				continue
			}
			b, err := a.Alloc(rapid.IntRange(1, 300<<10).Draw(t, "size"))
			if errors.Is(err, errExhausted) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.Offset%arenaAlign != 0 || &a.Bytes(b.Arena)[b.Offset] != &b.Bytes[0] {
				t.Fatal("block is not where it says")
			}
			if len(bytes.Trim(b.Bytes, "\x00")) != 0 {
				t.Fatal("block is not zeroed")
			}
			for i := range b.Bytes {
				b.Bytes[i] = byte(len(live) + 1)
			}
			live = append(live, b)
		}
		for _, b := range live {
			if err := a.Free(b); err != nil {
				t.Fatal(err)
			}
			if err := a.Free(b); err == nil {
				t.Fatal("freed twice")
			}
		}
		used, total := a.Used()
		if used != 0 || total > 4<<20 {
			t.Fatalf("used %d of %d", used, total)
		}
		for i := range a.arenas {
			if len(a.arenas[i].free) != 1 || slices.ContainsFunc(a.arenas[i].used, func(w uint64) bool { return w != 0 }) {
				t.Fatalf("arena %d is in pieces: %v", i, a.arenas[i].free)
			}
		}
	})
}
