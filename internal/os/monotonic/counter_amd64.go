package monotonic

// ticks reads the time stamp counter, without waiting for the instructions before.
//
//go:noescape
func ticks() uint64

// width returns how many ticks two readings around one of the clock may be apart: up to half a microsecond with counters of
// 2 GHz and more.
func width() uint64 { return 1000 }
