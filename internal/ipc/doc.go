// Package ipc attaches programs to a driver in another process. A unix stream carries commands, answers
// and events; the rings are in memory that the driver creates and both sides map. docs/spec/ipc.md describes
// the protocol for implementers in any language.
//
// The driver runs a server.Server over a server.Host. A program calls client.Dial and gets a client.Client, which
// implements command.Commands and the data-path calls of device.Client. Attaching is Linux only for now; elsewhere
// both say so.
//
// The server trusts no client: every frame is limited in size and checked, package ring checks every index
// in shared memory, and descriptors sent by a client are never accepted. A client that breaks the
// protocol, does not read, or dies loses its own connection and objects, nothing else.
//
// It has only rooms: proto, what the two sides say to each other; stream, what carries it; server, the driver's side;
// client, the program's; reach, the driver's access to memory of a program; shared, memory that processes share, with
// words to sleep on; fake, adapters for the tests of both sides. Neither of server and client imports the other.
package ipc
