//go:build unix

package main

import "syscall"

// detached makes a process survive the end of the terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
