package offload

import (
	"bytes"
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

// mostFlows is how many connections a Joiner joins segments of at the same time; there are hardly more in one batch that
// have several segments each.
const mostFlows = 16

// Packet is a result of a Joiner: a packet in pieces, with its Header for the system. Several pieces are
// segments that were joined.
type Packet struct {
	Header Header
	// Task says the same between functions and ports, and Headers is where the headers are in the first of the Parts.
	Task    Task
	Headers eth.Headers
	// Hash and Note are what the packet was added with.
	Hash, Note uint32
	Parts      [][]byte

	open     bool // another segment may follow
	sequence uint32
	length   int
}

// Joiner makes one large packet of TCP segments that follow each other, as far as they come in one batch (WinOF 5.50, 4.1.8: receive
// segment coalescing). The system gets every byte of every header but those that it can work out: it could cut the packet
// into the same segments again. The zero value is ready.
type Joiner struct {
	// Join4 and Join6 say for which IP versions packets are joined; Add also checks only those.
	Join4, Join6 bool
	list         []Packet
	flows        [mostFlows]int // the packets that are open, by their index in list; -1: none
	flowing      int            // entries of flows in use
	oldest       int            // the next entry to be given to another flow if all are in use
	wrong        int
	aborts       int
}

// Reset begins a new batch.
func (j *Joiner) Reset() {
	for n := range j.list {
		p := &j.list[n]
		clear(p.Parts)
		p.Parts, p.open = p.Parts[:0], false
	}
	j.list, j.wrong, j.aborts, j.flowing, j.oldest = j.list[:0], 0, 0, 0, 0
}

// Wrong returns how many packets that Add has checked have a wrong checksum. The system gets them too, and checks itself.
func (j *Joiner) Wrong() int { return j.wrong }

// Aborts returns how many times of the batch joining ended for a reason other than the length of a packet, or a connection
// found no room (WinOF 5.50, 4.1.8.2).
func (j *Joiner) Aborts() int { return j.aborts }

// Len returns how many bytes a packet has.
func (p *Packet) Len() (n int) {
	for _, b := range p.Parts {
		n += len(b)
	}
	return n
}

// Packets returns those of the batch, in the order of their first segments.
func (j *Joiner) Packets() []Packet {
	for n := range j.list {
		j.list[n].finish()
	}
	return j.list
}

// Add adds an IP packet without an Ethernet header, whose memory belongs to the Joiner until Reset, and checks its checksums.
func (j *Joiner) Add(b []byte) {
	if len(b) == 0 {
		return
	}
	p := j.new(b)
	p.Headers.ParseIP(b)
	if !j.joins(p.Headers.Version) {
		return
	}
	p.Task.Sums = Check(&p.Headers, b)
	if p.Task.Sums&BadTransport != 0 {
		j.wrong++
	}
	j.join(p)
}

// AddFrame adds a frame, whose memory belongs to the Joiner until Reset, with its headers, what its sender has left to do,
// the hash of its connection, and a note. It is joined if its checksums are right or left to be made; one to a group never,
// since others have the same memory.
func (j *Joiner) AddFrame(h *eth.Headers, b []byte, t Task, hash, note uint32) {
	p := j.new(b)
	p.Headers, p.Task, p.Hash, p.Note = *h, t, hash, note
	if b[0]&1 == 0 && j.joins(h.Version) {
		j.join(p)
	}
}

func (j *Joiner) joins(version uint8) bool { return version == 4 && j.Join4 || version == 6 && j.Join6 }

// join joins the newest packet with another of its connection, if it follows.
func (j *Joiner) join(p *Packet) {
	if p.Headers.Data == 0 || p.Headers.Protocol != eth.ProtocolTCP {
		return
	}
	if p.Task.Sums&(GoodTransport|MakeTransport) == 0 {
		return
	}
	at := j.flow(p)
	if !p.joinable() {
		if at >= 0 {
			j.aborts++
			j.close(at)
		}
		return
	}
	if at >= 0 {
		o := &j.list[j.flows[at]]
		switch joined, abort := o.append(p); {
		case joined:
			p.Parts = p.Parts[:0]
			j.list = j.list[:len(j.list)-1]
			if !o.open {
				j.close(at)
			}
			return
		case abort:
			j.aborts++
		}
		j.close(at)
	}
	if p.open {
		j.open(len(j.list) - 1)
	}
}

// open remembers that a packet may be continued.
func (j *Joiner) open(n int) {
	if j.flowing < mostFlows {
		j.flows[j.flowing] = n
		j.flowing++
		return
	}
	j.aborts++
	j.list[j.flows[j.oldest]].open = false
	j.flows[j.oldest] = n
	j.oldest = (j.oldest + 1) % mostFlows
}

// close ends a flow.
func (j *Joiner) close(at int) {
	j.list[j.flows[at]].open = false
	j.flowing--
	j.flows[at] = j.flows[j.flowing]
}

// new appends a packet.
func (j *Joiner) new(b []byte) *Packet {
	if len(j.list) < cap(j.list) {
		j.list = j.list[:len(j.list)+1]
	} else {
		j.list = append(j.list, Packet{})
	}
	p := &j.list[len(j.list)-1]
	p.Header, p.Task, p.Hash, p.Note, p.open = Header{}, Task{}, 0, 0, false
	p.Parts = append(p.Parts[:0], b)
	return p
}

// flow returns where the flow of a packet is, -1 if there is none that can be continued.
func (j *Joiner) flow(p *Packet) int {
	h, b := &p.Headers, p.Parts[0]
	for n := range j.flows[:j.flowing] {
		q := &j.list[j.flows[n]]
		g, o := &q.Headers, q.Parts[0]
		if q.Hash != p.Hash || g.Version != h.Version || g.Transport != h.Transport || g.Network != h.Network ||
			!bytes.Equal(b[h.Transport:h.Transport+4], o[h.Transport:h.Transport+4]) {
			continue
		}
		from, to := 12, 20
		if h.Version == 6 {
			from, to = 8, 40
		}
		if bytes.Equal(b[h.Network+from:h.Network+to], o[h.Network+from:h.Network+to]) && bytes.Equal(b[:h.Network], o[:h.Network]) {
			return n
		}
	}
	return -1
}

// joinable reports whether a packet can be joined with others, and records what that requires.
func (p *Packet) joinable() bool {
	h, b := &p.Headers, p.Parts[0]
	tcp, ip := b[h.Transport:], b[h.Network:]
	switch {
	case h.Data >= h.End: // no payload
		return false
	case p.Task.Kind != Whole || h.Options || p.Task.Sums&BadIP != 0:
		return false
	case tcp[tcpFlags]&^flagPSH != flagACK:
		return false
	case h.Version == 4 && (!eth.IPv4(ip).DontFragment() || p.Task.Sums&(GoodIP|MakeIP) == 0 && !eth.IPv4(ip).ChecksumOK()):
		return false
	}
	p.Parts[0] = b[:h.End]
	p.open, p.length = tcp[tcpFlags]&flagPSH == 0, h.End-h.Network
	p.sequence = binary.BigEndian.Uint32(tcp[tcpSequence:]) + uint32(h.End-h.Data)
	p.Task.Segment = uint16(h.End - h.Data)
	return true
}

// append appends the single segment of q if it follows. Otherwise abort says that the reason is not the length.
func (p *Packet) append(q *Packet) (joined, abort bool) {
	b, o := q.Parts[0], p.Parts[0]
	h := &q.Headers
	size := h.End - h.Data
	if p.length+size > MaxPacket {
		return false, false
	}
	if p.Headers.Data != h.Data || p.sequence != q.sequence-uint32(size) || size > int(p.Task.Segment) || !sameHeaders(h, b, o) {
		return false, true
	}
	p.Parts = append(p.Parts, b[h.Data:])
	p.length += size
	p.sequence = q.sequence
	o[h.Transport+tcpFlags] |= b[h.Transport+tcpFlags] & flagPSH
	p.open = q.open && size == int(p.Task.Segment)
	return true, false
}

// sameHeaders compares the header fields that must be equal in segments to be joined: all except lengths,
// identification, checksums, sequence number, and the flag PSH, which closes a packet.
func sameHeaders(h *eth.Headers, b, o []byte) bool {
	at, x, y := h.Transport, b[h.Network:], o[h.Network:]
	if h.Version == 4 {
		if x[1] != y[1] || x[6] != y[6] || x[8] != y[8] {
			return false
		}
	} else if !bytes.Equal(x[:4], y[:4]) || x[7] != y[7] {
		return false
	}
	return bytes.Equal(b[at+tcpAck:at+tcpFlags], o[at+tcpAck:at+tcpFlags]) && bytes.Equal(b[at+tcpFlags+1:at+tcpChecksum],
		o[at+tcpFlags+1:at+tcpChecksum]) &&
		bytes.Equal(b[at+tcpChecksum+2:h.Data], o[at+tcpChecksum+2:h.Data])
}

// finish adjusts the headers of a joined packet to those of a large packet, which the system could split
// again.
func (p *Packet) finish() {
	if len(p.Parts) > 1 {
		p.Task.Kind, p.Task.Sums = TCPv4, p.Task.Sums&^(GoodTransport|MakeIP)|MakeTransport|GoodIP
		if p.Headers.Version == 6 {
			p.Task.Kind, p.Task.Sums = TCPv6, MakeTransport
		}
		enlarge(&p.Headers, p.Parts[0], p.length)
	} else if p.Task.Kind == Whole {
		p.Task.Segment = 0
	}
	if p.Header = p.Task.Header(&p.Headers); p.Task.Kind.InTunnel() {
		p.Header, _ = p.Task.HeaderOf(p.Parts[0])
	}
}
