// Package stream carries the frames of package proto between a program and the driver, for both sides alike: over a Unix
// stream, with descriptors, and through tracks, which are memory that the two share (docs/spec/ipc.md, "Tracks").
package stream
