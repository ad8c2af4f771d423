// Package ipoib implements IP over InfiniBand: it translates between the IP packets of a system and the
// unreliable datagrams of a queue pair (RFC 4391, RFC 4392), in datagram mode.
//
// An Interface is one IPoIB interface on one partition of one port. It is pure: it does no I/O, starts no
// goroutine and reads no clock. The caller passes in the time, the state of its port, IP packets to send,
// received datagrams and answers of the subnet administration, and takes out datagrams, requests and
// events. It resolves addresses itself, by ARP and neighbour discovery with InfiniBand's 20-byte
// addresses, so that a system that knows nothing of InfiniBand can use it through a TUN device, and a
// connection manager without any device.
package ipoib
