//go:build unix

package verbs

import (
	"errors"
	"os"
	"syscall"
)

// identity returns the numbers by which the system knows a file.
func identity(f *os.File) (device, inode uint64, err error) {
	i, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	s, ok := i.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, errors.New("the file has no inode")
	}
	return uint64(s.Dev), uint64(s.Ino), nil
}
