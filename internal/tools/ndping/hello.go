package ndping

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// hello is the private data by which the sides introduce themselves: 24 bytes, big-endian:
//
//	0 "NDPG" | 4 version 1 | 5 program | 6 zero | 8 address | 16 token | 20 length
//
// Address, token and length describe the memory that the peer may use.
type hello struct {
	program Program
	address uint64
	token   uint32
	length  uint32
}

const helloSize = 24

func (h hello) encode() []byte {
	b := make([]byte, helloSize)
	copy(b, "NDPG")
	b[4], b[5] = 1, byte(h.program)
	binary.BigEndian.PutUint64(b[8:], h.address)
	binary.BigEndian.PutUint32(b[16:], h.token)
	binary.BigEndian.PutUint32(b[20:], h.length)
	return b
}

func (p Program) decode(b []byte) (hello, error) {
	if len(b) < helloSize || string(b[:4]) != "NDPG" || b[4] != 1 {
		return hello{}, fmt.Errorf("the peer is not %s of this version", p.Name())
	}
	h := hello{Program(b[5]), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])}
	if h.program != p {
		if name := h.program.Name(); name != "" {
			return hello{}, fmt.Errorf("the peer runs %s, not %s", name, p.Name())
		}
		return hello{}, errors.New("the peer runs another program")
	}
	if h.length < maxSize {
		return hello{}, fmt.Errorf("the peer offers %d bytes of memory; %d are needed", h.length, maxSize)
	}
	return h, nil
}
