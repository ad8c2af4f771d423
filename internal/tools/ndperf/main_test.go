package ndperf

import (
	"runtime"
	"testing"
)

// A tool that polls runs its Go code on one processor, unless the user has set GOMAXPROCS.
func TestOneProcessor(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(before)
	restore := oneProcessor()
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("%d processors, want 1", n)
	}
	if restore(); runtime.GOMAXPROCS(0) != 3 {
		t.Errorf("%d processors after restore, want 3", runtime.GOMAXPROCS(0))
	}
	t.Setenv("GOMAXPROCS", "3")
	if oneProcessor(); runtime.GOMAXPROCS(0) != 3 {
		t.Errorf("%d processors where the user asked for 3", runtime.GOMAXPROCS(0))
	}
}
