//go:build !race

package fake

import "testing"

// Allocs returns the number of allocations per call of f.
func Allocs(f func()) float64 { return testing.AllocsPerRun(100, f) }
