package main

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// detached has a process live on when the console goes.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
