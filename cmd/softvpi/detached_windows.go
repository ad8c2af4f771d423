package main

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// detached makes a process survive the end of the console.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
