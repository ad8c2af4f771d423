package cm

// Table finds what belongs to ids. An engine's ids follow each other, so those of one time lie together: in the
// memory of a map each would be somewhere else.
type Table[T any] struct {
	pages map[ID]*page[T] // by the upper bits of the ids
	n     int
}

const pageBits = 6

type page[T any] struct {
	at [1 << pageBits]*T
	n  int
}

// NewTable makes an empty table.
func NewTable[T any]() Table[T] { return Table[T]{pages: map[ID]*page[T]{}} }

// Get returns what belongs to an id; nil: nothing.
func (t *Table[T]) Get(id ID) *T {
	p := t.pages[id>>pageBits]
	if p == nil {
		return nil
	}
	return p.at[id%(1<<pageBits)]
}

// Put makes v, which is not nil, what belongs to an id.
func (t *Table[T]) Put(id ID, v *T) {
	p := t.pages[id>>pageBits]
	if p == nil {
		p = new(page[T])
		t.pages[id>>pageBits] = p
	}
	at := &p.at[id%(1<<pageBits)]
	if *at == nil {
		p.n++
		t.n++
	}
	*at = v
}

// Remove has nothing belong to an id.
func (t *Table[T]) Remove(id ID) {
	p := t.pages[id>>pageBits]
	if p == nil || p.at[id%(1<<pageBits)] == nil {
		return
	}
	p.at[id%(1<<pageBits)] = nil
	t.n--
	if p.n--; p.n == 0 {
		delete(t.pages, id>>pageBits)
	}
}

// Len is how many ids something belongs to.
func (t *Table[T]) Len() int { return t.n }
