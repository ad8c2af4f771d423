package station

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// cutMost is how many parts of frames one Receive of a link hands out.
const cutMost = 256

// Undone returns what is left to do for a frame that the system has handed over with a virtio header. What cannot be left, because
// nobody takes it so, is done here; ok is false if it cannot be.
func (s *Set) Undone(h offload.Header, f []byte) (t offload.Task, ok bool) {
	if !s.Listened() {
		if h.NeedsChecksum {
			complete(h, f)
		}
		return t, true
	}
	if !s.HearsLarge(f) && f[0]&1 == 0 {
		if h.NeedsChecksum {
			sum(h, f)
		}
		return t, true
	}
	var e eth.Headers
	if !e.Parse(f) {
		return t, false
	}
	t, err := h.TaskOf(&e, f)
	if err == nil {
		return t, true
	}
	sum(h, f)
	return offload.Task{}, h.Kind == offload.Whole
}

// sum makes the checksum of a frame, whatever it is of; where there is no place for it there is none.
func sum(h offload.Header, f []byte) {
	n := etherLen(f)
	h.ChecksumStart -= n
	_ = offload.Complete(h, f[n:])
}

// etherLen is the length of a frame's Ethernet header.
func etherLen(f []byte) int {
	if eth.EtherType(binary.BigEndian.Uint16(f[12:])) == eth.TypeVLAN {
		return min(eth.EthernetLen+eth.VLANLen, len(f))
	}
	return eth.EthernetLen
}

// complete makes the checksum of a frame that an interface would have made. UDP's is left out: nobody checks it, and the
// sum of a long packet takes time.
func complete(h offload.Header, f []byte) {
	n := etherLen(f)
	h.ChecksumStart -= n
	if !unsum(f[n:]) {
		_ = offload.Complete(h, f[n:]) // where there is no place for it there is no checksum
	}
}

// unsum takes the checksum out of a UDP packet, and reports whether it is one.
func unsum(p []byte) bool {
	var udp []byte
	if h, payload, err := eth.ParseIPv4(p); err == nil && h.Protocol() == eth.ProtocolUDP && !h.Fragment() {
		udp = payload
	} else if h, payload, err := eth.ParseIPv6(p); err == nil && h.NextHeader() == eth.ProtocolUDP {
		udp = payload
	}
	if len(udp) < eth.UDPLen {
		return false
	}
	eth.UDP(udp).SetChecksum(0)
	return true
}

// Cutter cuts large frames that the system has handed over, for those who do not take them so, into what they are on a wire. The
// zero value has no room before Grow.
type Cutter struct {
	cut    offload.Segments
	memory []byte // for the parts that are handed out; made when the first is
	slot   int    // bytes of memory for one
	used   int    // parts in memory
}

// Grow makes room for parts with packets of up to mtu bytes.
func (c *Cutter) Grow(mtu int) {
	if size := eth.EthernetLen + eth.VLANLen + mtu; size > c.slot {
		c.slot, c.memory = size, nil
	}
}

// Begin begins to cut a frame, which has to stay as it is while Cutting.
func (c *Cutter) Begin(s *Set, h offload.Header, f []byte) {
	if h.Kind == offload.UDP && !s.HearsLarge(f) {
		unsum(f[etherLen(f):])
	}
	var e eth.Headers
	if !e.Parse(f) || c.cut.BeginHeader(h, &e, f) != nil {
		s.stats.ReceiveTruncated++
	}
}

// Cutting reports whether a part is left.
func (c *Cutter) Cutting() bool { return c.cut.Cutting() }

// Reuse says that nobody uses the parts any more that were handed out.
func (c *Cutter) Reuse() { c.used = 0 }

// Hand hands up parts as far as there is space and memory, and returns how many.
func (c *Cutter) Hand(s *Set, in []frame.In) (n int) {
	if c.memory == nil {
		c.memory = make([]byte, cutMost*c.slot)
	}
	for n < len(in) && c.used < cutMost && c.cut.Cutting() {
		head, body, _ := c.cut.Next()
		if len(head)+len(body) > c.slot {
			s.stats.ReceiveTruncated++
			continue
		}
		b := c.memory[c.used*c.slot:][:len(head)+len(body)]
		c.used++
		copy(b[copy(b, head):], body)
		s.Hand(in[n:], b, offload.Task{})
		n++
	}
	return n
}
