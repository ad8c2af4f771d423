package driver

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/verbs"
)

// TestUntilRouted: what a fabric may not have yet is tried again, as long as there is time, and what it was in the end is said; anything
// else is the result at once.
func TestUntilRouted(t *testing.T) {
	wrong, unrouted := errors.New("wrong bytes"), fmt.Errorf("connect: %w", verbs.ErrHostUnreachable)
	for _, c := range []struct {
		name  string
		come  []error // of the attempts
		want  error
		tries int
	}{
		{"at once", []error{nil}, nil, 1},
		{"wrong", []error{wrong, nil}, wrong, 1},
		{"routed later", []error{unrouted, fmt.Errorf("connect: %w", verbs.ErrTimedOut), nil}, nil, 3},
		{"never", []error{unrouted, unrouted, context.Canceled}, unrouted, 3},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		err := untilRouted(ctx, 0, func() error {
			n++
			if c.come[n-1] == context.Canceled {
				cancel()
			}
			return c.come[n-1]
		})
		if cancel(); err != c.want || n != c.tries {
			t.Errorf("%s: %v after %d attempts, want %v after %d", c.name, err, n, c.want, c.tries)
		}
	}
}
