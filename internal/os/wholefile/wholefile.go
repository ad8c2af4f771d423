// Package wholefile writes files atomically: a program that reads the file, even after a crash or power
// failure, finds either the previous content or the new one.
//
// The libraries for this stop at the rename (github.com/google/renameio/v2, github.com/natefinch/atomic): they sync the
// file but not the directory, so that the new name may be lost with a power failure although Write has returned.
package wholefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// temporary is the prefix of unfinished files; they are left behind if the writer is killed.
const temporary = ".unfinished-"

// Write replaces the file name. Only its owner may read and write it. On error (the system's) the previous
// file remains, unless only the directory could not be made durable.
func Write(name string, content []byte) error {
	directory := filepath.Dir(name)
	f, err := os.CreateTemp(directory, temporary+"*") // of mode 0600
	if err != nil {
		return of(name, err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync() // otherwise the new name may refer to an empty file after a crash
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

// of replaces the name of the unfinished file in the system's error.
func of(name string, err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return &fs.PathError{Op: path.Op, Path: name, Err: path.Err}
	}
	return err
}

// SyncDirectory makes the names in a directory durable, if the system supports it.
func SyncDirectory(name string) error {
	if runtime.GOOS == "windows" { // not supported there
		return nil
	}
	d, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a directory that may be written but not read
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

// Stream writes a file, completely or not at all, that may be too long for memory. Unlike Write it does not wait for the disk.
func Stream(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), temporary+"*") // of mode 0600
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
