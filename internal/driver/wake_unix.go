//go:build unix

package driver

import (
	"os/exec"
	"syscall"
)

// alone makes what ends a command end the programs that it has started, too.
func alone(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
