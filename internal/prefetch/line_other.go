//go:build !amd64

package prefetch

import "unsafe"

// Read does nothing here.
func Read(unsafe.Pointer) {}

// Write does nothing here.
func Write(unsafe.Pointer) {}
