package tagmatch

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/ring"
)

// kept is an entry of the model.
type kept struct {
	handle    uint32
	id        uint64
	tag, mask uint64
	ready     bool
}

// TestListAgainstModel: whatever programs and messages do, in any order, the oldest buffer is taken that matches and was
// added when, or before, the program had dealt with all unexpected messages.
func TestListAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 12).Draw(t, "max")
		l := New(most)
		var model []kept
		var handles []uint32
		unexpected, behind, id := uint32(0), false, uint64(0)
		tags, masks := rapid.Uint64Range(0, 7), rapid.SampledFrom([]uint64{0, 1, 4, 6, 7})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				id++
				e := Entry{ID: id, Tag: tags.Draw(t, "tag"), Mask: masks.Draw(t, "mask")}
				h, err := l.Add(&e)
				if full := len(model) == most; (err != nil) != full {
					t.Fatalf("%v with %d of %d entries", err, len(model), most)
				}
				if err != nil {
					return
				}
				if h == 0 || slices.ContainsFunc(model, func(k kept) bool { return k.handle == h }) {
					t.Fatalf("handle %#x is 0 or in use", h)
				}
				handles = append(handles, h)
				model = append(model, kept{h, id, e.Tag, e.Mask, !behind})
			},
			"remove": func(t *rapid.T) {
				if len(handles) == 0 {
					return
				}
				h := rapid.SampledFrom(handles).Draw(t, "handle")
				i := slices.IndexFunc(model, func(k kept) bool { return k.handle == h })
				if got := l.Remove(h); got != (i >= 0) {
					t.Fatalf("removing %#x: %v", h, got)
				}
				if i >= 0 {
					model = slices.Delete(model, i, i+1)
				}
			},
			"message": func(t *rapid.T) {
				tag := tags.Draw(t, "tag")
				i := slices.IndexFunc(model, func(k kept) bool { return k.ready && tag&k.mask == k.tag })
				switch got := l.Match(tag); {
				case i < 0 && got != nil, i >= 0 && (got == nil || got.ID != model[i].id):
					t.Fatalf("tag %d matches %+v, want entry %d of %+v", tag, got, i, model)
				case i >= 0:
					model = slices.Delete(model, i, i+1)
				default:
					l.Unexpected()
					unexpected, behind = unexpected+1, true
				}
			},
			"sync": func(t *rapid.T) {
				count := rapid.Uint32Range(0, unexpected+1).Draw(t, "count")
				l.Sync(count)
				behind = count != unexpected
				for i := range model {
					model[i].ready = model[i].ready || !behind
				}
			},
			"": func(t *rapid.T) {
				if l.Len() != len(model) || l.InSync() == behind {
					t.Fatalf("%d entries, in sync %v; want %d, %v", l.Len(), l.InSync(), len(model), !behind)
				}
			},
		})
	})
}

// TestNoOvertaking is the race of the specification: of two messages with one tag, the first comes before its buffer is
// added. The second must not take that buffer, as the program finds the first for it.
func TestNoOvertaking(t *testing.T) {
	l := New(4)
	if l.Match(9) != nil {
		t.Fatal("a buffer in an empty list")
	}
	l.Unexpected()
	h, _ := l.Add(&Entry{ID: 1, Tag: 9, Mask: ^uint64(0)})
	if l.Match(9) != nil {
		t.Fatal("the second message has overtaken the first")
	}
	l.Unexpected()
	if !l.Remove(h) { // the program has found the first message for it
		t.Fatal("the buffer was taken")
	}
	l.Sync(2)
	if _, err := l.Add(&Entry{ID: 2, Tag: 9, Mask: ^uint64(0)}); err != nil || l.Match(9) == nil {
		t.Fatal("in sync, a buffer is not matched")
	}
}

// TestHandlesDoNotReturn: the handle of a buffer that is gone names no other one.
func TestHandlesDoNotReturn(t *testing.T) {
	l := New(MaxTags)
	seen := map[uint32]bool{}
	for range 3 * MaxTags {
		h, err := l.Add(&Entry{})
		if err != nil || seen[h] || !l.Remove(h) || l.Remove(h) {
			t.Fatalf("handle %#x, %v, seen %v", h, err, seen[h])
		}
		seen[h] = true
	}
}

func TestRoom(t *testing.T) {
	e := Entry{NumSGE: 2, SGE: [MaxSGE]ring.SGE{{Length: 1<<32 - 1}, {Length: 2}, {Length: 100}}}
	if e.Room() != 1<<32+1 {
		t.Errorf("room %d", e.Room())
	}
}

// TestHeaders: the layout of struct ibv_tmh and struct ibv_rvh.
func TestHeaders(t *testing.T) {
	b := make([]byte, HeaderLen+RendezvousLen)
	Header(b).Encode(Rendezvous, 0x11223344, 0x0102030405060708)
	Where(b[HeaderLen:]).Encode(0x1112131415161718, 0x21222324, 0x31323334)
	want := []byte{1, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 1, 2, 3, 4, 5, 6, 7, 8,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34}
	if !bytes.Equal(b, want) {
		t.Fatalf("% x, want % x", b, want)
	}
	op, h, w := Parse(b, true)
	if op != Rendezvous || h.App() != 0x11223344 || h.Tag() != 0x0102030405060708 || w.Addr() != 0x1112131415161718 ||
		w.RKey() != 0x21222324 || w.Length() != 0x31323334 {
		t.Errorf("%d % x % x", op, h, w)
	}
	for _, c := range []struct {
		name  string
		b     []byte
		whole bool
		op    Op
	}{
		{"part of a rendezvous", b, false, NoTag},
		{"rendezvous without its second header", b[:31], true, NoTag},
		{"rendezvous with too much data", append(bytes.Clone(b), make([]byte, MaxRequest)...), true, NoTag},
		{"short message", b[:15], true, NoTag},
		{"eager, the first packet", append([]byte{3}, b[1:]...), false, Eager},
		{"fin", append([]byte{2}, b[1:]...), true, Fin},
		{"no tag", append([]byte{0}, b[1:]...), true, NoTag},
		{"unknown", append([]byte{4}, b[1:]...), true, NoTag},
	} {
		if op, _, _ := Parse(c.b, c.whole); op != c.op {
			t.Errorf("%s: %d, want %d", c.name, op, c.op)
		}
	}
}

// FuzzParse: no bytes make it panic, and what has headers has them whole.
func FuzzParse(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, true)
	f.Add(append([]byte{1}, make([]byte, 40)...), true)
	f.Fuzz(func(t *testing.T, b []byte, whole bool) {
		op, h, w := Parse(b, whole)
		if (op == NoTag) != (h == nil) || (op == Rendezvous) != (w != nil) || op > Eager {
			t.Fatalf("% x: %d % x % x", b, op, h, w)
		}
		if h != nil && (len(h) != HeaderLen || h.Op() != op) || w != nil && len(w) != RendezvousLen {
			t.Fatalf("% x: %d % x % x", b, op, h, w)
		}
	})
}

// BenchmarkMatch is the price of a message for the last of many buffers.
func BenchmarkMatch(b *testing.B) {
	l := New(MaxTags)
	for i := range MaxTags {
		if _, err := l.Add(&Entry{Tag: uint64(i), Mask: ^uint64(0)}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		e := *l.Match(MaxTags - 1)
		if _, err := l.Add(&e); err != nil {
			b.Fatal(err)
		}
	}
}
