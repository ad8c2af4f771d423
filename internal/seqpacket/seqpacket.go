// Package seqpacket reads from unix sockets that keep messages apart (SOCK_SEQPACKET, "unixpacket") without losing the
// last message before the end.
//
// Linux looks at such a socket's queue and then, where that was empty, whether the peer has closed, and takes no lock
// over both. A message that is sent and followed by the close between the two looks is in the queue while the read says
// that the end was reached: in some 100 of 1,000,000 answers that are followed by a close, where the reader does not
// sleep in the system call. The next read has the message, so the end counts when it was read twice.
package seqpacket

import (
	"errors"
	"io"
	"net"
)

// Socket is the part of net.UnixConn by which messages are read with what came beside them.
type Socket interface {
	ReadMsgUnix(b, oob []byte) (n, oobn, flags int, addr *net.UnixAddr, err error)
}

// Read reads one message. At the end it returns io.EOF.
func Read(c io.Reader, b []byte) (int, error) {
	n, err := c.Read(b)
	if n == 0 && errors.Is(err, io.EOF) {
		n, err = c.Read(b)
	}
	return n, err
}

// ReadMsg reads one message and the control data that came with it, n and oobn bytes. At the end it returns io.EOF.
func ReadMsg(c Socket, b, oob []byte) (n, oobn int, err error) {
	n, oobn, _, _, err = c.ReadMsgUnix(b, oob)
	if n == 0 && errors.Is(err, io.EOF) {
		n, oobn, _, _, err = c.ReadMsgUnix(b, oob)
	}
	return n, oobn, err
}
