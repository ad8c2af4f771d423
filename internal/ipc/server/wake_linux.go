package server

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/stream"
)

// wakeup is what one program wakes the loop by: a pipe of its own. Whoever has one end of a pipe can open the
// other through /proc, so a program can take bytes out of its pipe, but they are its own wake-ups and nobody
// else's. It is no eventfd because programs write a single byte.
type wakeup struct {
	// loop is the end on which the loop sleeps. It is open for writing as well: the pipe never ends, whatever
	// the program closes, and the driver can wake the loop itself.
	loop    int
	program int // the program's end until it is passed; both are 0 if there is none
}

// newWakeup creates a pipe.
func newWakeup() (wakeup, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return wakeup{}, command.Errorf(command.Exhausted, "wake pipe: %v", err)
	}
	defer unix.Close(p[0])
	loop, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", p[0]), unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(p[1])
		return wakeup{}, command.Errorf(command.Exhausted, "wake pipe: %v", err)
	}
	return wakeup{loop, p[1]}, nil
}

// pass returns the program's end, which is the caller's from then on.
func (w *wakeup) pass() int {
	fd := w.program
	w.program = 0
	return fd
}

// wake wakes the loop as the program does.
func (w *wakeup) wake() { stream.WriteWake(w.loop) }

// close closes what was not passed. The loop must no longer sleep on its end.
func (w *wakeup) close() {
	for _, fd := range [2]int{w.loop, w.program} {
		if fd > 0 {
			unix.Close(fd)
		}
	}
}
