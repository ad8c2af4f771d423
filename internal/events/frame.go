package events

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A segment of the log is a sequence of frames: the mark, the length of the payload and the CRC-32C of
// length and payload (both 32 bits, little endian), the payload. The mark lets a reader find the next
// frame after damage.
const (
	frameHeader = 12
	maxPayload  = 16 << 10
)

var (
	mark       = []byte("SVE\x01")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// appendFrame appends a frame to b.
func appendFrame(b, payload []byte) []byte {
	b = append(b, mark...)
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, frameSum(b[at:at+4], payload))
	return append(b, payload...)
}

func frameSum(length, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, payload)
}

// firstFrame returns the payload of the frame that b begins with.
func firstFrame(b []byte) (payload []byte, ok bool) {
	if len(b) < frameHeader || !bytes.HasPrefix(b, mark) {
		return nil, false
	}
	n := binary.LittleEndian.Uint32(b[4:])
	if n > maxPayload || int(n) > len(b)-frameHeader {
		return nil, false
	}
	payload = b[frameHeader : frameHeader+n]
	return payload, frameSum(b[4:8], payload) == binary.LittleEndian.Uint32(b[8:])
}

// scanFrames calls f with the records of a segment in order. It returns where the last complete frame
// ends, and how many bytes before that belong to none.
func scanFrames(b []byte, f func(Record)) (end, damaged int) {
	for i := 0; i < len(b); {
		if payload, ok := firstFrame(b[i:]); ok {
			if r, err := decodeRecord(payload); err == nil {
				f(r)
				damaged += i - end
				i += frameHeader + len(payload)
				end = i
				continue
			}
		}
		next := bytes.Index(b[i+1:], mark)
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return end, damaged
}
