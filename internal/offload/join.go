package offload

import (
	"bytes"
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

// Packet is a result of a Joiner: a packet in pieces, with its Header for the system. Several pieces are
// segments that were joined.
type Packet struct {
	Header Header
	Parts  [][]byte

	open     bool // another segment may follow
	headers  int
	at       int // of the TCP header
	sequence uint32
	length   int
}

// Joiner makes one large packet of TCP segments that follow each other, as far as they come in one batch (WinOF 5.50, 4.1.8: receive
// segment coalescing). The system gets every byte of every header but those that it can work out: it could cut the packet
// into the same segments again. The zero value is ready.
type Joiner struct {
	// Join4 and Join6 say for which IP versions packets are checked and joined; others are passed on
	// unchanged.
	Join4, Join6 bool
	list         []Packet
	wrong        int
}

// Reset begins a new batch.
func (j *Joiner) Reset() {
	for n := range j.list {
		p := &j.list[n]
		clear(p.Parts)
		*p = Packet{Parts: p.Parts[:0]}
	}
	j.list, j.wrong = j.list[:0], 0
}

// Wrong returns how many packets of the batch have a wrong checksum. The system gets them too, and checks itself.
func (j *Joiner) Wrong() int { return j.wrong }

// Packets returns those of the batch, in the order of their first segments.
func (j *Joiner) Packets() []Packet {
	for n := range j.list {
		j.list[n].finish()
	}
	return j.list
}

// Add adds a packet, whose memory belongs to the Joiner until Reset.
func (j *Joiner) Add(b []byte) {
	if len(b) == 0 {
		return
	}
	p := j.new(b)
	if b[0]>>4 == 4 && !j.Join4 || b[0]>>4 == 6 && !j.Join6 {
		return
	}
	switch check(b) {
	case unknown:
		return
	case wrong:
		j.wrong++
		return
	}
	p.Header.ChecksumValid = true
	protocol, at, end, _ := transport(b)
	if protocol != eth.ProtocolTCP {
		return
	}
	n := j.flow(b, at)
	if !p.joinable(b, at, end) {
		if n >= 0 {
			j.list[n].open = false
		}
		return
	}
	if n >= 0 && j.list[n].append(p) {
		p.Parts = p.Parts[:0]
		j.list = j.list[:len(j.list)-1]
	}
}

// new appends a packet.
func (j *Joiner) new(b []byte) *Packet {
	if len(j.list) < cap(j.list) {
		j.list = j.list[:len(j.list)+1]
	} else {
		j.list = append(j.list, Packet{})
	}
	p := &j.list[len(j.list)-1]
	*p = Packet{Parts: append(p.Parts[:0], b)}
	return p
}

// flow returns the index of the last earlier packet of the newest one's connection that can be continued,
// -1 if none.
func (j *Joiner) flow(b []byte, at int) int {
	for n := len(j.list) - 2; n >= 0; n-- {
		p := &j.list[n]
		if !p.open || p.at != at {
			continue
		}
		o := p.Parts[0]
		if b[0]>>4 != o[0]>>4 || !bytes.Equal(b[at:at+4], o[at:at+4]) {
			continue
		}
		from, to := 12, 20
		if b[0]>>4 == 6 {
			from, to = 8, 40
		}
		if bytes.Equal(b[from:to], o[from:to]) {
			return n
		}
	}
	return -1
}

// joinable reports whether a packet with a correct checksum can be joined with others, and records what
// that requires.
func (p *Packet) joinable(b []byte, at, end int) bool {
	tcp := b[at:end]
	headers := at + int(tcp[tcpOffset]>>4)*4
	switch {
	case headers < at+tcpLen || headers >= end: // no payload
		return false
	case tcp[tcpFlags]&^flagPSH != flagACK:
		return false
	case b[0]>>4 == 4 && (at != eth.IPv4Len || !eth.IPv4(b).DontFragment() || !eth.IPv4(b).ChecksumOK()):
		return false
	}
	p.Parts[0] = b[:end]
	p.open, p.at, p.headers, p.length = tcp[tcpFlags]&flagPSH == 0, at, headers, end
	p.sequence = binary.BigEndian.Uint32(tcp[tcpSequence:]) + uint32(end-headers)
	p.Header.Segment = end - headers
	return true
}

// append appends the single segment of q if it follows; otherwise it closes p.
func (p *Packet) append(q *Packet) bool {
	b, o := q.Parts[0], p.Parts[0]
	size := len(b) - q.headers
	p.open = p.open && p.headers == q.headers && p.sequence == q.sequence-uint32(size) && size <= p.Header.Segment &&
		p.length+size <= MaxPacket && sameHeaders(b, o, p.at, p.headers)
	if !p.open {
		return false
	}
	p.Parts = append(p.Parts, b[q.headers:])
	p.length += size
	p.sequence = q.sequence
	o[p.at+tcpFlags] |= b[p.at+tcpFlags] & flagPSH
	p.open = q.open && size == p.Header.Segment
	return true
}

// sameHeaders compares the header fields that must be equal in segments to be joined: all except lengths,
// identification, checksums, sequence number, and the flag PSH, which closes a packet.
func sameHeaders(b, o []byte, at, headers int) bool {
	if b[0]>>4 == 4 {
		if b[1] != o[1] || b[6] != o[6] || b[8] != o[8] {
			return false
		}
	} else if !bytes.Equal(b[:4], o[:4]) || b[7] != o[7] {
		return false
	}
	return bytes.Equal(b[at+tcpAck:at+tcpFlags], o[at+tcpAck:at+tcpFlags]) && bytes.Equal(b[at+tcpFlags+1:at+tcpChecksum],
		o[at+tcpFlags+1:at+tcpChecksum]) &&
		bytes.Equal(b[at+tcpChecksum+2:headers], o[at+tcpChecksum+2:headers])
}

// finish adjusts the headers of a joined packet to those of a large packet, which the system could split
// again.
func (p *Packet) finish() {
	if len(p.Parts) == 1 {
		p.Header.Segment = 0
		return
	}
	b := p.Parts[0]
	p.Header = Header{NeedsChecksum: true, Kind: TCPv4, Headers: p.headers, Segment: p.Header.Segment, ChecksumStart: p.at,
		ChecksumAt: tcpChecksum}
	if b[0]>>4 == 6 {
		p.Header.Kind = TCPv6
		binary.BigEndian.PutUint16(b[4:], uint16(p.length-eth.IPv6Len))
	} else {
		eth.IPv4(b).SetTotalLen(p.length)
		eth.IPv4(b).SetChecksum()
	}
	binary.BigEndian.PutUint16(b[p.at+tcpChecksum:], fold(pseudo(b, eth.ProtocolTCP, p.length-p.at)))
}
