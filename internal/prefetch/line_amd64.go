package prefetch

import "unsafe"

// Read asks for the line at p to read it.
//
//go:noescape
func Read(p unsafe.Pointer)

// Write asks for the line at p to write to it, which takes it away from all others.
//
//go:noescape
func Write(p unsafe.Pointer)
