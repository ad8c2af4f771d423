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

// layered are the fields by their layers.
var layered = [...]struct {
	fields command.RSSFields
	layer  command.FlowLayers
}{{ofIPv4, command.FlowIPv4}, {ofIPv6, command.FlowIPv6}, {ofTCP, command.FlowTCP}, {ofUDP, command.FlowUDP}}

// NewSpread returns a spread over the queue pairs of a table. The error is a *command.Error.
func NewSpread(r *command.CreateRSS, table []*transport.QP) (*Spread, error) {
	if err := CheckSpread(r); err != nil {
		return nil, err
	}
	s := &Spread{fields: r.Fields, hash: rss.NewToeplitz((*rss.Key)(&r.Key)), table: table}
	for _, x := range layered {
		if r.Fields&x.fields != 0 {
			s.layers |= x.layer
		}
	}
	return s, nil
}

// CheckEntries checks the number of a table's entries. The error is a *command.Error.
func CheckEntries(n uint32) error {
	if bits.OnesCount32(n) != 1 || n > command.MostRSSEntries {
		return command.Errorf(command.Invalid, "Entries is %d, want a power of two up to %d", n, command.MostRSSEntries)
	}
	return nil
}

// CheckSpread checks what can be checked without the queue pairs. The error is a *command.Error.
func CheckSpread(r *command.CreateRSS) error {
	f := r.Fields
	if err := CheckEntries(r.Entries); err != nil {
		return err
	}
	switch {
	case f&command.RSSPresent != 0 && f&^(ofIPv4|ofIPv6|ofTCP|ofUDP|command.RSSPresent) == 0:
	case f&^(ofIPv4|ofIPv6|ofTCP|ofUDP) != 0, f&ofIPv4 != 0 && f&ofIPv6 != 0, f&ofTCP != 0 && f&ofUDP != 0:
		return command.Errorf(command.Unsupported, "Fields is %#x, want fields of IPv4 or IPv6, and of TCP or UDP", uint32(f))
	}
	return nil
}

// SetTable gives the spread another table.
func (s *Spread) SetTable(table []*transport.QP) { s.table = table }

// choose returns the queue pair for a frame, that of the lowest bits of its hash, and the hash, which is 0 for one that lacks the fields.
func (s *Spread) choose(x *fields) (*transport.QP, uint32) {
	f := s.fields
	switch {
	case f&command.RSSPresent != 0:
		f &= present(x)
	case x.layers&s.layers != s.layers:
		f = 0
	}
	if f == 0 {
		return s.table[0], 0
	}
	var in [36]byte
	n := 0
	long := 16
	if f&ofIPv4 != 0 {
		long = 4
	}
	if f&(command.RSSSrcIPv4|command.RSSSrcIPv6) != 0 {
		n += copy(in[n:], x.SrcAddr[:long])
	}
	if f&(command.RSSDstIPv4|command.RSSDstIPv6) != 0 {
		n += copy(in[n:], x.DstAddr[:long])
	}
	if f&(command.RSSSrcTCP|command.RSSSrcUDP) != 0 {
		binary.BigEndian.PutUint16(in[n:], x.SrcPort)
		n += 2
	}
	if f&(command.RSSDstTCP|command.RSSDstUDP) != 0 {
		binary.BigEndian.PutUint16(in[n:], x.DstPort)
		n += 2
	}
	hash := s.hash.Sum(in[:n])
	return s.table[hash&uint32(len(s.table)-1)], hash
}

// present returns the fields that a frame has.
func present(x *fields) (f command.RSSFields) {
	for i := range layered {
		if x.layers&layered[i].layer != 0 {
			f |= layered[i].fields
		}
	}
	return f
}
