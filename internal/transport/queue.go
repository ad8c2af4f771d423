package transport

// queue is a first-in first-out queue that keeps its memory.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

// push adds a zero value.
func (q *queue[T]) push() *T {
	if q.head > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	if len(q.items) < cap(q.items) {
		q.items = q.items[:len(q.items)+1]
	} else {
		var zero T
		q.items = append(q.items, zero)
	}
	return &q.items[len(q.items)-1]
}

func (q *queue[T]) take(out []T) int {
	if len(q.items) == 0 {
		return 0
	}
	n := copy(out, q.items[q.head:])
	clear(q.items[q.head : q.head+n])
	q.head += n
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return n
}

// filter keeps the items for which keep returns true.
func (q *queue[T]) filter(keep func(*T) bool) {
	n := q.head
	for i := q.head; i < len(q.items); i++ {
		if keep(&q.items[i]) {
			q.items[n] = q.items[i]
			n++
		}
	}
	clear(q.items[n:])
	q.items = q.items[:n]
}

// pool keeps values for reuse, so that the data path allocates only when more of them are in use than ever
// before.
type pool[T any] struct {
	free []*T
}

func (p *pool[T]) get() *T {
	if n := len(p.free); n > 0 {
		v := p.free[n-1]
		p.free = p.free[:n-1]
		return v
	}
	block := make([]T, 16)
	for i := 1; i < len(block); i++ {
		p.free = append(p.free, &block[i])
	}
	return &block[0]
}

func (p *pool[T]) put(v *T) { p.free = append(p.free, v) }
