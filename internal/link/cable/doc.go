// Package cable is the cable of an InfiniBand port to a fabric that another process runs: an adapter's end of it, and what both
// ends say to each other.
//
// On one host the frames lie in two rings of shared memory that the fabric makes; a socket rings the bell where the other side
// sleeps. Each side trusts nothing that the other can write: it copies a frame, then looks at it.
//
// Between hosts they are streams of bytes in datagrams over UDP (datagram.go). Wire is an end of such a cable without clock or
// socket, Door lets adapters in, Socket carries the datagrams.
package cable
