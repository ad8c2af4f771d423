// Package subnet is the subnet manager and the subnet administration of InfiniBand (IBA 14 and 15): it
// finds what is plugged together, gives LIDs, routes, brings links up and answers questions about it.
//
// Package routing, below it, finds the forwarding tables. It is pure: it does no I/O, starts no goroutine and reads no clock. It is told the time and handed
// MADs, and hands MADs and its next deadline back.
package subnet
