package vport

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/eth"
)

// table is what of an adapter's queues, addresses and VLANs is taken.
type table struct {
	cfg     *Config
	numbers map[int]bool
	filters map[Filter]string // whose they are
	macs    map[eth.MAC]bool
	vlans   map[uint16]bool
}

func newTable(cfg *Config) *table {
	return &table{cfg: cfg, numbers: map[int]bool{}, filters: map[Filter]string{}, macs: map[eth.MAC]bool{}, vlans: map[uint16]bool{}}
}

// admit gives a port the queue that it has, or a free one, or says why it has none.
func (t *table) admit(p *port) {
	if p.cause = t.refuse(p); p.cause != "" {
		p.queue = 0
		return
	}
	for n := 1; p.queue == 0; n++ {
		if !t.numbers[n] {
			p.queue = n
		}
	}
	t.add(p)
}

// refuse returns why a port has no queue of its own; empty: it may have one.
func (t *table) refuse(p *port) Cause {
	switch c := t.cfg; {
	case !c.VMQ:
		return "*VMQ is 0"
	case !c.PreferVMQ:
		return "*RssOrVmqPreference is 0: the adapter offers RSS in place of VMQ"
	case p.Weight == 0:
		return "VmqWeight is 0"
	case p.queue == 0 && len(t.numbers) >= c.Queues:
		return Cause(fmt.Sprintf("all queues are taken: MaxNumVmqs is %d", c.Queues))
	case !t.macs[p.MAC] && len(t.macs) >= c.MACs:
		return Cause(fmt.Sprintf("all filters for addresses are taken: MaxNumMacAddrFilters is %d", c.MACs))
	}
	more := 0
	for _, f := range p.filters {
		if who, taken := t.filters[f]; taken {
			return Cause(fmt.Sprintf("the queue of %s has the filter for address %v", who, f.MAC))
		}
		if f.VLAN != 0 && !t.vlans[f.VLAN] {
			more++
		}
	}
	if more > 0 && len(t.vlans)+more > t.cfg.VLANs {
		return Cause(fmt.Sprintf("all filters for VLANs are taken: MaxNumVlanFilters is %d", t.cfg.VLANs))
	}
	return ""
}

// add notes what a port's queue takes.
func (t *table) add(p *port) {
	t.numbers[p.queue], t.macs[p.MAC] = true, true
	for _, f := range p.filters {
		t.filters[f] = p.name
		if f.VLAN != 0 {
			t.vlans[f.VLAN] = true
		}
	}
}
