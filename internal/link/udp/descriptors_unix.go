//go:build unix

package udp

import "golang.org/x/sys/unix"

// descriptorShare returns how many descriptors the sockets of all pools may take: a quarter of those that the process
// may have.
func descriptorShare() int64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return DefaultSourcePorts
	}
	return int64(min(uint64(l.Cur), 1<<32)) / 4
}
