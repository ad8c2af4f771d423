//go:build !linux

package cable

import "fmt"

func dialLocal(*Config) (session, State, error) {
	return nil, State{}, fmt.Errorf("cables over a socket of the host: %w", ErrNotHere)
}

// gather exists on Linux only.
type gather struct{}

func (*gather) open() error        { return nil }
func (*gather) add(int)            {}
func (*gather) remove(int)         {}
func (*gather) descriptors() []int { return nil }
func (*gather) close()             {}
