//go:build unix

package opensm

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
)

// signals handles SIGHUP, which requests a sweep, and SIGUSR1, which reopens the log (opensm(8), NOTES).
// It ignores SIGPIPE: a subnet outlives its manager's terminal.
func signals(j *journal, rescan func()) (stop func()) {
	in, done := make(chan os.Signal, 4), make(chan struct{})
	signal.Notify(in, syscall.SIGHUP, syscall.SIGUSR1)
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-in:
				if s == syscall.SIGUSR1 {
					j.reopen.Store(true)
				} else {
					rescan()
				}
			}
		}
	}()
	return func() { signal.Stop(in); close(done) }
}

// detach starts the same program in the background, where the variable detached tells it that it is there.
func detach(args []string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(exe)
	c.Args = slices.Concat([]string{"opensm"}, args)
	c.Env = append(os.Environ(), detached+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	return c.Process.Release()
}
