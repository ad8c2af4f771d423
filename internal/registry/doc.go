// Package registry is the driver's registry: typed values under the paths that the WinOF and WinOF-2
// manuals print, kept in a file that survives crashes and power loss.
//
// What is read is a tree in memory that never changes: every change makes the next one. A change is
// written and synced to a bbolt file first and becomes visible then, so what was acknowledged is on the
// disk, and a change that failed leaves what was there. Names are compared without regard to case and keep
// the case in which they were first written, as in Windows; data is kept as the bytes that Windows would
// hold, so that .reg files come out as they went in.
package registry
