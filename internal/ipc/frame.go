package ipc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// magic begins the first frame of each side: "SVPI" in memory.
const magic uint32 = 'S' | 'V'<<8 | 'P'<<16 | 'I'<<24

// The version of the protocol. A side refuses another major version; the lower of the two minor versions
// is used.
const (
	Major uint16 = 2
	Minor uint16 = 5
)

// Sizes and limits.
const (
	// headerSize is the size of the header that begins every frame.
	headerSize = 16
	// maxRequest limits the frames of a client, maxFrame those of the driver.
	maxRequest = 4096
	maxFrame   = 1 << 20
	// maxDetail limits the text of an error, in bytes.
	maxDetail = 1024
	// maxInFlight is how many unanswered requests a client may have.
	maxInFlight = 64
	// eventCredits is how many events the driver may push before the client grants more.
	eventCredits = 256
	// maxPush is the number of events per frame: such a frame always fits a track, so that none overtakes
	// another.
	maxPush = 48
)

// unanswered is the id of a request that wants no answer, if that is allowed.
const unanswered = 0

// Flags of a frame. Bits 8 to 11 hold the number of descriptors sent with it.
const (
	flagResponse uint16 = 1 << iota
	flagError
	flagFDShift = 8
	flagFDMask  = 15 << flagFDShift
)

// Features that a side offers; those offered by both are used.
const (
	featureSegments uint64 = 1 << iota
	featureProcessVM
	featureCopier
	_ // the direct path of 2.0
	featureDirect
	featureTracks
	featureProcess // the program's nonce stays where it is, and it may copy to and from its neighbours' processes
)

// header begins every frame.
type header struct {
	Length uint32 // of the frame, with this header
	Op     opcode
	Flags  uint16
	ID     uint64 // of the request; 0 if there is none
}

// fds returns the number of descriptors that are sent with the frame.
func (h header) fds() int { return int(h.Flags&flagFDMask) >> flagFDShift }

// ErrPlatform says that attaching is not supported on this system.
var ErrPlatform = fmt.Errorf("attaching is Linux only for now: %w", errors.ErrUnsupported)

// errFrame is a violation of the protocol.
var errFrame = errors.New("bad frame")

// appendFrame appends a frame to b.
func appendFrame(b []byte, op opcode, flags uint16, id uint64, body []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(headerSize+len(body)))
	b = le.AppendUint16(b, uint16(op))
	b = le.AppendUint16(b, flags)
	b = le.AppendUint64(b, id)
	return append(b, body...)
}

// readFrame reads a frame of at most limit bytes. The body is in buf, which grows as needed, until the
// next call.
func readFrame(r io.Reader, buf *[]byte, limit int) (header, []byte, error) {
	var raw [headerSize]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return header{}, nil, err
	}
	h := parseHeader(raw)
	if h.Length < headerSize || int64(h.Length) > int64(limit) {
		return h, nil, fmt.Errorf("%w: length %d: allowed: %d to %d", errFrame, h.Length, headerSize, limit)
	}
	n := int(h.Length) - headerSize
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	body := (*buf)[:n]
	if _, err := io.ReadFull(r, body); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return h, nil, err
	}
	return h, body, nil
}

// parseHeader decodes a header.
func parseHeader(b [headerSize]byte) header {
	le := binary.LittleEndian
	return header{le.Uint32(b[:]), opcode(le.Uint16(b[4:])), le.Uint16(b[6:]), le.Uint64(b[8:])}
}
