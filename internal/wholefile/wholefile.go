// Package wholefile writes files that are there whole or not at all, whatever ends the writer on the way: a program that reads the name, or
// a machine that starts again after its power was gone, finds what was there before or what was written.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// temporary is what the names of unfinished files begin with; those of a writer that was ended are left behind.
const temporary = ".unfinished-"

// Write puts a file in place of what has the name. Only its owner may read and write it. The error is the system's; then what was there
// before is there still, unless the directory alone could not be made durable.
func Write(name string, content []byte) error {
	directory := filepath.Dir(name)
	f, err := os.CreateTemp(directory, temporary+"*") // of mode 0600
	if err != nil {
		return of(name, err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync() // or the new name may come to stand for an empty file
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return of(name, err)
	}
	return SyncDirectory(directory)
}

// of is the system's error with the name that was asked for in place of that of the unfinished file.
func of(name string, err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return &fs.PathError{Op: path.Op, Path: name, Err: path.Err}
	}
	return err
}

// SyncDirectory makes the names in a directory durable, where the system can.
func SyncDirectory(name string) error {
	if runtime.GOOS == "windows" { // which has no such thing
		return nil
	}
	d, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil // one to put files in, and not to look into
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
