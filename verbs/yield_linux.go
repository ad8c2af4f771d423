package verbs

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// yield gives the processor to other goroutines and to other processes: with as
// many pollers as processors the one that has news would wait for the spinner's
// time slice to end otherwise.
func yield() {
	runtime.Gosched()
	_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
