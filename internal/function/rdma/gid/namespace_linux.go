package gid

import (
	"os"
	"syscall"
)

// Namespace returns the inode of the calling thread's network namespace: that whose interfaces the system tells of. 0: it
// is not known.
func Namespace() uint64 {
	i, err := os.Stat("/proc/thread-self/ns/net")
	if err != nil {
		return 0
	}
	return i.Sys().(*syscall.Stat_t).Ino
}
