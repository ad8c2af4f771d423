package udp

import (
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// A record is what stands between two payloads: the ICRC of the packet before, and
// the BTH of the one behind it.
const recordLen = ib.ICRCLen + ib.BTHLen

const (
	// A message of expected packets has at most maxSegments payloads, as many
	// records, and the room behind them.
	placeVectors = 2*maxSegments + 2
	// placeSize is from which payload on receiving in place pays: two vectors a packet cost
	// the kernel more than the copy of 1,024 bytes that they save.
	placeSize = 2048
	// placeMost is how many messages with expected packets one Receive takes. A burst
	// that is shorter than it could be puts those behind it in the wrong places.
	placeMost = 2
	// maxPayload is the longest payload of a UDP datagram (over IPv6), and so of a burst. No message
	// must hold more expected packets than are expected in one: those behind would
	// be taken ahead of their places.
	maxPayload = 65535 - 8
	// After a Receive most of whose packets were not what was expected, two calls of Expect
	// are in vain, after the next such one four, up to 1<<placePause: several senders
	// take turns.
	placePause = 6
)

// placement receives payload in place. The vectors of a message lead in turn to a record
// and to the place of an expected payload, and at last to the message's own memory,
// as far behind its beginning as the expected packets are long. What is not as expected
// is gathered there.
type placement struct {
	expected frame.Expected
	stride   int // length of an expected packet
	each     int // expected packets of a message
	messages int // messages with expected packets; 0: nothing was expected
	// most is how many messages to take: one behind those with the last expected packets,
	// which ends the message of the transport and begins the next one, most likely. Where
	// the rest of that belongs is known when it has been looked at.
	most     int
	armed    bool // the Receive is still to come
	vectors  [placeMost][placeVectors]unix.Iovec
	records  [placeMost][(maxSegments + 1) * recordLen]byte
	last     int // expected packets of the last message
	hits     int // packets as expected, and others, of this Receive
	misses   int
	failures int // such Receives in a row
	pause    int // calls of Expect in vain still to come
}

// Expect implements link.Placer.
func (l *socketLink) Expect(x *frame.Expected) bool {
	p := &l.receive.place
	if !l.gro || l.receive.next < l.receive.n {
		return false
	}
	p.forget()
	if p.pause > 0 {
		p.pause--
		return false
	}
	if x.Size < placeSize {
		return false
	}
	p.stride = x.Size + ib.BTHLen + ib.ICRCLen
	p.each = maxPayload / p.stride
	if p.each == 0 || p.each > maxSegments {
		return false
	}
	p.expected = *x
	n := len(x.Memory) / x.Size
	whole := (n + p.each - 1) / p.each
	p.messages = min(whole, placeMost, len(l.receive.messages))
	p.last = min(n-(p.messages-1)*p.each, p.each)
	p.most = p.messages
	if p.messages == whole {
		p.most++
	}
	p.armed = true
	return true
}

// placed is how many expected packets message i has.
func (p *placement) placed(i int) int {
	switch {
	case i < p.messages-1:
		return p.each
	case i == p.messages-1:
		return p.last
	}
	return 0
}

// aim leads the vectors of the messages to the expected packets' places and returns
// how many messages to take.
func (r *receiver) aim() int {
	p := &r.place
	if !p.armed {
		p.forget()
		return r.most
	}
	p.armed = false
	mem := p.expected.Memory
	size := p.expected.Size
	for i := range p.messages {
		v, records := &p.vectors[i], &p.records[i]
		n := p.placed(i)
		v[0].Base = &records[ib.ICRCLen]
		v[0].SetLen(ib.BTHLen)
		for j := range n {
			v[2*j+1].Base = &mem[j*size]
			v[2*j+1].SetLen(size)
			v[2*j+2].Base = &records[(j+1)*recordLen]
			v[2*j+2].SetLen(recordLen)
		}
		mem = mem[n*size:]
		// Behind the last payload there is its ICRC alone.
		v[2*n].SetLen(ib.ICRCLen)
		used := n * p.stride
		v[2*n+1].Base = &r.memory[i*r.size+used]
		v[2*n+1].SetLen(r.size - used)
		h := &r.messages[i].header
		h.Iov = &v[0]
		h.SetIovlen(2*n + 2)
	}
	return min(p.most, len(r.messages))
}

// settle gives the messages their own memory back after that Receive. The places stay
// known for as long as packets are cut, but the kernel does not write to them any more.
func (r *receiver) settle() {
	p := &r.place
	for i := range p.messages {
		clear(p.vectors[i][:2*p.placed(i)+2])
		h := &r.messages[i].header
		h.Iov = &r.vectors[i]
		h.SetIovlen(1)
	}
}

// forget ends the expectation when its packets have been cut.
func (p *placement) forget() {
	if p.messages == 0 {
		return
	}
	switch {
	case p.hits > p.misses:
		p.failures = 0
	case p.misses > 0:
		p.failures = min(p.failures+1, placePause)
		p.pause = 1 << p.failures
	}
	p.expected.Memory, p.messages, p.armed = nil, 0, false
	p.hits, p.misses = 0, 0
}

// take makes in the packet at off of message i, of n bytes, which is or was to be
// in one of the places. It reports false where it is another one, which gather puts
// together.
func (p *placement) take(in *frame.In, i, off, n int) bool {
	j := off / p.stride
	if n != p.stride || off%p.stride != 0 || j >= p.placed(i) {
		return false
	}
	at := j*recordLen + ib.ICRCLen
	data := p.records[i][at : at+recordLen : at+recordLen]
	bth := ib.BTH(data[:ib.BTHLen])
	slot := i*p.each + j
	behind := (p.expected.PSN + uint32(slot) - uint32(bth.PSN())) & ib.PSNMask
	// A packet of a PSN ahead of its place would be moved to where one behind it lies.
	if uint8(bth.Opcode()) != p.expected.Opcode || uint32(bth.DestQP()) != p.expected.QPN || bth.PadCount() != 0 || behind > uint32(slot) {
		return false
	}
	from := slot * p.expected.Size
	in.Data, in.Payload = data, p.expected.Memory[from:from+p.expected.Size:from+p.expected.Size]
	return true
}

// gather copies the n bytes at off of message i to their place in the message's own
// memory, as far as they were led elsewhere, and returns them.
func (r *receiver) gather(i, off, n int) []byte {
	p := &r.place
	own := r.memory[i*r.size+off : i*r.size+off+n : i*r.size+off+n]
	placed := p.placed(i) * p.stride
	for at := off; at < off+n && at < placed; {
		j, in := at/p.stride, at%p.stride
		var src []byte
		switch slot := (i*p.each + j) * p.expected.Size; {
		case in < ib.BTHLen:
			src = p.records[i][j*recordLen+ib.ICRCLen+in : (j+1)*recordLen]
		case in < ib.BTHLen+p.expected.Size:
			src = p.expected.Memory[slot+in-ib.BTHLen : slot+p.expected.Size]
		default:
			src = p.records[i][(j+1)*recordLen+in-ib.BTHLen-p.expected.Size : (j+1)*recordLen+ib.ICRCLen]
		}
		at += copy(own[at-off:], src)
	}
	return own
}
