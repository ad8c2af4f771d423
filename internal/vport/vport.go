// Package vport sorts the frames that a physical function receives by virtual ports and their receive queues: virtual machine queues
// (VMQ, WinOF 5.50, 4.6.6.2; WinOF-2 24.4, Using Hyper-V with VMQ), and several queues of one virtual port (VMMQ, WinOF 5.50, 4.5.4).
// It is pure: it gets a frame's headers and says which queue the frame goes to.
package vport

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// Most is how many virtual ports there are at most beside the default one, number 0 (MaxNumVmqs).
	Most       = 127
	mostVLANs  = 127 // MaxNumVlanFilters
	mostQueues = 1024
	mostSpread = rss.MaxEntries
)

// Config is what the registry's keys say, and what the adapter has.
type Config struct {
	VMQ           bool // *VMQ
	PreferVMQ     bool // *RssOrVmqPreference 1: a virtual switch is on the adapter, and VMQ is reported in place of RSS
	VLANFiltering bool // *VMQVlanFiltering
	SpreadVPorts  bool // *RssOnHostVPorts
	Lookahead     bool // *VMQLookaheadSplit
	// VPorts is MaxNumVmqs, MACs MaxNumMacAddrFilters and VLANs MaxNumVlanFilters, each 1 to 127. MACs and VLANs are those of all ports.
	VPorts, MACs, VLANs int
	// Queues is how many receive queues the adapter has, up to 1024, the default port's among them.
	Queues int
	// Processors is how many the queues are spread over, 1 at least.
	Processors int
}

// FieldError says which setting is invalid, and what it may be.
type FieldError struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %v, want %s", e.Field, e.Value, e.Want)
}

func (c *Config) check() error {
	for _, x := range []struct {
		field string
		value int
		most  int
	}{
		{"MaxNumVmqs", c.VPorts, Most}, {"MaxNumMacAddrFilters", c.MACs, Most}, {"MaxNumVlanFilters", c.VLANs, mostVLANs},
		{"receive queues", c.Queues, mostQueues}, {"processors", c.Processors, mostQueues},
	} {
		if x.value < 1 || x.value > x.most {
			return &FieldError{x.field, x.value, fmt.Sprintf("1 to %d", x.most)}
		}
	}
	return nil
}

// VPort is what is set for a virtual port.
type VPort struct {
	// Weight is VmqWeight, 0 to 100. A port of weight 0 has no queue of its own: its frames go to the default port.
	Weight int
	// VRSS says that the host spreads the port's traffic (vRSS), and VMMQ that the adapter is to do it, which is an offload of vRSS and
	// needs it (WinOF 5.50, 4.5.4.3).
	VRSS, VMMQ bool
	// Queues is VmmqQueuePairs, how many are asked for, 1 to 128.
	Queues int
	// Processor is where the first of its queues is served; the others follow.
	Processor int
}

// Queue is a receive queue of a port.
type Queue struct {
	Number, Processor int
	Frames, Bytes     uint64
}

// port is a port that there is.
type port struct {
	VPort
	queues  []Queue
	table   rss.Table
	filters []Filter
}

// Sorter sorts the frames of a physical function.
type Sorter struct {
	cfg     Config
	hash    *rss.Toeplitz
	types   rss.Types
	ports   [Most + 1]*port
	filters map[key]uint8
	vlans   map[uint16]int // how many filters name a VLAN
	free    []int          // queues, the last is taken next
	count   int            // ports beside the default one
}

// New returns a sorter with the default port alone, which has one queue. The error is a *FieldError.
func New(cfg Config) (*Sorter, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Sorter{cfg: cfg, hash: rss.NewToeplitz(&rss.DefaultKey), types: rss.All, filters: map[key]uint8{}, vlans: map[uint16]int{}}
	for q := cfg.Queues - 1; q >= 0; q-- {
		s.free = append(s.free, q)
	}
	s.ports[0] = &port{}
	s.grant(s.ports[0], VPort{Weight: 100, Queues: 1})
	return s, nil
}

// SetHash replaces the key and the types of the hashes that spread frames.
func (s *Sorter) SetHash(k *rss.Key, types rss.Types) {
	s.hash, s.types = rss.NewToeplitz(k), types&rss.All
}

// Set makes a virtual port, or changes it, and returns how many queues it was granted, which may be fewer than it asked for: one
// without VMMQ, or where *RssOnHostVPorts is 0, else what is free. It has none with weight 0. The error is a *FieldError; nothing has
// changed then.
func (s *Sorter) Set(n int, v VPort) (granted int, err error) {
	if err := s.check(n, &v); err != nil {
		return 0, err
	}
	p := s.ports[n]
	if p == nil {
		p = &port{}
		s.ports[n] = p
		s.count++
	}
	return s.grant(p, v), nil
}

func (s *Sorter) check(n int, v *VPort) error {
	switch {
	case n < 0 || n > Most:
		return &FieldError{"virtual port", n, fmt.Sprintf("0 to %d", Most)}
	case n > 0 && !s.cfg.VMQ:
		return &FieldError{"*VMQ", 0, "1, for virtual ports with queues"}
	case n > 0 && !s.cfg.PreferVMQ:
		return &FieldError{"*RssOrVmqPreference", 0, "1, for virtual ports with queues"}
	case n > 0 && s.ports[n] == nil && s.count == s.cfg.VPorts:
		return &FieldError{"number of virtual ports", s.count + 1, fmt.Sprintf("at most %d (MaxNumVmqs)", s.cfg.VPorts)}
	case v.Weight < 0 || v.Weight > 100 || n == 0 && v.Weight == 0:
		return &FieldError{"VmqWeight", v.Weight, "0 to 100, and not 0 for the default port"}
	case v.VMMQ && !v.VRSS:
		return &FieldError{"VmmqEnabled", true, "false until vRSS is enabled"}
	case v.Queues < 1 || v.Queues > mostSpread:
		return &FieldError{"VmmqQueuePairs", v.Queues, fmt.Sprintf("1 to %d", mostSpread)}
	case v.Processor < 0 || v.Processor >= s.cfg.Processors:
		return &FieldError{"processor", v.Processor, fmt.Sprintf("0 to %d", s.cfg.Processors-1)}
	}
	return nil
}

// grant gives a port as many queues as it may have of those that are free, and keeps those that it has.
func (s *Sorter) grant(p *port, v VPort) int {
	want := v.Queues
	if !v.VMMQ || !s.cfg.SpreadVPorts {
		want = 1
	}
	if v.Weight == 0 {
		want = 0
	}
	for len(p.queues) > want {
		last := len(p.queues) - 1
		s.free = append(s.free, p.queues[last].Number)
		p.queues = p.queues[:last]
	}
	for len(p.queues) < want && len(s.free) > 0 {
		last := len(s.free) - 1
		p.queues = append(p.queues, Queue{Number: s.free[last]})
		s.free = s.free[:last]
	}
	for i := range p.queues {
		p.queues[i].Processor = (v.Processor + i) % s.cfg.Processors
	}
	p.VPort = v
	p.table.Spread(len(p.queues))
	return len(p.queues)
}

// SetTable replaces a port's indirection table, whose entries count its queues from 0. The error is a *FieldError or a *rss.TableError.
func (s *Sorter) SetTable(n int, entries []uint8) error {
	if n < 0 || n > Most || s.ports[n] == nil {
		return &FieldError{"virtual port", n, "one that there is"}
	}
	return s.ports[n].table.Set(entries, len(s.ports[n].queues))
}

// Remove takes a virtual port away, with its filters; its queues are free. The default port stays.
func (s *Sorter) Remove(n int) {
	if n < 1 || n > Most || s.ports[n] == nil {
		return
	}
	p := s.ports[n]
	for len(p.filters) > 0 {
		s.RemoveFilter(n, p.filters[0])
	}
	s.grant(p, VPort{})
	s.ports[n] = nil
	s.count--
}

// Queues returns the queues of a port with their counters, which keep counting until the port changes; nil: there is no such port.
func (s *Sorter) Queues(n int) []Queue {
	if n < 0 || n > Most || s.ports[n] == nil {
		return nil
	}
	return s.ports[n].queues
}

// LookaheadEnd is how many bytes of a frame with these headers the virtual switch reads, where receive buffers are split
// (*VMQLookaheadSplit); 0: they are not.
func (s *Sorter) LookaheadEnd(h *eth.Headers) int {
	if !s.cfg.Lookahead {
		return 0
	}
	return max(h.Network, h.Transport, h.Data)
}
