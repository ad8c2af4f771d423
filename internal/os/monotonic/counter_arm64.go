package monotonic

// ticks reads the generic timer, without waiting for the instructions before.
//
//go:noescape
func ticks() uint64

// frequency returns how often a second it ticks.
//
//go:noescape
func frequency() uint64

// width returns how many ticks two readings around one of the clock may be apart: up to half a microsecond.
func width() uint64 { return frequency()/2_000_000 + 2 }
