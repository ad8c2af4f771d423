package cm

// queue is a first-in first-out queue. The cost of taking depends only on the number taken, and a long
// queue that has become empty frees its memory.
type queue[T any] struct {
	items []T
	head  int
}

const keepCapacity = 256

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) add(v T) { q.items = append(q.items, v) }

// take moves the first values to out and returns their number.
func (q *queue[T]) take(out []T) int {
	if len(q.items) == 0 {
		return 0
	}
	n := copy(out, q.items[q.head:])
	clear(q.items[q.head : q.head+n])
	q.head += n
	if left := len(q.items) - q.head; left > 0 {
		if q.head >= keepCapacity && q.head >= left { // moves at most as many as were taken before
			rest := copy(q.items, q.items[q.head:])
			clear(q.items[rest:])
			q.items, q.head = q.items[:rest], 0
		}
		return n
	}
	q.items, q.head = q.items[:0], 0
	if cap(q.items) > keepCapacity {
		q.items = nil
	}
	return n
}
