package link

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/softvpi/softvpi/internal/frame"
)

// afterID is the number of bytes covered by the ICRC between the identification of an IPv4 header without
// options and the UDP payload.
const afterID = 14 + 8

// Single converts a frame that encap numbered as a later segment of a burst to one that is sent singly.
// Over IPv4 such a packet has identification 0 instead of its segment's number, and the ICRC covers that
// field: since a CRC is linear, the ICRC changes by the CRC of the difference alone. This is for rare
// cases: a device that refuses segmentation, and impairments, which take bursts apart. ids tells whether
// encap numbered the segments (Capabilities.SegmentIDs).
func Single(o *frame.Out, ids bool) {
	id := o.Segment
	o.Segment, o.Staged = 0, nil
	if !ids || id == 0 || o.Route == nil || !o.Route.Dst.Is4() || o.TailLen < 4 {
		return
	}
	icrc := o.Tail[o.TailLen-4 : o.TailLen]
	d := identificationCRC(id, afterID+o.Len()-4)
	binary.LittleEndian.PutUint32(icrc, binary.LittleEndian.Uint32(icrc)^d)
}

var zeros [4096]byte

// identificationCRC returns the difference that identification id makes to a CRC that continues over n
// more bytes.
func identificationCRC(id uint16, n int) uint32 {
	// The register without its usual start and end values: crc32.Update inverts
	// at both ends, so an inverted 0 goes in and the result is inverted back.
	table := crc32.IEEETable
	b := [2]byte{byte(id >> 8), byte(id)}
	crc := crc32.Update(^uint32(0), table, b[:])
	for n > 0 {
		k := min(n, len(zeros))
		crc = crc32.Update(crc, table, zeros[:k])
		n -= k
	}
	return ^crc
}
