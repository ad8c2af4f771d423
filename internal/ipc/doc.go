// Package ipc attaches programs to a driver in another process. A unix stream
// carries commands, answers and events; memory that the driver makes and both
// map carries the rings. docs/ipc.md describes the protocol for implementers in
// any language.
//
// The driver runs a Server over a Host. A program calls Dial and has a Client,
// which implements command.Commands and the data-path calls of device.Client.
// Attaching is Linux only for now; elsewhere Dial and Serve say so.
//
// The server trusts no client: every frame is bounded and checked, every index
// in shared memory is checked by package ring, descriptors that a client sends
// are never taken, and a client that breaks the protocol, does not read, or
// dies loses its own connection and objects, nothing else.
//
// Below it, and knowing nothing of it: shared, memory that processes share and words in it to sleep on; reach, how the
// driver gets at memory of a program.
package ipc
