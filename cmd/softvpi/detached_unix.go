//go:build unix

package main

import "syscall"

// detached has a process live on when the terminal goes.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
