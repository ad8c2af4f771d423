package rdmanet

import (
	"encoding/binary"
	"fmt"
)

// kind is the kind of a message.
type kind byte

const (
	kindData kind = iota + 1
	kindCredit
	kindFinish
)

const headerSize = 8

// header begins every message.
type header struct {
	kind    kind
	credits uint32 // receive buffers that have become free
}

func (h header) put(b []byte) {
	binary.LittleEndian.PutUint32(b, uint32(h.kind))
	binary.LittleEndian.PutUint32(b[4:], h.credits)
}

// parseHeader decodes the header of a received message.
func parseHeader(b []byte) (header, error) {
	if len(b) < headerSize {
		return header{}, fmt.Errorf("message of %d bytes, want at least %d", len(b), headerSize)
	}
	k := binary.LittleEndian.Uint32(b)
	if k < uint32(kindData) || k > uint32(kindFinish) {
		return header{}, fmt.Errorf("message of kind %d, want %d to %d", k, kindData, kindFinish)
	}
	h := header{kind: kind(k), credits: binary.LittleEndian.Uint32(b[4:])}
	switch n := len(b) - headerSize; {
	case h.kind == kindData && n == 0:
		return header{}, fmt.Errorf("data message without data")
	case h.kind != kindData && n != 0:
		return header{}, fmt.Errorf("message of kind %d with %d bytes of data", k, n)
	}
	return h, nil
}

// hello is the private data of a connection request and of its answer.
type hello struct {
	buffers uint32 // receive buffers for data
	size    uint32 // bytes of each, header included
}

const (
	helloSize    = 16
	helloMagic   = 0x54454e52 // "RNET"
	helloVersion = 1

	maxBuffers    = 4096
	maxBufferSize = 16 << 20
	minBufferSize = 256
)

func (h hello) encode() []byte {
	b := make([]byte, helloSize)
	binary.LittleEndian.PutUint32(b, helloMagic)
	binary.LittleEndian.PutUint32(b[4:], helloVersion)
	binary.LittleEndian.PutUint32(b[8:], h.buffers)
	binary.LittleEndian.PutUint32(b[12:], h.size)
	return b
}

// parseHello decodes private data, which may be longer than a hello.
func parseHello(b []byte) (hello, error) {
	if len(b) < helloSize || binary.LittleEndian.Uint32(b) != helloMagic {
		return hello{}, fmt.Errorf("the peer does not speak rdmanet")
	}
	if v := binary.LittleEndian.Uint32(b[4:]); v != helloVersion {
		return hello{}, fmt.Errorf("the peer speaks version %d, want %d", v, helloVersion)
	}
	h := hello{buffers: binary.LittleEndian.Uint32(b[8:]), size: binary.LittleEndian.Uint32(b[12:])}
	if h.buffers < 2 || h.buffers > maxBuffers {
		return hello{}, fmt.Errorf("the peer has %d buffers, want 2 to %d", h.buffers, maxBuffers)
	}
	if h.size < minBufferSize || h.size > maxBufferSize {
		return hello{}, fmt.Errorf("the peer's buffers have %d bytes, want %d to %d", h.size, minBufferSize, maxBufferSize)
	}
	return h, nil
}
