package ring

import (
	"encoding/binary"
	"testing"
)

// scribble overwrites ring memory with what the fuzzer gives: runs of offset, length and bytes.
func scribble(mem, how []byte) []byte {
	for len(how) > 4 {
		off := int(binary.LittleEndian.Uint16(how)) % len(mem)
		n := min(int(how[2])%16+1, len(mem)-off, len(how)-3)
		copy(mem[off:off+n], how[3:3+n])
		how = how[3+n:]
	}
	return how
}

// FuzzConsumers: whatever a program writes into its rings, the loop's side never panics and never takes more than the
// ring holds, and after it has found invalid contents it keeps returning the error.
func FuzzConsumers(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte{0, 0, 3, 5, 0, 0, 0, 9}, []byte{64, 0, 3, 0xff, 0xff, 0xff, 0xff, 0})
	f.Add([]byte{0, 0, 3, 1, 0, 0, 0, 0, 1, 4, 4, 8, 255, 0, 0}, []byte{})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		sg, rg, cg, dg := SendGeometry(4, 2, 64), RecvGeometry(4, 2), CQGeometry(4), DoorbellGeometry(4)
		sm, rm, cm, dm := mem(t, sg), mem(t, rg), mem(t, cg), mem(t, dg)
		s, r := must(OpenSend(sm, sg))(t), must(OpenRecv(rm, rg))(t)
		c, d := must(OpenCQ(cm, cg))(t), must(OpenDoorbells(dm, dg))(t)
		for _, how := range [][]byte{one, two} {
			for _, m := range [][]byte{sm, rm, cm, dm} {
				scribble(m, how)
			}
			consume(t, s, r, c, d)
		}
	})
}

func consume(t *testing.T, s *Send, r *Recv, c *CQ, d *Doorbells) {
	var w Work
	var sges [MaxSGE]SGE
	for i := 0; ; i++ {
		ok, err := s.Next(&w)
		if err != nil {
			if again, err2 := s.Next(&w); again || err2 == nil {
				t.Fatal("a corrupt send ring works again")
			}
		}
		if !ok {
			break
		}
		if i >= 4 {
			t.Fatal("more requests than entries")
		}
		if len(w.Inline) > 64 || w.NumSGE > 4 || !w.Op.Valid() {
			t.Fatalf("took the invalid request %+v", w)
		}
		s.Elements(&w, sges[:w.NumSGE])
	}
	if s.taken() > 4 {
		t.Fatal("more taken than entries")
	}
	s.Release(1 + s.taken())
	var rwr RecvWR
	// Receives are given back at once, so that a program may refill the ring meanwhile; here it does not.
	for i := 0; ; i++ {
		ok, err := r.Next(&rwr)
		if !ok || err != nil {
			break
		}
		if i >= 4 || rwr.NumSGE > 3 {
			t.Fatalf("%d receives, %+v", i, rwr.NumSGE)
		}
	}
	if n, _ := r.Pending(); n > 4 {
		t.Fatal("more pending than entries")
	}
	for i := 0; ; i++ {
		if _, err := c.Push(&CQE{}); err != nil {
			break
		}
		if i > 8 { // a program may say once that it polled what was pushed
			t.Fatal("more completions than entries")
		}
	}
	c.Fire()
	if n, _ := c.Unpolled(); n > 4 {
		t.Fatal("more unpolled than entries")
	}
	var out [16]uint32
	if n, _, _ := d.Drain(out[:]); n > 4+1 {
		t.Fatalf("%d doorbells", n)
	}
	d.Sleep()
	d.Awake()
}
