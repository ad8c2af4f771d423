// Package rss is receive side scaling: which queue, and so which processor, a frame goes to (WinOF 5.50, 4.1.13 and 4.6.5;
// WinOF-2 1.21, 3.1.7). A Toeplitz hash of a frame's addresses and ports chooses an entry of an indirection table, and that
// a queue. A send goes by the hash that its flow's received frames have, so that both directions of a flow share a
// processor (transmit side scaling).
//
// The package is pure: what processors there are, how they are loaded and what time it is, it is told.
package rss
