package rss

// enough is how many frames between two calls of Balance are work for another queue of the Conservative profile: 50,000 in a
// second if it is called every 100 ms.
const enough = 5000

// Balance moves entries from the busiest of n queues to the least busy one, by the frames counted since the last call, and
// returns how many it moved. It moves what makes both more equal and nothing else, so that flows stay where they are if
// load cannot be divided better; frames that are under way to the old queue may be overtaken, as with any such change.
func (t *Table) Balance(n int) (moved int) {
	var load [256]uint32
	for i, q := range t.Entries() {
		load[q] += t.frames[i]
	}
	for range n {
		most, least := 0, 0
		for q := range n {
			if load[q] > load[most] {
				most = q
			}
			if load[q] < load[least] {
				least = q
			}
		}
		gap := load[most] - load[least]
		best := -1
		for i, q := range t.Entries() {
			if f := t.frames[i]; int(q) == most && f > 0 && f < gap && (best < 0 || off(f, gap) < off(t.frames[best], gap)) {
				best = i
			}
		}
		if best < 0 || gap < load[most]/8 {
			break
		}
		t.queues[best] = uint8(least)
		load[most] -= t.frames[best]
		load[least] += t.frames[best]
		moved++
	}
	clear(t.frames[:])
	return moved
}

// off is by how much moving f frames misses the half of a gap.
func off(f, gap uint32) uint32 {
	if half := gap / 2; f < half {
		return half - f
	} else {
		return f - half
	}
}

// Sufficient returns how many of n queues the frames counted since the last Balance are work for (the Conservative profile).
func (t *Table) Sufficient(n int) int {
	total := uint64(0)
	for i := range t.Entries() {
		total += uint64(t.frames[i])
	}
	return min(n, int(total/enough)+1)
}
