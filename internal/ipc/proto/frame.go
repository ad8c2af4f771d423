package proto

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Magic begins the first frame of each side: "SVPI" in memory.
const Magic uint32 = 'S' | 'V'<<8 | 'P'<<16 | 'I'<<24

// The version of the protocol. A side refuses another major version; the lower of the two minor versions
// is used.
const (
	Major uint16 = 2
	Minor uint16 = 22
)

// Sizes and limits.
const (
	// HeaderSize is the size of the header that begins every frame.
	HeaderSize = 16
	// MaxRequest limits the frames of a client, MaxFrame those of the driver.
	MaxRequest = 4096
	MaxFrame   = 1 << 20
	// maxDetail limits the text of an error, in bytes.
	maxDetail = 1024
	// MaxInFlight is how many unanswered requests a client may have.
	MaxInFlight = 64
	// EventCredits is how many events the driver may push before the client grants more.
	EventCredits = 256
	// MaxPush is the number of events per frame: such a frame always fits a track, so that none overtakes
	// another.
	MaxPush = 48
)

// Unanswered is the id of a request that wants no answer, if that is allowed.
const Unanswered = 0

// Flags of a frame. Bits 8 to 11 hold the number of descriptors sent with it.
const (
	FlagResponse uint16 = 1 << iota
	FlagError
	FlagFDShift = 8
	flagFDMask  = 15 << FlagFDShift
)

// Features that a side offers; those offered by both are used.
const (
	FeatureSegments uint64 = 1 << iota
	FeatureProcessVM
	FeatureCopier
	_ // the direct path of 2.0
	FeatureDirect
	FeatureTracks
	FeatureProcess // the program's nonce stays where it is, and it may copy to and from its neighbours' processes
)

// Header begins every frame.
type Header struct {
	Length uint32 // of the frame, with this header
	Op     Opcode
	Flags  uint16
	ID     uint64 // of the request; 0 if there is none
}

// FDs returns the number of descriptors that are sent with the frame.
func (h Header) FDs() int { return int(h.Flags&flagFDMask) >> FlagFDShift }

// ErrPlatform says that attaching is not supported on this system.
var ErrPlatform = fmt.Errorf("attaching is Linux only for now: %w", errors.ErrUnsupported)

// ErrFrame is a violation of the protocol.
var ErrFrame = errors.New("bad frame")

// AppendFrame appends a frame to b.
func AppendFrame(b []byte, op Opcode, flags uint16, id uint64, body []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(HeaderSize+len(body)))
	b = le.AppendUint16(b, uint16(op))
	b = le.AppendUint16(b, flags)
	b = le.AppendUint64(b, id)
	return append(b, body...)
}

// ReadFrame reads a frame of at most limit bytes. The body is in buf, which grows as needed, until the
// next call.
func ReadFrame(r io.Reader, buf *[]byte, limit int) (Header, []byte, error) {
	var raw [HeaderSize]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return Header{}, nil, err
	}
	h := ParseHeader(raw)
	if h.Length < HeaderSize || int64(h.Length) > int64(limit) {
		return h, nil, fmt.Errorf("%w: length %d: allowed: %d to %d", ErrFrame, h.Length, HeaderSize, limit)
	}
	n := int(h.Length) - HeaderSize
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

// ParseHeader decodes a header.
func ParseHeader(b [HeaderSize]byte) Header {
	le := binary.LittleEndian
	return Header{le.Uint32(b[:]), Opcode(le.Uint16(b[4:])), le.Uint16(b[6:]), le.Uint64(b[8:])}
}
