package lock

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks a byte far behind the text, so that others can still read the text.
func lockFile(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{Offset: 1 << 20})
}
