//go:build !linux

package verbs

import "runtime"

// yield gives the processor to other goroutines.
func yield() { runtime.Gosched() }
