//go:build unix

package openfiles

import "golang.org/x/sys/unix"

// Limit returns how many descriptors this process may have (RLIMIT_NOFILE).
func Limit() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return noLimit
	}
	return min(uint64(r.Cur), noLimit)
}
