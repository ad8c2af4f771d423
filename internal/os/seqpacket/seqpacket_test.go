package seqpacket

import (
	"errors"
	"io"
	"net"
	"testing"
)

// early is a socket that reports its end while a message is still in its queue.
type early struct{ ends, messages int }

func (e *early) Read(b []byte) (int, error) {
	if e.ends > 0 {
		e.ends--
		return 0, io.EOF
	}
	if e.messages == 0 {
		return 0, io.EOF
	}
	e.messages--
	return copy(b, "answer"), nil
}

func (e *early) ReadMsgUnix(b, oob []byte) (int, int, int, *net.UnixAddr, error) {
	n, err := e.Read(b)
	if n == 0 {
		return 0, 0, 0, nil, err
	}
	return n, copy(oob, "rights"), 0, nil, err
}

// A message in the queue is read although an earlier read reported the end; without a message the end is reported.
func TestMessageBehindTheEnd(t *testing.T) {
	var b, oob [16]byte
	if n, err := Read(&early{1, 1}, b[:]); err != nil || string(b[:n]) != "answer" {
		t.Errorf("Read: %q, %v; want answer", b[:n], err)
	}
	if n, oobn, err := ReadMsg(&early{1, 1}, b[:], oob[:]); err != nil || string(b[:n]) != "answer" || string(oob[:oobn]) != "rights" {
		t.Errorf("ReadMsg: %q, %q, %v; want answer and rights", b[:n], oob[:oobn], err)
	}
	if n, err := Read(&early{}, b[:]); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("Read at the end: %d, %v; want 0 and EOF", n, err)
	}
	if n, _, err := ReadMsg(&early{}, b[:], oob[:]); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadMsg at the end: %d, %v; want 0 and EOF", n, err)
	}
}
