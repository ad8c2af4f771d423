package trace

const (
	recordBytes  = 40
	chunkRecords = 1 << 12
)

// Ring is a circular buffer of records with one writer at a time. It takes memory as it is filled, up to its size, and then overwrites
// the oldest records. A nil ring records nothing.
type Ring struct {
	levels [Components]Level
	chunks [][]Record
	most   int // chunks
	next   int // record of the ring that is written next
	total  uint64
}

// newRing returns a ring of about so many bytes, at least one chunk.
func newRing(levels [Components]Level, bytes int) *Ring {
	return &Ring{levels: levels, most: max(1, bytes/(recordBytes*chunkRecords))}
}

// Wants reports whether the ring takes records of that component and level.
func (r *Ring) Wants(c Component, l Level) bool { return r != nil && l <= r.levels[c] }

// Add writes a record that the ring wants.
func (r *Ring) Add(x Record) {
	if r.next == len(r.chunks)*chunkRecords {
		if len(r.chunks) < r.most {
			r.chunks = append(r.chunks, make([]Record, chunkRecords))
		} else {
			r.next = 0
		}
	}
	r.chunks[r.next/chunkRecords][r.next%chunkRecords] = x
	r.next++
	r.total++
}

// kept returns how many records the ring has.
func (r *Ring) kept() int { return int(min(r.total, uint64(len(r.chunks)*chunkRecords))) }

// records returns the records, the oldest first.
func (r *Ring) records() []Record {
	list, _ := r.since(0)
	return list
}

// since returns the records behind the first total, the oldest first, and how many of these are overwritten already.
func (r *Ring) since(total uint64) (list []Record, lost uint64) {
	kept := r.kept()
	n := int(min(uint64(kept), r.total-total))
	if n == 0 {
		return nil, r.total - total
	}
	list = make([]Record, 0, n)
	for at := (r.next - n + kept) % kept; len(list) < n; at = (at + 1) % kept {
		list = append(list, r.chunks[at/chunkRecords][at%chunkRecords])
	}
	return list, r.total - total - uint64(n)
}
