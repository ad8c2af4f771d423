package reach

import (
	"runtime"
	"runtime/debug"
)

// faultsArePanics makes faults of this goroutine's memory accesses panics, and
// returns what must be deferred: it takes that back, and turns such a panic into
// *ok = false.
func faultsArePanics(ok *bool) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		r := recover()
		if r == nil {
			return
		}
		if _, fault := r.(runtime.Error); !fault { // addresses below a page have no Addr method
			panic(r)
		}
		*ok = false
	}
}
