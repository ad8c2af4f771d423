//go:build unix

package inputfile

import "syscall"

// nonblock makes opening a pipe return at once.
const nonblock = syscall.O_NONBLOCK
