// Package ipoib carries IP over InfiniBand: what stands between the IP packets of a system and the unreliable
// datagrams of a queue pair (RFC 4391, RFC 4392), in datagram mode.
//
// An Interface is one IPoIB interface on one partition of one port. It is pure: it does no I/O, starts no goroutine and
// reads no clock. It is told the time, the state of its port, IP packets to send, datagrams that arrived and answers
// of the subnet administration, and hands datagrams, requests and events back. It resolves addresses itself, by
// ARP and neighbour discovery with the 20-byte addresses of InfiniBand, so that a system that knows nothing of
// InfiniBand can use it through a TUN device, and a connection manager with no device at all.
package ipoib
