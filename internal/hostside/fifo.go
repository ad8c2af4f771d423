package hostside

import "sync/atomic"

// fifo passes items from one thread to another. Its length is a power of two.
type fifo[T any] struct {
	items      []T
	put, taken atomic.Uint32
}

func newFIFO[T any](n int) fifo[T] { return fifo[T]{items: make([]T, n)} }

func (f *fifo[T]) len() int { return int(f.put.Load() - f.taken.Load()) }

// room returns the place of the next item, nil if there is none; then it is added.
func (f *fifo[T]) room() *T {
	if f.len() == len(f.items) {
		return nil
	}
	return &f.items[int(f.put.Load())&(len(f.items)-1)]
}

func (f *fifo[T]) added() { f.put.Add(1) }

// first returns the place of the first item, nil if there is none; then it is removed.
func (f *fifo[T]) first() *T {
	if f.len() == 0 {
		return nil
	}
	return &f.items[int(f.taken.Load())&(len(f.items)-1)]
}

func (f *fifo[T]) removed() { f.taken.Add(1) }

// push adds an item. It returns false if there is no room.
func (f *fifo[T]) push(x T) bool {
	at := f.room()
	if at == nil {
		return false
	}
	*at = x
	f.added()
	return true
}

// pop removes the first item, which is the zero value if there is none.
func (f *fifo[T]) pop() (x T) {
	if at := f.first(); at != nil {
		x, *at = *at, x
		f.removed()
	}
	return x
}
