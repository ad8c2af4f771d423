// Package openfiles says how many descriptors this process may have, and how many of them are for what it can do
// without. As the system always gives the lowest free number, a new descriptor's number tells how many are open at
// least.
package openfiles

// noLimit stands for a process that may open as many files as it likes, or does not know.
const noLimit = 1 << 20

// Optional returns from which number on a descriptor is not kept if it only makes something faster, in a process that
// may have so many: a quarter is left to what cannot be done without.
func Optional(limit uint64) int { return int(limit / 4 * 3) }

// SourcePorts returns how many descriptors the sockets of all UDP source ports together may take, in a process that may
// have so many: a quarter. Connections can share a port.
func SourcePorts(limit uint64) int64 { return int64(limit / 4) }
