package remote

import (
	"context"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
)

// mostEvents is how many events wait for a program that does not take them.
const mostEvents = 1 << 16

// inbox holds events until somebody takes them, mostEvents at most: later ones are lost, as in the driver.
type inbox struct {
	mu   sync.Mutex
	list []command.Event
	err  error
	news chan struct{} // holds a token when there are some
}

func newInbox() *inbox { return &inbox{news: make(chan struct{}, 1)} }

func (b *inbox) signal() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// put adds events.
func (b *inbox) put(list []command.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, list[:min(len(list), max(0, mostEvents-len(b.list)))]...)
	b.signal()
}

// end has everybody told that nothing more comes.
func (b *inbox) end(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = why
	b.signal()
}

// take returns at least one event, waiting until ctx ends.
func (b *inbox) take(ctx context.Context, out []command.Event) (int, error) {
	for {
		if n, err := b.some(out); n > 0 || err != nil {
			return n, err
		}
		select {
		case <-b.news:
		case <-ctx.Done():
			return 0, command.Ended(ctx)
		}
	}
}

func (b *inbox) some(out []command.Event) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := copy(out, b.list)
	b.list = append(b.list[:0], b.list[n:]...)
	if len(b.list) > 0 || b.err != nil {
		b.signal()
	}
	if n > 0 {
		return n, nil
	}
	return 0, b.err
}
