//go:build !unix

package ownfile

import "os"

func open(name string, flag int) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(name, info.Mode())
	}
	return os.OpenFile(name, flag, 0o600)
}

func check(f *os.File, name string) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name, info.Mode())
	}
	return err
}
