package hostside

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// firstRetry and lastRetry are after what times a host without room is asked again: the pause doubles while it takes
	// nothing. A socket of a virtual machine has room for a dozen frames only.
	firstRetry = 50 * time.Microsecond
	lastRetry  = 5 * time.Millisecond
	macs       = 12 // where a tag belongs in a frame
)

// Indicate implements ethernet.Host.
func (s *Side) Indicate(now clock.Time, q int, list []ethernet.Packet) int {
	if s.deaf {
		s.blocked(now, q)
		return 0
	}
	if l := s.lane(now, q, len(list)); l != nil {
		n := s.hand(now, l, q, list)
		s.counters.Threaded += uint64(n)
		return n
	}
	for i := range list {
		switch s.end.Write(q, s.frame(&list[i])) {
		case Taken:
			s.counters.Written++
			s.pause = 0
		case Lost:
			s.counters.Lost++
		case Full:
			s.blocked(now, q)
			return i
		}
	}
	return len(list)
}

// blocked notes that the host takes no more of a queue for now.
func (s *Side) blocked(now clock.Time, q int) {
	s.counters.Blocked++
	s.full |= 1 << q
	s.pause = min(max(2*s.pause, firstRetry), lastRetry)
	s.retry = clock.Min(s.retry, now.Add(s.pause))
}

// Deafen makes the host take nothing, as one that is stuck, until the function is attached again.
func (s *Side) Deafen() { s.deaf = true }

// frame returns the pieces of a frame as the host takes it: with the tag that was taken out, and with a virtio header.
func (s *Side) frame(p *ethernet.Packet) [][]byte {
	s.pieces = s.pieces[:0]
	parts, h := p.Parts, p.Header
	if s.end.Virtio() {
		if p.Tagged {
			h.ChecksumStart += eth.VLANLen
			h.Headers += eth.VLANLen
			h.Outer += eth.VLANLen
			h.Inner += eth.VLANLen
		}
		if !h.NeedsChecksum {
			h.ChecksumStart, h.ChecksumAt = 0, 0
		}
		if h.Kind == offload.Whole {
			h.Headers = 0
		}
		n := offload.HeaderLen
		if s.tunnels {
			n = offload.TunnelHeaderLen
		}
		h.PutTunnel(s.header[:])
		s.pieces = append(s.pieces, s.header[:n])
	}
	if p.Tagged {
		binary.BigEndian.PutUint16(s.tag[:], uint16(eth.TypeVLAN))
		binary.BigEndian.PutUint16(s.tag[2:], p.TCI)
		s.pieces = append(s.pieces, parts[0][:macs], s.tag[:], parts[0][macs:])
		parts = parts[1:]
	}
	s.pieces = append(s.pieces, parts...)
	return s.pieces
}

// again asks a host that had no room.
func (s *Side) again(now clock.Time) {
	set := s.full
	s.full, s.retry = 0, clock.Never
	for ; set != 0; set &= set - 1 {
		s.f.Ready(now, bits.TrailingZeros64(set))
	}
}
