package direct

import "sync/atomic"

// Slot is where a QP finds its initiator once the driver has introduced it. The
// zero value has none.
type Slot struct{ p atomic.Pointer[Initiator] }

// Load returns the initiator, nil where there is none.
func (s *Slot) Load() *Initiator { return s.p.Load() }

// Store sets it.
func (s *Slot) Store(i *Initiator) { s.p.Store(i) }
