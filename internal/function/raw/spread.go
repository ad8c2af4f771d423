package raw

import (
	"encoding/binary"
	"math/bits"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/internal/transport"
)

// Spread spreads the frames of flows over queue pairs, by the Toeplitz hash over some of their fields.
type Spread struct {
	fields command.RSSFields
	layers command.FlowLayers // that a frame needs
	hash   *rss.Toeplitz
	table  []*transport.QP // a power of two
}

// The fields by what a frame needs.
const (
	ofIPv4 = command.RSSSrcIPv4 | command.RSSDstIPv4
	ofIPv6 = command.RSSSrcIPv6 | command.RSSDstIPv6
	ofTCP  = command.RSSSrcTCP | command.RSSDstTCP
	ofUDP  = command.RSSSrcUDP | command.RSSDstUDP
)

// NewSpread returns a spread over the queue pairs of a table. The error is a *command.Error.
func NewSpread(r *command.CreateRSS, table []*transport.QP) (*Spread, error) {
	if err := CheckSpread(r); err != nil {
		return nil, err
	}
	s := &Spread{fields: r.Fields, hash: rss.NewToeplitz((*rss.Key)(&r.Key)), table: table}
	for _, x := range [...]struct {
		fields command.RSSFields
		layer  command.FlowLayers
	}{{ofIPv4, command.FlowIPv4}, {ofIPv6, command.FlowIPv6}, {ofTCP, command.FlowTCP}, {ofUDP, command.FlowUDP}} {
		if r.Fields&x.fields != 0 {
			s.layers |= x.layer
		}
	}
	return s, nil
}

// CheckSpread checks what can be checked without the queue pairs. The error is a *command.Error.
func CheckSpread(r *command.CreateRSS) error {
	f := r.Fields
	switch {
	case bits.OnesCount32(r.Entries) != 1 || r.Entries > command.MostRSSEntries:
		return command.Errorf(command.Invalid, "Entries is %d, want a power of two up to %d", r.Entries, command.MostRSSEntries)
	case f&^(ofIPv4|ofIPv6|ofTCP|ofUDP) != 0, f&ofIPv4 != 0 && f&ofIPv6 != 0, f&ofTCP != 0 && f&ofUDP != 0:
		return command.Errorf(command.Unsupported, "Fields is %#x, want fields of IPv4 or IPv6, and of TCP or UDP", uint32(f))
	}
	return nil
}

// choose returns the queue pair for a frame: that of the lowest bits of its hash, which is 0 for one that lacks the fields.
func (s *Spread) choose(x *fields) *transport.QP {
	if s.fields == 0 || x.layers&s.layers != s.layers {
		return s.table[0]
	}
	var in [36]byte
	n := 0
	long := 16
	if s.fields&ofIPv4 != 0 {
		long = 4
	}
	if s.fields&(command.RSSSrcIPv4|command.RSSSrcIPv6) != 0 {
		n += copy(in[n:], x.SrcAddr[:long])
	}
	if s.fields&(command.RSSDstIPv4|command.RSSDstIPv6) != 0 {
		n += copy(in[n:], x.DstAddr[:long])
	}
	if s.fields&(command.RSSSrcTCP|command.RSSSrcUDP) != 0 {
		binary.BigEndian.PutUint16(in[n:], x.SrcPort)
		n += 2
	}
	if s.fields&(command.RSSDstTCP|command.RSSDstUDP) != 0 {
		binary.BigEndian.PutUint16(in[n:], x.DstPort)
		n += 2
	}
	return s.table[s.hash.Sum(in[:n])&uint32(len(s.table)-1)]
}
