package driver

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
)

// ErrRunning is a driver that already runs with the same state directory.
var ErrRunning = errors.New("another driver is running")

// A lock keeps the state directory to one driver. The system lets go of it when
// the process ends, however it ends.
type lock struct {
	file *os.File
	// stale says that the driver before did not stop cleanly.
	stale bool
	// why says that the directory cannot be written to; nil where it can.
	why error
}

// acquire takes the lock of the state directory dir, which it creates.
func acquire(dir string) (*lock, error) {
	err := os.MkdirAll(dir, 0o700)
	if isReadOnly(err) || isFull(err) {
		return &lock{why: err}, nil // nothing is there that two drivers could spoil
	}
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "driver.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if isReadOnly(err) || isFull(err) {
		return acquireReadOnly(dir, err)
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
	l := &lock{file: f, stale: readSome(f) != ""}
	if err := l.write(strconv.Itoa(os.Getpid()) + "\n"); isFull(err) {
		l.why = err // it is locked all the same
	} else if err != nil {
		f.Close()
		return nil, fmt.Errorf("state directory: %w", err)
	}
	return l, nil
}

// isReadOnly says that the place cannot be written to.
func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// isFull says that the disk, or what the user may have of it, is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// acquireReadOnly locks the directory itself, where the system lets it.
func acquireReadOnly(dir string, why error) (*lock, error) {
	f, err := os.Open(dir)
	if err != nil || runtime.GOOS == "windows" {
		return &lock{why: why}, nil
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s is locked", ErrRunning, dir)
	}
	return &lock{file: f, why: why}, nil
}

// release empties the file, which says that the driver stopped cleanly.
func (l *lock) release() error {
	if l.file == nil {
		return nil
	}
	if l.why != nil {
		return l.file.Close()
	}
	return errors.Join(l.write(""), l.file.Close())
}

func (l *lock) write(s string) error {
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
