// Package bridge is a virtual Ethernet switch: a learning bridge with VLANs (IEEE 802.1Q-2018, clause 8). It is pure: time is an
// argument, and whoever drives it takes the frames out of its ports. One goroutine at a time may use a Bridge and its ports.
//
// Where a frame goes is decided by a Relay, which switches with other queues use too.
//
// A frame that a port receives belongs to a VLAN: that of its tag, or of the port. Its source is learned there, and it goes
// to the port at which its destination was last heard, to all other ports of the VLAN if that is not known or a group, and
// never back. Each port has a queue of bounded length; what finds no room is lost, and counted. Frames may be larger than the
// wire's, with their segments still to be cut and their checksums to be made (package offload): they pass as they are.
//
// There are no priorities and no pause: a queue is first in, first out. There is no spanning tree: ports are ends.
package bridge
