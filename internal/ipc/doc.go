// Package ipc attaches programs to a driver in another process. A unix stream carries commands, answers
// and events; the rings are in memory that the driver creates and both sides map. docs/spec/ipc.md describes
// the protocol for implementers in any language.
//
// The driver runs a Server over a Host. A program calls Dial and gets a Client, which implements
// command.Commands and the data-path calls of device.Client. Attaching is Linux only for now; elsewhere
// Dial and Serve say so.
//
// The server trusts no client: every frame is limited in size and checked, package ring checks every index
// in shared memory, and descriptors sent by a client are never accepted. A client that breaks the
// protocol, does not read, or dies loses its own connection and objects, nothing else.
//
// Its subpackages, which are independent of it: shared, memory that processes share, with words to sleep
// on; reach, the driver's access to memory of a program.
package ipc
