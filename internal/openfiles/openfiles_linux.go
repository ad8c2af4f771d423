// Package openfiles says how many descriptors this process may have, and how many of them are for what it can do
// without. As the system always gives the lowest free number, a new descriptor's number tells how many are open at
// least.
package openfiles

import "golang.org/x/sys/unix"

// noLimit stands for a process that may open as many files as it likes, or does not know.
const noLimit = 1 << 20

// Limit returns how many descriptors this process may have (RLIMIT_NOFILE).
func Limit() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return noLimit
	}
	return min(r.Cur, noLimit)
}

// Optional returns from which number on a descriptor is not kept if it only makes something faster, in a process that
// may have so many: a quarter is left to what cannot be done without.
func Optional(limit uint64) int { return int(limit / 4 * 3) }
