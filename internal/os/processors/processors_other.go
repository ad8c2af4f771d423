//go:build !linux

package processors

import (
	"errors"
	"runtime"
)

// List returns the processors, in the order of their numbers, one at least.
func List() []Processor {
	numbers := make([]int, runtime.NumCPU())
	for n := range numbers {
		numbers[n] = n
	}
	return onNodes(numbers, nil)
}

// Bind binds the calling thread to processors. Here that cannot be.
func Bind([]int) error { return errors.ErrUnsupported }
