package queue

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestRing: packets come out as they went in, in order, copied; there is room for so many as were asked for, and the memory
// of those that are gone is used again.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40).Draw(t, "size")
		keep := rapid.IntRange(0, 40).Draw(t, "keep")
		r := NewRing(size, keep)
		var model [][]byte
		next := byte(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "put") {
				next++
				head, data := bytes.Repeat([]byte{next}, int(next)%7), bytes.Repeat([]byte{next + 1}, int(next)%50)
				split := rapid.Bool().Draw(t, "split")
				ok := r.Put(&Packet{Parts: [][]byte{head, data}, Hash: uint32(next)}, split)
				if ok != (len(model) < size) {
					t.Fatalf("a put with %d of %d: %t", len(model), size, ok)
				}
				if ok {
					model = append(model, append(bytes.Clone(head), data...))
				}
				clear(head)
				clear(data)
				continue
			}
			list := make([]Packet, rapid.IntRange(0, 10).Draw(t, "most"))
			n := r.Peek(list)
			if n != min(len(list), len(model)) {
				t.Fatalf("%d packets, want %d", n, min(len(list), len(model)))
			}
			for i := range n {
				if got := bytes.Join(list[i].Parts, nil); !bytes.Equal(got, model[i]) {
					t.Fatalf("packet %d is %v, want %v", i, got, model[i])
				}
			}
			gone := rapid.IntRange(0, n).Draw(t, "gone")
			r.Remove(gone)
			model = model[gone:]
		}
		if r.Len() != len(model) || r.Room() != size-len(model) {
			t.Fatalf("%d packets and room for %d, want %d", r.Len(), r.Room(), len(model))
		}
	})
	r := NewRing(1000, 1)
	for range 5000 {
		r.Put(&Packet{Parts: [][]byte{make([]byte, 1000)}}, false)
		r.Remove(1)
	}
	if m := r.Memory(); m < 1000 || m > 3000 {
		t.Errorf("%d bytes of memory for one packet at a time", m)
	}
}

// TestRing_Keep: the memory of packets that are gone is kept for so many as are to be, and that of others given back.
func TestRing_Keep(t *testing.T) {
	for keep, want := range map[int]int{0: 0, 10: 10, 100: 50} {
		r := NewRing(50, keep)
		for round := range 3 {
			for range 50 {
				r.Put(&Packet{Parts: [][]byte{make([]byte, 1000)}}, false)
			}
			full := r.Memory()
			for range 5 {
				r.Remove(10)
			}
			if m := r.Memory(); full < 50*1000 || m != full/50*want {
				t.Errorf("round %d: %d of %d bytes are kept, want those of %d packets", round, m, full, want)
			}
		}
	}
}

func BenchmarkPut(b *testing.B) {
	r := NewRing(4096, 1)
	p := Packet{Parts: [][]byte{make([]byte, 1500)}}
	b.ReportAllocs()
	b.SetBytes(1500)
	for b.Loop() {
		r.Put(&p, false)
		r.Remove(1)
	}
}
