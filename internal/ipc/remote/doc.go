// Package remote lets programs attach to a driver on another machine, above all those of a virtual machine's to its host's, by a stream of
// bytes that passes neither descriptors nor memory: a socket, vsock, or a port of virtio-serial.
//
// Two sides speak it. The Agent is beside the programs: it serves them as a driver does (package server), with rings in memory that it
// shares with them, and reaches their memory. The Relay is beside the driver, to which it attaches as a program for each of theirs
// (package client), with the limits of one. Commands go through as they are. What programs put into rings is carried from the agent's
// memory to the driver's at the same places, completions the other way, and what the driver wants of a program's memory the relay asks
// the agent for, as of a copier.
//
// Neither side waits for the other while it reads: what is asked of it is answered by goroutines of the program that it is for, or without
// waiting, and never more than a fixed number of answers are owed. A side that does not read therefore holds up its own programs only. The
// relay believes nothing that it reads; see the limits in this package.
package remote
