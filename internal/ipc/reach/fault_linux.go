package reach

import (
	"runtime"
	"runtime/debug"
)

// faultsArePanics makes memory faults of this goroutine panics, and returns a function to be deferred,
// which restores the setting and turns such a panic into *ok = false.
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
