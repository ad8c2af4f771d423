package prefetch

import "unsafe"

// Read prefetches the line at p for reading.
//
//go:noescape
func Read(p unsafe.Pointer)

// Write prefetches the line at p for writing, which takes it away from all other processors.
//
//go:noescape
func Write(p unsafe.Pointer)

// Lines prefetches all lines with some of the size bytes at p for reading.
//
//go:noescape
func Lines(p unsafe.Pointer, size uintptr)
