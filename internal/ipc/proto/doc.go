// Package proto is what a program and the driver say to each other: frames, the operations that they are of, the bodies
// that they carry, and how these are laid out (docs/spec/ipc.md). Nothing in it does I/O but ReadFrame, which reads what it is
// given.
package proto
