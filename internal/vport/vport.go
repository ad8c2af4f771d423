// Package vport gives receive queues of a physical function to virtual ports: virtual machine queues (VMQ; WinOF 5.50, 4.5.1 and 4.6.6.2;
// WinOF-2 24.4, Using Hyper-V with VMQ). A queue has filters, by which the frames of its port are known: a destination address, and a VLAN.
// There are so many queues, addresses and VLANs, and no more; frames of ports without a queue come through the default one. It is pure:
// the frames themselves are not seen here.
package vport

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// Most is how many queues there can be beside the default one, number 0 (MaxNumVmqs), and how many addresses and VLANs
	// (MaxNumMacAddrFilters, MaxNumVlanFilters).
	Most = 127
	// MostWeight is the largest VmqWeight.
	MostWeight = 100
	mostVLAN   = 4094
)

// Config is what the registry's keys say.
type Config struct {
	VMQ           bool // *VMQ
	PreferVMQ     bool // *RssOrVmqPreference 1: VMQ is offered, in place of RSS
	VLANFiltering bool // *VMQVlanFiltering
	// Queues is MaxNumVmqs, MACs MaxNumMacAddrFilters and VLANs MaxNumVlanFilters, each 1 to Most.
	Queues, MACs, VLANs int
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

// Port is what is set for a virtual port.
type Port struct {
	// Weight is VmqWeight. A port of weight 0 has no queue of its own, and where queues are fewer than ports, one that becomes free is
	// for the heaviest of those that wait.
	Weight int
	MAC    eth.MAC
	// VLANs are those of its frames, 0 for frames without a tag; AnyVLAN is all.
	VLANs   []uint16
	AnyVLAN bool
}

// Cause says why a port has no queue of its own.
type Cause string

// Filter is what a queue's frames have: a destination address, and a VLAN, 0 for frames without a tag, or any.
type Filter struct {
	MAC     eth.MAC
	VLAN    uint16
	AnyVLAN bool
}

// Queues are the receive queues of a physical function.
type Queues struct {
	cfg   Config
	ports []*port // in the order in which they came
}

type port struct {
	name string
	Port
	filters []Filter // that a queue of its own has
	queue   int      // 0: the default one
	cause   Cause
}

// New returns the queues, which no port has. The error is a *FieldError.
func New(cfg Config) (*Queues, error) {
	for _, x := range []struct {
		field string
		value int
	}{{"MaxNumVmqs", cfg.Queues}, {"MaxNumMacAddrFilters", cfg.MACs}, {"MaxNumVlanFilters", cfg.VLANs}} {
		if x.value < 1 || x.value > Most {
			return nil, &FieldError{x.field, x.value, fmt.Sprintf("1 to %d", Most)}
		}
	}
	return &Queues{cfg: cfg}, nil
}

// Config returns what the queues were made with.
func (q *Queues) Config() Config { return q.cfg }

// Set adds a port, or changes it, and gives it a queue if it may have one: the one that it has, if it has one and its filters still fit.
// A queue that becomes free goes to a port that waits; no other port loses its own. The error is a *FieldError; nothing has changed then.
func (q *Queues) Set(name string, p Port) error {
	if err := p.check(); err != nil {
		return err
	}
	o := q.find(name)
	if o == nil {
		o = &port{name: name}
		q.ports = append(q.ports, o)
	}
	o.Port, o.filters = p, q.filtersOf(&p)
	q.settle(o)
	return nil
}

func (p *Port) check() error {
	switch {
	case p.Weight < 0 || p.Weight > MostWeight:
		return &FieldError{"VmqWeight", p.Weight, fmt.Sprintf("0 to %d", MostWeight)}
	case p.MAC[0]&1 != 0 || p.MAC == (eth.MAC{}):
		return &FieldError{"MAC", p.MAC, "the address of one station"}
	case len(p.VLANs) == 0 && !p.AnyVLAN:
		return &FieldError{"VLANs", "none", fmt.Sprintf("at least one of 0 to %d", mostVLAN)}
	}
	for _, v := range p.VLANs {
		if v > mostVLAN {
			return &FieldError{"VLAN", v, fmt.Sprintf("0 to %d", mostVLAN)}
		}
	}
	return nil
}

// filtersOf returns the filters of a port's queue. Without *VMQVlanFiltering an address alone is one, and VLANs are told apart behind it.
func (q *Queues) filtersOf(p *Port) (list []Filter) {
	if p.AnyVLAN || !q.cfg.VLANFiltering {
		return []Filter{{MAC: p.MAC, AnyVLAN: true}}
	}
	for _, v := range p.VLANs {
		if f := (Filter{MAC: p.MAC, VLAN: v}); !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// Remove takes a port away. Its queue, if it has one, goes to a port that waits.
func (q *Queues) Remove(name string) {
	q.ports = slices.DeleteFunc(q.ports, func(p *port) bool { return p.name == name })
	q.settle(nil)
}

// Queue returns the number of a port's queue, or 0, the default one, and why that is so. ok is false if there is no such port.
func (q *Queues) Queue(name string) (number int, why Cause, ok bool) {
	p := q.find(name)
	if p == nil {
		return 0, "", false
	}
	return p.queue, p.cause, true
}

// Filters returns the filters of a port's own queue; none: it has none.
func (q *Queues) Filters(name string) []Filter {
	p := q.find(name)
	if p == nil || p.queue == 0 {
		return nil
	}
	return slices.Clone(p.filters)
}

// Used returns how many queues, addresses and VLANs ports have.
func (q *Queues) Used() (queues, macs, vlans int) {
	t := newTable(&q.cfg)
	for _, p := range q.ports {
		if p.queue != 0 {
			t.add(p)
		}
	}
	return len(t.numbers), len(t.macs), len(t.vlans)
}

func (q *Queues) find(name string) *port {
	for _, p := range q.ports {
		if p.name == name {
			return p
		}
	}
	return nil
}

// settle decides anew who has which queue, when a port has changed; nil: one is gone. Those that have one keep it before it, and it keeps
// its own before those that wait.
func (q *Queues) settle(changed *port) {
	t := newTable(&q.cfg)
	for _, p := range q.ports {
		if p.queue != 0 && p != changed {
			t.admit(p)
		}
	}
	if changed != nil && changed.queue != 0 {
		t.admit(changed)
	}
	waiting := slices.DeleteFunc(slices.Clone(q.ports), func(p *port) bool { return p.queue != 0 })
	slices.SortStableFunc(waiting, func(a, b *port) int { return cmp.Compare(b.Weight, a.Weight) })
	for _, p := range waiting {
		t.admit(p)
	}
}
