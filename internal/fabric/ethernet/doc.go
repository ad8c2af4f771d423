// Package ethernet is an Ethernet switch as data-centre networks have it (IEEE 802.1Q), as a pure engine: ports with a rate, a
// buffer that they share, eight queues a port, ECN marks, pauses and priority-based flow control (PFC) in both directions,
// VLANs, learning, routes with ECMP, and bundles of links. Time and randomness are arguments. One goroutine at a time may use
// a Switch, and the Store whose frames it forwards; several switches may share a Store.
//
// A frame that has arrived is given its priority (trust), its ports (package bridge's Relay, or a route), and room. It counts at
// the group of the port and priority where it came in, up to the threshold of the group, which is a number of bytes or a share
// of what is free (Xoff). A group of a lossless priority that reaches it pauses the other end, and has headroom for what is on
// its way; others lose what the threshold of the queue where it leaves does not admit. Then it waits in the queue of its
// priority at the port where it leaves. Each port chooses among its queues, strict ones first, the others by weights, and obeys
// the pauses that it receives. A frame is handed out when its first bit leaves, with the time at which its last bit arrives at
// the other end.
//
// There is no spanning tree: links between bridged ports must not be circles. A router answers nothing, neither ARP nor a packet
// whose hop limit is used up: routes name the MACs of the next hops.
//
// Every queue, group and pause has counters; what is lost is counted by cause. A Fabric connects switches and stations, finds
// cycles of queues that wait for each other, and runs in virtual time.
package ethernet
