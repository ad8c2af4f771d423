package ib

import (
	"testing"

	"pgregory.net/rapid"
)

// drawPSN prefers the edges of the ring: 0, the half-way point and the last number.
func drawPSN(t *rapid.T, name string) PSN {
	edges := rapid.SampledFrom([]PSN{0, 1, 1 << 22, 1<<23 - 1, 1 << 23, 1<<23 + 1, PSNMask - 1, PSNMask})
	return rapid.OneOf(rapid.Map(rapid.Uint32Range(0, PSNMask), func(v uint32) PSN { return PSN(v) }), edges).Draw(t, name)
}

// IBA 9.7.2: PSNs count modulo 2^24.
func TestPSNCountsModulo24Bits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, n := drawPSN(t, "p"), rapid.Uint32().Draw(t, "n")
		if got, want := p.Add(n), PSN((uint64(p)+uint64(n))%(1<<24)); got != want {
			t.Fatalf("%d.Add(%d) = %d, want %d", p, n, got, want)
		}
		if got := p.Add(n).Sub(n); got != p {
			t.Fatalf("%d.Add(%d).Sub(%[2]d) = %d", p, n, got)
		}
		if p.Next() != p.Add(1) || p.Prev() != p.Sub(1) {
			t.Fatalf("next of %d is %d, previous %d", p, p.Next(), p.Prev())
		}
	})
}

func TestPSNDiffUndoesAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, d := drawPSN(t, "p"), rapid.Int32Range(-1<<23, 1<<23-1).Draw(t, "d")
		q := p.Add(uint32(d))
		if got := q.Diff(p); got != d {
			t.Fatalf("%d.Diff(%d) = %d, want %d", q, p, got, d)
		}
		if q.Before(p) != (d < 0) || q.After(p) != (d > 0) {
			t.Fatalf("difference %d: before %v, after %v", d, q.Before(p), q.After(p))
		}
	})
}

// Exactly one of before, equal and after holds, and before is after seen from the other
// side except at the half-way point, which is behind from both sides.
func TestPSNOrderIsTotalInsideTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := drawPSN(t, "p"), drawPSN(t, "q")
		n := 0
		for _, holds := range []bool{p.Before(q), p == q, p.After(q)} {
			if holds {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d and %d: %d relations hold", p, q, n)
		}
		if p.Diff(q) != -1<<23 && p.Before(q) != q.After(p) {
			t.Fatalf("%d before %d is %v but the reverse is %v", p, q, p.Before(q), q.After(p))
		}
	})
}
