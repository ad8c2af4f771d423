package ring

import (
	"errors"
	"fmt"
	"slices"
	"sort"
)

// errExhausted means that the arenas may not grow any further.
var errExhausted = errors.New("ring memory is used up")

const (
	arenaAlign = 64
	minArena   = 256 << 10
	maxArena   = 64 << 20 // arenas are larger only for a single larger block
)

// Block is a piece of an arena.
type Block struct {
	Arena  uint32
	Offset uint64
	Bytes  []byte
}

// Backing creates the memory of arena id: size bytes, zeroed and aligned to at least 64 bytes.
type Backing func(id uint32, size int) ([]byte, error)

// Arena allocates blocks in a few arenas; a new one is twice as large as the one before. Not safe for
// concurrent use.
type Arena struct {
	backing Backing
	limit   uint64
	total   uint64
	used    uint64
	arenas  []arena
}

type arena struct {
	bytes []byte
	free  []span   // by offset, never adjacent
	used  []uint64 // one bit for each arenaAlign bytes: a block begins there
}

type span struct{ off, size uint64 }

// NewArena creates an allocator whose arenas together take at most limit bytes.
func NewArena(limit uint64, backing Backing) *Arena {
	return &Arena{limit: limit, backing: backing}
}

// Alloc returns a zeroed block of size bytes, aligned to 64. Errors are errExhausted and those of the
// backing.
func (a *Arena) Alloc(size int) (Block, error) {
	if size <= 0 || uint64(size) > a.limit {
		return Block{}, fmt.Errorf("%w: block of %d bytes: allowed: 1 to %d", errExhausted, size, a.limit)
	}
	n := aligned(size)
	for i := range a.arenas {
		if off, ok := a.arenas[i].take(n); ok {
			return a.block(i, off, n, size), nil
		}
	}
	if err := a.grow(n); err != nil {
		return Block{}, err
	}
	i := len(a.arenas) - 1
	off, _ := a.arenas[i].take(n)
	return a.block(i, off, n, size), nil
}

func aligned(size int) uint64 { return (uint64(size) + arenaAlign - 1) &^ (arenaAlign - 1) }

func (a *Arena) block(i int, off, n uint64, size int) Block {
	b := a.arenas[i].bytes[off : off+n : off+n]
	clear(b)
	a.used += n
	return Block{Arena: uint32(i), Offset: off, Bytes: b[:size:size]}
}

func (a *Arena) grow(n uint64) error {
	size := uint64(minArena)
	if k := len(a.arenas); k > 0 {
		size = min(uint64(len(a.arenas[k-1].bytes))*2, maxArena)
	}
	const page = 64 << 10
	size = max(size, (n+page-1)&^(page-1))
	if left := a.limit - a.total; size > left {
		size = left &^ (arenaAlign - 1)
	}
	if size < n {
		return fmt.Errorf("%w: %d of %d bytes taken", errExhausted, a.total, a.limit)
	}
	b, err := a.backing(uint32(len(a.arenas)), int(size))
	if err != nil {
		return err
	}
	a.total += size
	a.arenas = append(a.arenas, arena{bytes: b, free: []span{{0, size}}, used: make([]uint64, (size/arenaAlign+63)/64)})
	return nil
}

// Free frees a block that Alloc returned.
func (a *Arena) Free(b Block) error {
	if uint64(b.Arena) >= uint64(len(a.arenas)) {
		return fmt.Errorf("%w: arena %d", errLayout, b.Arena)
	}
	r := &a.arenas[b.Arena]
	if !r.begins(b.Offset) {
		return fmt.Errorf("%w: no block at %d", errLayout, b.Offset)
	}
	n := aligned(len(b.Bytes))
	r.give(b.Offset, n)
	a.used -= n
	return nil
}

// Bytes returns the memory of arena id, nil if there is none.
func (a *Arena) Bytes(id uint32) []byte {
	if uint64(id) >= uint64(len(a.arenas)) {
		return nil
	}
	return a.arenas[id].bytes
}

// Len returns the number of arenas.
func (a *Arena) Len() int { return len(a.arenas) }

// Used returns the number of bytes in blocks, and in all arenas.
func (a *Arena) Used() (used, total uint64) { return a.used, a.total }

func (r *arena) take(n uint64) (uint64, bool) {
	for i := range r.free {
		s := &r.free[i]
		if s.size < n {
			continue
		}
		off := s.off
		s.off, s.size = s.off+n, s.size-n
		if s.size == 0 {
			r.free = slices.Delete(r.free, i, i+1)
		}
		word, bit := r.mark(off)
		*word |= bit
		return off, true
	}
	return 0, false
}

// mark returns the word and the bit that say whether a block begins at off, a multiple of arenaAlign.
func (r *arena) mark(off uint64) (word *uint64, bit uint64) {
	return &r.used[off/arenaAlign/64], 1 << (off / arenaAlign % 64)
}

func (r *arena) begins(off uint64) bool {
	if off%arenaAlign != 0 || off >= uint64(len(r.bytes)) {
		return false
	}
	word, bit := r.mark(off)
	return *word&bit != 0
}

func (r *arena) give(off, n uint64) {
	word, bit := r.mark(off)
	*word &^= bit
	i := sort.Search(len(r.free), func(i int) bool { return r.free[i].off > off })
	if i > 0 && r.free[i-1].off+r.free[i-1].size == off {
		r.free[i-1].size += n
		if i < len(r.free) && off+n == r.free[i].off {
			r.free[i-1].size += r.free[i].size
			r.free = slices.Delete(r.free, i, i+1)
		}
		return
	}
	if i < len(r.free) && off+n == r.free[i].off {
		r.free[i] = span{off, r.free[i].size + n}
		return
	}
	r.free = slices.Insert(r.free, i, span{off, n})
}
