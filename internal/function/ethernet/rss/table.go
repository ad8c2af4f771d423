package rss

import "fmt"

// MaxEntries is the largest size of an indirection table (NDIS 6.30).
const MaxEntries = 128

// Table is an indirection table: which queue the frames of a hash go to.
type Table struct {
	queues [MaxEntries]uint8
	mask   uint32
	frames [MaxEntries]uint32 // of each entry since the last Balance
}

// TableError is an invalid indirection table.
type TableError struct {
	Field string
	Got   int
	Want  string
}

func (e *TableError) Error() string { return fmt.Sprintf("%s is %d, want %s", e.Field, e.Got, e.Want) }

// Spread sets all entries so that queues 0 to n-1, 1 at least, take turns.
func (t *Table) Spread(n int) {
	t.mask = MaxEntries - 1
	for i := range t.queues {
		t.queues[i] = uint8(i % max(n, 1))
	}
	clear(t.frames[:])
}

// Set replaces the entries, of a number that is a power of two, up to 128, with numbers of n queues. The error is a
// *TableError; nothing has changed then.
func (t *Table) Set(queues []uint8, n int) error {
	if k := len(queues); k == 0 || k > MaxEntries || k&(k-1) != 0 {
		return &TableError{"number of entries", len(queues), "a power of two, up to 128"}
	}
	for i, q := range queues {
		if int(q) >= n {
			return &TableError{fmt.Sprintf("entry %d", i), int(q), fmt.Sprintf("0 to %d", n-1)}
		}
	}
	copy(t.queues[:], queues)
	t.mask = uint32(len(queues) - 1)
	clear(t.frames[:])
	return nil
}

// Entries returns the queues of all entries.
func (t *Table) Entries() []uint8 { return t.queues[:t.mask+1] }

// Queue returns the queue for a hash.
func (t *Table) Queue(hash uint32) int { return int(t.queues[hash&t.mask]) }

// Count counts a frame of a hash, for Balance.
func (t *Table) Count(hash uint32) { t.frames[hash&t.mask]++ }
