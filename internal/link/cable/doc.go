// Package cable connects the port of an adapter, InfiniBand (Link) or Ethernet (Ethernet), to a fabric that runs in another
// process. It implements the adapter's end of the cable and the protocol between the two ends.
//
// On one host, frames pass through two rings of shared memory that the fabric creates; a socket serves as
// the bell that wakes a sleeping side. Neither side trusts memory that the other can write: it copies a
// frame before it looks at it.
//
// Between hosts, frames are streams of bytes in UDP datagrams (datagram.go). Wire is one end of such a
// cable, without clock or socket, Door admits adapters, Socket carries the datagrams.
package cable
