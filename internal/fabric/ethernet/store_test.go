package ethernet

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
)

// TestStore: frames of any length stay as they are until they are dropped, also while others come and go, are copied, and get and
// lose tags; memory that is given back is used again.
func TestStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Store
		type kept struct {
			b    []byte
			more int
		}
		frames := map[Ref]kept{}
		one := func(t *rapid.T) Ref {
			var all []Ref
			for r := range Ref(len(s.frames)) {
				if _, there := frames[r]; there {
					all = append(all, r)
				}
			}
			if len(all) == 0 {
				t.Skip("no frames")
			}
			return rapid.SampledFrom(all).Draw(t, "frame")
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				b := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")
				b = append(b, bytes.Repeat([]byte{0x5a}, rapid.IntRange(0, 1600).Draw(t, "rest"))...)
				more := rapid.SampledFrom([]int{-1, 0, 1000, mostBytes}).Draw(t, "more")
				r := s.Put(b, more)
				if ok := len(b) >= eth.EthernetLen && more >= 0 && len(b)+more <= mostBytes; (r != 0) != ok {
					t.Fatalf("%d and %d bytes: %d", len(b), more, r)
				}
				if r != 0 {
					frames[r] = kept{b, more}
				}
			},
			"drop": func(t *rapid.T) {
				r := one(t)
				s.Drop(r)
				delete(frames, r)
			},
			"again": func(t *rapid.T) {
				r := one(t)
				frames[s.again(r)] = kept{bytes.Clone(frames[r].b), frames[r].more}
			},
			"tag": func(t *rapid.T) {
				r := one(t)
				b := frames[r].b
				if b[12] == 0x81 && b[13] == 0 && len(b) >= eth.EthernetLen+eth.VLANLen {
					s.untag(r)
					b = append(bytes.Clone(b[:12]), b[16:]...)
				} else if s.frames[r].start >= 4 {
					s.tag(r, 0x1234)
					b = append(append(bytes.Clone(b[:12]), 0x81, 0, 0x12, 0x34), b[12:]...)
				}
				frames[r] = kept{b, frames[r].more}
			},
			"": func(t *rapid.T) {
				for r, k := range frames {
					if got := s.Append(nil, r); !bytes.Equal(got, k.b) || s.Len(r) != len(k.b)+k.more {
						t.Fatalf("frame %d is % x, want % x", r, got, k.b)
					}
					if !bytes.HasPrefix(k.b, s.Head(r)) {
						t.Fatalf("frame %d begins with % x", r, s.Head(r))
					}
				}
				cells := 0
				for r := range frames {
					cells += (int(s.frames[r].start) + int(s.frames[r].kept) + cellSize - 1) / cellSize
				}
				for c := s.free; c != 0; c = s.frames[c].next {
					cells++
				}
				if s.Frames() != len(frames) || cells != max(len(s.frames), 1)-1 {
					t.Fatalf("%d frames, want %d; %d cells are in use or free, of %d", s.Frames(), len(frames), cells, len(s.frames))
				}
			},
		})
	})
}
