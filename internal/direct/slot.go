package direct

import "sync/atomic"

// Slot is where a QP finds its initiator once the driver has introduced it. The zero value is empty.
type Slot struct{ p atomic.Pointer[Initiator] }

// Load returns the initiator, nil if there is none.
func (s *Slot) Load() *Initiator { return s.p.Load() }

// Store sets the initiator.
func (s *Slot) Store(i *Initiator) { s.p.Store(i) }
