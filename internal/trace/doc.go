// Package trace records what a driver does, for reading afterwards: what WinOF's WPP sessions are for (WinOF 5.50, 6.8). A Session has
// a level for each component and keeps fixed-size records in circular buffers, one for each writer: a Ring has no lock, so whoever
// owns it writes. A ring that is nil, or at a lower level than a record, costs a comparison.
//
// WriteJSON writes the Trace Event Format, which Perfetto and chrome://tracing read, and WriteText lines.
package trace
