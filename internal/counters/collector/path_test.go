package collector

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/counters"
)

// TestPathsThatSelectNothing: a path that selects nothing is an error that lists what exists.
func TestPathsThatSelectNothing(t *testing.T) {
	b := newBench(t, "Ethernet 1")
	for _, path := range []string{`\Nonsense(*)\*`, `\RDMA Activity(*)\Nonsense`, `\RDMA Activity(Ethernet 2)\*`,
		`\Mellanox WinOF Bus Counters(*)\*`, ""} {
		var e *counters.PathError
		if _, err := b.c.Snapshot("rdma_activity", path); !errors.As(err, &e) || e.Path != path {
			t.Errorf("%q: %v, want an error that names this path", path, err)
		}
	}
}
