//go:build unix

package ownfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

func open(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EISDIR) {
		if info, e := os.Lstat(name); e == nil && !info.Mode().IsRegular() {
			return nil, notRegular(name, info.Mode())
		}
	}
	return f, err
}

func check(f *os.File, name string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return notRegular(name, info.Mode())
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if s.Nlink > 1 {
		return &Error{name, fmt.Sprintf("a file with %d names", s.Nlink), "one that has no other name"}
	}
	owners := []uint32{uint32(os.Geteuid()), 0}
	if dir, err := os.Stat(filepath.Dir(name)); err == nil {
		if d, ok := dir.Sys().(*syscall.Stat_t); ok {
			owners = append(owners, d.Uid)
		}
	}
	for _, o := range owners {
		if s.Uid == o {
			return nil
		}
	}
	return &Error{name, fmt.Sprintf("a file of user %d", s.Uid), fmt.Sprintf("one of user %d, of the directory's owner, or of root",
		os.Geteuid())}
}
