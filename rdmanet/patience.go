package rdmanet

import (
	"runtime"
	"sync"
	"time"
)

// spinTime is how long a leader looks for results before it sleeps, at most. Waking up takes about half of that.
const spinTime = 40 * time.Microsecond

// patience decides whether a leader looks for results for a while before it sleeps: if there is one busy connection,
// whose peer answered that soon the last time, and another processor for those who have something to do. Otherwise
// looking takes the processor from the very goroutines and programs that are waited for.
type patience struct {
	began time.Time // of the wait; the leader's

	mu    sync.Mutex
	conn  *Conn // that had all recent results
	worth bool  // the last wait was short
}

// got records that there was a result for c.
func (s *patience) got(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		s.conn, s.worth = c, false
	}
}

// begin begins a wait and reports whether to look for a while.
func (s *patience) begin() bool {
	s.began = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worth && runtime.GOMAXPROCS(0) > 1
}

// waits reports whether the wait is still short.
func (s *patience) waits() bool { return time.Since(s.began) < spinTime }

// end ends a wait in which the leader slept.
func (s *patience) end() {
	short := s.waits()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worth = short
}
