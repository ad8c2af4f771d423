//go:build !race

package ipc

import "testing"

// allocs returns the number of allocations per call of f.
func allocs(f func()) float64 { return testing.AllocsPerRun(100, f) }
