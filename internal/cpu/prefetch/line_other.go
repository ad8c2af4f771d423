//go:build !amd64

package prefetch

import "unsafe"

// Read does nothing on this processor.
func Read(unsafe.Pointer) {}

// Write does nothing on this processor.
func Write(unsafe.Pointer) {}

// Lines does nothing on this processor.
func Lines(unsafe.Pointer, uintptr) {}
