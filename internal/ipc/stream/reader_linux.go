package stream

import (
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// Reader reads a stream and collects the descriptors sent with it.
type Reader struct {
	from Receiver
	fds  []int
	oob  [256]byte
	buf  [32 << 10]byte
	r, w int
}

// NewReader returns a reader of conn.
func NewReader(conn *net.UnixConn) *Reader { return &Reader{from: NewReceiver(conn)} }

// Read implements io.Reader.
func (f *Reader) Read(b []byte) (int, error) {
	if f.r == f.w {
		n, oobn, flags, err := f.from.Receive(f.buf[:], f.oob[:])
		if oobn > 0 {
			if e := f.collect(f.oob[:oobn]); e != nil && err == nil {
				err = e
			}
		}
		if err == nil && flags&unix.MSG_CTRUNC != 0 {
			err = fmt.Errorf("%w: too many descriptors", proto.ErrFrame)
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, io.EOF
		}
		f.r, f.w = 0, n
	}
	n := copy(b, f.buf[f.r:f.w])
	f.r += n
	return n, nil
}

func (f *Reader) collect(oob []byte) error {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("%w: control message: %v", proto.ErrFrame, err)
	}
	for i := range msgs {
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
		}
		f.fds = append(f.fds, fds...)
	}
	return nil
}

// Take returns the next n descriptors; the caller owns them from then on.
func (f *Reader) Take(n int) ([]int, error) {
	if n == 0 {
		return nil, nil // even while another goroutine reads
	}
	if n > len(f.fds) {
		return nil, fmt.Errorf("%w: %d descriptors announced, %d arrived", proto.ErrFrame, n, len(f.fds))
	}
	fds := f.fds[:n:n]
	f.fds = f.fds[n:]
	return fds, nil
}

// Close closes the descriptors that nobody took.
func (f *Reader) Close() {
	for _, fd := range f.fds {
		unix.Close(fd)
	}
	f.fds = nil
}

// CloseAll closes descriptors that were received or made to be sent.
func CloseAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
