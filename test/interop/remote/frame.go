package remote

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The types of frames.
const (
	frameInput    = iota + 1 // to the program's standard input; empty: its end
	frameKill                // end the program
	frameOutput              // the program printed
	frameExit                // the program ended; 4 bytes of exit status
	maxFrameBytes = 64 << 10
)

func writeFrame(w io.Writer, kind byte, data []byte) error {
	b := make([]byte, 5, 5+len(data))
	b[0] = kind
	binary.LittleEndian.PutUint32(b[1:], uint32(len(data)))
	_, err := w.Write(append(b, data...))
	return err
}

func readFrame(r io.Reader) (kind byte, data []byte, err error) {
	var h [5]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(h[1:])
	if n > maxFrameBytes {
		return 0, nil, fmt.Errorf("remote: frame of %d bytes, at most %d", n, maxFrameBytes)
	}
	data = make([]byte, n)
	_, err = io.ReadFull(r, data)
	return h[0], data, err
}
