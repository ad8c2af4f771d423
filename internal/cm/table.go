package cm

// Table maps ids to values. An engine's ids are consecutive, so values of about the same time are close
// together in memory, which they would not be in a map.
type Table[T any] struct {
	pages map[ID]*page[T] // by the upper bits of the ids
	n     int
}

const pageBits = 6

type page[T any] struct {
	at [1 << pageBits]*T
	n  int
}

// NewTable creates an empty table.
func NewTable[T any]() Table[T] { return Table[T]{pages: map[ID]*page[T]{}} }

// Get returns the value of an id, nil if there is none.
func (t *Table[T]) Get(id ID) *T {
	p := t.pages[id>>pageBits]
	if p == nil {
		return nil
	}
	return p.at[id%(1<<pageBits)]
}

// Put sets the value of an id; v must not be nil.
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

// Remove removes the value of an id.
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

// Len returns the number of ids with a value.
func (t *Table[T]) Len() int { return t.n }
