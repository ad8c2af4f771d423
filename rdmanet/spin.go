package rdmanet

import (
	"runtime"
	"sync"

	"github.com/softvpi/softvpi/internal/wait"
)

// spin decides whether a leader looks for results for a while before it sleeps: if there is one busy connection, whose
// peer answered that soon the last time, and another processor for those who have something to do. Otherwise looking
// takes the processor from the very goroutines and programs that are waited for.
type spin struct {
	mu   sync.Mutex
	of   wait.Spinner
	conn *Conn // that had all recent results
}

// got records that there was a result for c.
func (s *spin) got(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		s.conn = c
		s.of.Forget()
	}
}

// begin begins a wait and reports whether to look for a while.
func (s *spin) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of.Policy = wait.Of(wait.Leader).On(runtime.GOMAXPROCS(0))
	return s.of.Begin(wait.Now()) != wait.Arm
}

// again does what follows a look that found nothing, and reports whether to look again.
func (s *spin) again() bool { return s.of.Again(wait.Now, false) }

// end ends a wait in which the leader slept.
func (s *spin) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of.End(wait.Now())
}
