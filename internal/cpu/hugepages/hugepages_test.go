package hugepages

import (
	"math"
	"testing"
)

func TestWholePages(t *testing.T) {
	for _, c := range []struct{ base, length, from, to uint64 }{
		{0, 0, 0, 0},
		{0, Size - 1, 0, 0},
		{0, Size, 0, Size},
		{Size, 3*Size + 5, Size, 4 * Size},
		{Size + 1, 2 * Size, 2 * Size, 3 * Size},
		{Size + 1, Size, 0, 0},
		{math.MaxUint64 - 4, 10, 0, 0},
		{math.MaxUint64 - Size, Size, 0, 0},
	} {
		if from, to := whole(c.base, c.length); from != c.from || to != c.to {
			t.Errorf("whole(%#x, %#x) = %#x, %#x, want %#x, %#x", c.base, c.length, from, to, c.from, c.to)
		}
	}
}
