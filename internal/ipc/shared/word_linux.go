package shared

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWait = 0
	futexWake = 1
)

// Sleep sleeps while *word is value, for at most ns nanoseconds; it may return early.
func Sleep(word *uint32, value uint32, ns int64) {
	ts := unix.NsecToTimespec(ns)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// Wake wakes everyone who sleeps on word, in any process.
func Wake(word *uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0, 0)
}
