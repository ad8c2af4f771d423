// Package ownfile opens the files that a driver keeps in its state directory, which may be one that somebody else can
// write to: what lies there under the name of such a file is used only if it is one.
package ownfile

import (
	"fmt"
	"os"
)

// Error says that something else lies where a file of the driver's belongs. Test for it with errors.As.
type Error struct {
	Name  string
	Is    string // what lies there
	Allow string // what is allowed
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s is %s; allowed: %s", e.Name, e.Is, e.Allow) }

// Open opens or creates a file as os.OpenFile does, for this process's user only. It does not follow a symbolic link, nor
// wait for the other end of a pipe. The error is an *Error, and nothing was changed, if there is anything but a regular
// file with this one name, and where the system has owners, one that belongs to this process's user, to the owner of the
// directory, or to root. os.O_TRUNC must not be among the flags.
func Open(name string, flag int) (*os.File, error) {
	f, err := open(name, flag)
	if err != nil {
		return nil, err
	}
	if err := check(f, name); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func notRegular(name string, mode os.FileMode) error {
	what := "no regular file"
	switch {
	case mode&os.ModeSymlink != 0:
		what = "a symbolic link"
	case mode&os.ModeNamedPipe != 0:
		what = "a pipe"
	case mode.IsDir():
		what = "a directory"
	}
	return &Error{name, what, "a regular file, or nothing"}
}
