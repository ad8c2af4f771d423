package sim

import "math/bits"

// set is a set of small numbers that is walked in their order, at a cost that depends on how many are in
// it: a bit for each, and a bit for each word of those.
type set struct {
	words, index []uint64
	count        int
}

// grow makes room for the numbers below n.
func (s *set) grow(n int) {
	for len(s.words)*64 < n {
		s.words = append(s.words, 0)
	}
	for len(s.index)*64 < len(s.words) {
		s.index = append(s.index, 0)
	}
}

func (s *set) add(i int) {
	w, bit := i/64, uint64(1)<<(i%64)
	if s.words[w]&bit != 0 {
		return
	}
	s.words[w] |= bit
	s.index[w/64] |= 1 << (w % 64)
	s.count++
}

// next removes the first number from i on and returns it, or -1 if there is none.
func (s *set) next(i int) int {
	w := i / 64
	if w >= len(s.words) {
		return -1
	}
	if m := s.words[w] >> (i % 64); m != 0 {
		return s.remove(i + bits.TrailingZeros64(m))
	}
	for w++; w < len(s.words); w = (w/64 + 1) * 64 {
		if m := s.index[w/64] >> (w % 64); m != 0 {
			w += bits.TrailingZeros64(m)
			return s.remove(w*64 + bits.TrailingZeros64(s.words[w]))
		}
	}
	return -1
}

func (s *set) remove(i int) int {
	w := i / 64
	if s.words[w] &^= 1 << (i % 64); s.words[w] == 0 {
		s.index[w/64] &^= 1 << (w % 64)
	}
	s.count--
	return i
}
