// Package registry is the driver's registry: typed values under the paths that the WinOF and WinOF-2
// manuals print, kept in a file that survives crashes and power loss.
//
// Readers see an immutable tree in memory; every change creates a new one. A change is first written and
// synced to a bbolt file and only then becomes visible, so what was acknowledged is on disk, and a change
// that failed has no effect. As in Windows, names are compared without regard to case and keep the case in
// which they were first written; data is kept as the bytes that Windows would hold, so that .reg files
// come out as they went in.
package registry
