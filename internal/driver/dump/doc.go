// Package dump keeps dumps of adapters in directories, with the names and limits of the manuals: sets of
// state dump files (WinOF 5.50, 6.9; WinOF-2 1.21, 5.6), and a folder for each dump-me-now (WinOF 5.50,
// 4.7). It also writes their contents: the internal state of an adapter as text.
package dump
