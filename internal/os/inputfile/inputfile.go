// Package inputfile reads the files that users name: regular ones, up to a limit. A device that never ends cannot fill the
// memory then, and a pipe that nobody writes to holds nobody up.
package inputfile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
)

// Limits in bytes. They are far above what any such file needs.
const (
	Text = 64 << 20  // settings, names, lists
	Net  = 256 << 20 // the nodes and links of a fabric
)

// Error says that a file is none that is read. Test for it with errors.As.
type Error struct {
	Name  string
	Is    string
	Allow string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s %s; allowed: %s", e.Name, e.Is, e.Allow) }

func tooLong(name string, limit int64) error {
	return &Error{name, fmt.Sprintf("has more than %d bytes", limit), fmt.Sprintf("%d", limit)}
}

// File is an open file. Reading beyond the limit is an *Error.
type File struct {
	file  *os.File
	rest  int64 // bytes up to the limit
	limit int64
}

// Open opens a file of at most limit bytes for reading. It never waits. The error is an *Error, or that of os.Open.
func Open(name string, limit int64) (*File, error) {
	// A device is not even opened: that alone may do something.
	if info, err := os.Stat(name); err == nil {
		if err := check(name, info, limit); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = check(name, info, limit)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{f, limit, limit}, nil
}

func check(name string, info os.FileInfo, limit int64) error {
	mode := info.Mode()
	switch {
	case mode.IsRegular() && info.Size() > limit:
		return tooLong(name, limit)
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return &Error{name, "is a directory", "a regular file"}
	case mode&os.ModeNamedPipe != 0:
		return &Error{name, "is a pipe", "a regular file"}
	case mode&os.ModeDevice != 0:
		return &Error{name, "is a device", "a regular file"}
	}
	return &Error{name, "is no regular file", "a regular file"}
}

// Read implements io.Reader.
func (f *File) Read(b []byte) (int, error) {
	if f.rest < int64(len(b)) {
		b = b[:f.rest+1]
	}
	n, err := f.file.Read(b)
	if f.rest -= int64(n); f.rest < 0 {
		f.rest = 0
		return n - 1, tooLong(f.file.Name(), f.limit)
	}
	return n, err
}

// ReadAt implements io.ReaderAt, for readers that choose what they read themselves; the limit is only that of Open there.
func (f *File) ReadAt(b []byte, at int64) (int, error) { return f.file.ReadAt(b, at) }

// Close implements io.Closer.
func (f *File) Close() error { return f.file.Close() }

// Read returns the contents of a file of at most limit bytes. The error is that of Open, or of reading.
func Read(name string, limit int64) ([]byte, error) {
	f, err := Open(name, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// ReadFrom returns what a stream such as the standard input holds until its end, at most limit bytes. When ctx ends it returns
// the error of ctx, even if the stream stays silent; a goroutine that waits for it then remains until it is not. The error is
// an *Error with the name if there is more.
func ReadFrom(ctx context.Context, in io.Reader, name string, limit int64) ([]byte, error) {
	b, err := wait(ctx, func() ([]byte, error) { return io.ReadAll(&until{ctx, io.LimitReader(in, limit+1)}) })
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case int64(len(b)) > limit:
		return nil, tooLong(name, limit)
	}
	return b, nil
}

// maxLine is the maximum length of a line that ReadLine reads, in bytes.
const maxLine = 4096

// ReadLine returns the next line of a stream that a user types into, with its end, as bufio.Reader.ReadString does, or the
// first bytes of one that is too long. When ctx ends it returns the error of ctx, as ReadFrom does; the stream must not be
// read any more then.
func ReadLine(ctx context.Context, in *bufio.Reader) (string, error) {
	b, err := wait(ctx, func() ([]byte, error) {
		var line []byte
		for len(line) < maxLine {
			c, err := in.ReadByte()
			if err != nil {
				return line, err
			}
			if line = append(line, c); c == '\n' {
				break
			}
		}
		return line, nil
	})
	return string(b), err
}

// wait returns what read returns, or the error of ctx when that ends first.
func wait(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b, err := read()
		done <- result{b, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-done:
		return r.b, r.err
	}
}

// until reads until its context ends.
type until struct {
	ctx context.Context
	in  io.Reader
}

func (u *until) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.in.Read(b)
}
