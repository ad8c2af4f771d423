package eth

import (
	"encoding/binary"
	"net/netip"
)

// Types of IGMP messages.
const (
	IGMPQuery    = 0x11
	IGMPv2Report = 0x16
	IGMPv2Leave  = 0x17
	IGMPv3Report = 0x22
)

const igmpLen = 8

// IGMP is a query, report or leave of IGMP version 2 (RFC 2236). It is sent with TTL 1 and
// the router alert option: reports to the group, leaves to 224.0.0.2.
type IGMP struct {
	Type        uint8
	MaxRespTime uint8      // tenths of a second, in queries
	Group       netip.Addr // IPv4; 0.0.0.0 in a general query
}

// Append adds the message with its checksum to b.
func (m *IGMP) Append(b []byte) []byte {
	from := len(b)
	b = append(b, m.Type, m.MaxRespTime, 0, 0)
	b = appendIPv4(b, m.Group)
	binary.BigEndian.PutUint16(b[from+2:], Checksum(b[from:]))
	return b
}

// ParseIGMP decodes a version 2 message, or the version 2 part of a version 3 query. The error is a
// *LengthError or a *FieldError.
func ParseIGMP(b []byte) (IGMP, error) {
	if len(b) < igmpLen {
		return IGMP{}, short("igmp message", len(b), igmpLen)
	}
	switch b[0] {
	case IGMPQuery, IGMPv2Report, IGMPv2Leave:
	default:
		return IGMP{}, bad("igmp type", int(b[0]), "query, report or leave of version 2")
	}
	if Checksum(b) != 0 {
		return IGMP{}, bad("igmp checksum", int(binary.BigEndian.Uint16(b[2:])), "that of the message")
	}
	return IGMP{Type: b[0], MaxRespTime: b[1], Group: netip.AddrFrom4([4]byte(b[4:]))}, nil
}

// GroupRecordType is the type of a group record in an IGMPv3 or MLDv2 report (RFC 3376 4.2.12).
type GroupRecordType uint8

// The types of group records. Joining a group from any source means changing to excluding no source;
// leaving it means changing to including none.
const (
	ModeIsInclude   GroupRecordType = 1
	ModeIsExclude   GroupRecordType = 2
	ChangeToInclude GroupRecordType = 3
	ChangeToExclude GroupRecordType = 4
	AllowNewSources GroupRecordType = 5
	BlockOldSources GroupRecordType = 6
)

// GroupRecord is one group of an IGMPv3 or MLDv2 report.
type GroupRecord struct {
	Type    GroupRecordType
	Group   netip.Addr
	Sources []netip.Addr
}

// AppendIGMPv3Report adds a version 3 membership report (RFC 3376 4.2) with its checksum to b.
// It is sent to 224.0.0.22 with TTL 1 and the router alert option.
func AppendIGMPv3Report(b []byte, records []GroupRecord) []byte {
	from := len(b)
	b = append(b, IGMPv3Report, 0, 0, 0, 0, 0, byte(len(records)>>8), byte(len(records)))
	b = appendRecords(b, records, appendIPv4)
	binary.BigEndian.PutUint16(b[from+2:], Checksum(b[from:]))
	return b
}

// AppendIGMPPacket adds the IPv4 packet of a message to b: TTL 1, precedence of internetwork control, and the router alert
// option (RFC 3376 4, RFC 2113). A source that is not valid is 0.0.0.0.
func AppendIGMPPacket(b []byte, src, dst netip.Addr, message []byte) []byte {
	const header = IPv4Len + 4
	from := len(b)
	b = append(b, make([]byte, IPv4Len)...)
	b = append(b, 0x94, 4, 0, 0) // router alert
	h := IPv4(b[from:])
	h.Encode(0xc0, header+len(message), 0, 1, ProtocolIGMP, bytes4(src), bytes4(dst))
	h[ip4Version] = 4<<4 | header/4
	h.SetChecksum()
	return append(b, message...)
}

// ParseIGMPv3Report decodes b as a version 3 membership report. The error is a *LengthError or a
// *FieldError.
func ParseIGMPv3Report(b []byte) ([]GroupRecord, error) {
	if len(b) < igmpLen {
		return nil, short("igmpv3 report", len(b), igmpLen)
	}
	if b[0] != IGMPv3Report {
		return nil, bad("igmp type", int(b[0]), "0x22, version 3 report")
	}
	if Checksum(b) != 0 {
		return nil, bad("igmp checksum", int(binary.BigEndian.Uint16(b[2:])), "that of the message")
	}
	return parseRecords(b[igmpLen:], int(binary.BigEndian.Uint16(b[6:])), 4)
}

func appendRecords(b []byte, records []GroupRecord, addr func([]byte, netip.Addr) []byte) []byte {
	for _, r := range records {
		b = append(b, byte(r.Type), 0, byte(len(r.Sources)>>8), byte(len(r.Sources)))
		b = addr(b, r.Group)
		for _, s := range r.Sources {
			b = addr(b, s)
		}
	}
	return b
}

// parseRecords decodes n group records with addresses of size bytes. Its result is bounded by b's length,
// whatever the counts in b say.
func parseRecords(b []byte, n, size int) ([]GroupRecord, error) {
	var records []GroupRecord
	for range n {
		if len(b) < 4+size {
			return nil, short("group record", len(b), 4+size)
		}
		sources, aux := int(binary.BigEndian.Uint16(b[2:])), int(b[1])*4
		need := 4 + size + sources*size + aux
		if len(b) < need {
			return nil, short("group record", len(b), need)
		}
		r := GroupRecord{Type: GroupRecordType(b[0]), Group: addrOf(b[4 : 4+size])}
		for i := range sources {
			r.Sources = append(r.Sources, addrOf(b[4+size+i*size:][:size]))
		}
		records = append(records, r)
		b = b[need:]
	}
	return records, nil
}

func addrOf(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}
