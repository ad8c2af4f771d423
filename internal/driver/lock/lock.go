// Package lock allows one driver per state directory, and tells whether the previous one stopped cleanly.
package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/softvpi/softvpi/internal/os/ownfile"
)

// ErrRunning says that a driver is already running with the same state directory.
var ErrRunning = errors.New("another driver is running")

// A Lock reserves the state directory for one driver. The system releases it when the process ends,
// however that happens.
type Lock struct {
	file *os.File
	// Stale says that the previous driver did not stop cleanly.
	Stale bool
	// why says why the directory cannot be written to; nil if it can.
	why error
}

// Acquire locks the state directory dir, creating it if necessary.
func Acquire(dir string) (*Lock, error) {
	err := os.MkdirAll(dir, 0o700)
	if isReadOnly(err) || isFull(err) {
		return &Lock{why: err}, nil // there is nothing that two drivers could corrupt
	}
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	f, err := ownfile.Open(filepath.Join(dir, "driver.lock"), os.O_RDWR|os.O_CREATE)
	if isReadOnly(err) || isFull(err) {
		return readOnly(dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := lockFile(f); err != nil {
		pid := strings.TrimSpace(readSome(f))
		f.Close()
		if pid != "" {
			return nil, fmt.Errorf("%w: process %s holds %s", ErrRunning, pid, f.Name())
		}
		return nil, fmt.Errorf("%w: %s is locked", ErrRunning, f.Name())
	}
	l := &Lock{file: f, Stale: readSome(f) != ""}
	if err := l.write(strconv.Itoa(os.Getpid()) + "\n"); isFull(err) {
		l.why = err // it is locked nevertheless
	} else if err != nil {
		f.Close()
		return nil, fmt.Errorf("state directory: %w", err)
	}
	return l, nil
}

// isReadOnly reports whether the location is not writable.
func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// isFull reports whether the disk, or the user's quota, is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// readOnly locks the directory itself, if the system allows it.
func readOnly(dir string, why error) (*Lock, error) {
	f, err := os.Open(dir)
	if err != nil || runtime.GOOS == "windows" {
		return &Lock{why: why}, nil
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s is locked", ErrRunning, dir)
	}
	return &Lock{file: f, why: why}, nil
}

// Release empties the file, which marks a clean stop.
func (l *Lock) Release() error {
	if l.file == nil {
		return nil
	}
	if l.why != nil {
		return l.file.Close()
	}
	return errors.Join(l.write(""), l.file.Close())
}

func (l *Lock) write(s string) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(s), 0)
	return err
}

func readSome(f *os.File) string {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	return string(b[:n])
}
