package ndperf

import (
	"encoding/binary"
	"errors"
)

// A hello is the private data of a connection request: which test this is and which of its connections. It
// has 24 bytes, big-endian:
//
//	0 "NDPF" | 4 version 2 | 5 verb | 6 measure | 7 zero | 8 session (8 bytes) |
//	16 index (4 bytes) | 20 zero (4 bytes)
//
// Index 0 is the control connection; 1 to the number of queue pairs are data connections. The server
// accepts with the same bytes; if it refuses, it rejects with the reason as text.
type hello struct {
	test    Test
	session uint64
	index   uint32
}

const (
	helloSize    = 24
	helloMagic   = "NDPF"
	helloVersion = 2
)

var verbCodes = map[Verb]byte{Send: 1, Write: 2, Read: 3}
var measureCodes = map[Measure]byte{Bandwidth: 1, Latency: 2}

func (h hello) encode() []byte {
	b := make([]byte, helloSize)
	copy(b, helloMagic)
	b[4], b[5], b[6] = helloVersion, verbCodes[h.test.Verb], measureCodes[h.test.Measure]
	binary.BigEndian.PutUint64(b[8:], h.session)
	binary.BigEndian.PutUint32(b[16:], h.index)
	return b
}

var errHello = errors.New("the peer is not a benchmark of this version")

// decodeHello parses private data, which may be followed by zeros.
func decodeHello(b []byte) (hello, error) {
	if len(b) < helloSize || string(b[:4]) != helloMagic || b[4] != helloVersion {
		return hello{}, errHello
	}
	h := hello{session: binary.BigEndian.Uint64(b[8:]), index: binary.BigEndian.Uint32(b[16:])}
	for v, c := range verbCodes {
		if c == b[5] {
			h.test.Verb = v
		}
	}
	for m, c := range measureCodes {
		if c == b[6] {
			h.test.Measure = m
		}
	}
	if h.test.Verb == "" || h.test.Measure == "" || h.index > maxQPs {
		return hello{}, errHello
	}
	return h, nil
}
