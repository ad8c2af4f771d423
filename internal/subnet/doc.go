// Package subnet is the subnet manager of InfiniBand (IBA 14): it finds what is plugged together, gives LIDs, routes and brings links up.
//
// Below it, and knowing nothing of it: topology, the subnet as it was found; partition, who may talk to whom; routing, the forwarding
// tables; administration, which answers questions about the subnet and keeps what ports register. It is pure: it does no I/O, starts no
// goroutine and reads no clock. It is told the time and handed MADs, and hands MADs and its next deadline back.
package subnet
