package rping

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// info is what the client tells the server about a buffer, and the contents of every message of the
// protocol: 16 bytes, big-endian address, token and size. The server's "go ahead" has the same length and
// no meaning.
type info struct {
	address uint64
	token   uint32
	size    uint32
}

const infoSize = 16

func (i info) put(b []byte) {
	binary.BigEndian.PutUint64(b, i.address)
	binary.BigEndian.PutUint32(b[8:], i.token)
	binary.BigEndian.PutUint32(b[12:], i.size)
}

func parseInfo(b []byte) (info, error) {
	if len(b) != infoSize {
		return info{}, fmt.Errorf("the peer sent a message of %d bytes; rping's have %d", len(b), infoSize)
	}
	return info{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}, nil
}

// pattern fills b with the text of ping number n: its name, then the letters from 'A' to 'z' repeatedly,
// starting one later with every ping, and a zero byte.
func pattern(b []byte, n int) {
	const first, letters = 'A', 'z' - 'A' + 1
	name := copy(b, fmt.Sprintf("rdma-ping-%d: ", n))
	for i := range b[name:] {
		b[name+i] = byte(first + (n+i)%letters)
	}
	b[len(b)-1] = 0
}

// text returns b up to its zero byte.
func text(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}

// checkPattern checks that b is the text of some ping.
func checkPattern(b []byte) error {
	var n int
	if _, err := fmt.Sscanf(string(b[:min(len(b), minSize)]), "rdma-ping-%d:", &n); err != nil || n < 0 {
		return fmt.Errorf("data mismatch: %.32q is not the text of a ping", b)
	}
	want := make([]byte, len(b))
	pattern(want, n)
	if !bytes.Equal(b, want) {
		return fmt.Errorf("data mismatch in ping %d", n)
	}
	return nil
}
