package ib

import "testing"

// TestICRCCopyNarrow is TestICRCCopy without vectors of 64 bytes, where the processor has them.
func TestICRCCopyNarrow(t *testing.T) {
	defer func(w bool) { wide = w }(wide)
	wide = false
	TestICRCCopy(t)
}
