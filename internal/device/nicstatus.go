package device

import (
	"slices"

	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/internal/hostside"
	"github.com/softvpi/softvpi/wire/eth"
)

// ethernetTotals are counters of functions that are gone, with those of the one that works.
type ethernetTotals struct {
	counters   ethernet.Counters
	queues     []ethernet.QueueCounters // by queue
	processors []ethernet.RSSCounters   // by processor
}

// EthernetStatus is what an adapter's Ethernet function is and has counted since the host began.
type EthernetStatus struct {
	Host   string // what its host is
	On     bool
	Up     bool // and its wire is there
	Asleep bool // the host sleeps
	MAC    [6]byte
	MTU    int // the largest IP packet
	Config ethernet.Config
	// Processors are those of its receive queues, by their numbers.
	Processors []int
	Counters   ethernet.Counters
	// Queues are the counters of receive queues, of all that there ever were, and RSS those of RSS monitoring, by processor.
	Queues []ethernet.QueueCounters
	RSS    []ethernet.RSSCounters
	Side   hostside.Counters
	Filter FilterStatus
	// Sending are frames of the host that have not left.
	Sending int
	// Joining are TCP connections of which segments are being joined.
	Joining int
}

// FilterStatus is which frames a function passes on.
type FilterStatus struct {
	Mode   filter.Mode
	Groups []eth.MAC // on its list
	VLANs  []uint16
	Flows  int // of programs' raw packet queue pairs, which come before the filter
}

// status returns the state of an adapter's Ethernet function; nil: there is none.
func (n *nic) status() *EthernetStatus {
	if n == nil {
		return nil
	}
	s := &EthernetStatus{Host: n.side.End().Kind(), On: n.on(), Up: n.on() && n.a.wire.Up, MAC: n.a.mac, Side: *n.side.Counters()}
	t := n.before.clone()
	if n.on() {
		t.add(n.f)
		s.Config, s.Asleep = n.f.Config(), n.side.Asleep()
		s.Joining = n.f.Joining(n.a.host.now())
		f := n.f.Filter()
		s.Filter = FilterStatus{f.Mode(), slices.Clone(f.Groups()), f.VLANs(), n.a.raw.flows}
		s.MTU = s.Config.JumboPacket - eth.EthernetLen
		for _, p := range n.f.Processors() {
			s.Processors = append(s.Processors, p.Of())
		}
	}
	s.Sending = n.side.Sending()
	s.Counters, s.Queues, s.RSS = t.counters, t.queues, t.processors
	flow := n.a.flowCounters() // what ends at the port counts as its card's
	s.Counters.Control += flow.Control
	s.Counters.ControlUnknown += flow.Unknown
	return s
}

// Ethernet returns the state of an adapter's Ethernet function; nil: it has none.
func (h *Host) Ethernet(index uint32) *EthernetStatus {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return nil
	}
	return a.nic.status()
}

// WatchRSS makes RSS monitoring of an adapter count, if its keys allow it: somebody looks at the counters.
func (h *Host) WatchRSS(index uint32) {
	h.lock()
	defer h.unlock()
	if a, err := h.adapter(index); err == nil && a.nic.on() {
		a.nic.f.WatchRSS()
	}
}

// add adds what a function has counted.
func (t *ethernetTotals) add(f *ethernet.Function) {
	t.counters.Add(f.Counters())
	for q, p := range f.Processors() {
		t.queues = extend(t.queues, q)
		c := f.QueueCounters(q)
		t.queues[q].Add(&c)
		t.processors = extend(t.processors, p.Of())
		t.processors[p.Of()].Add(f.RSSCounters(q))
	}
}

// clone returns a copy that can be added to.
func (t *ethernetTotals) clone() ethernetTotals {
	return ethernetTotals{t.counters, slices.Clone(t.queues), slices.Clone(t.processors)}
}

// extend makes a list long enough to have an element i.
func extend[T any](list []T, i int) []T {
	if missing := i + 1 - len(list); missing > 0 {
		list = append(list, make([]T, missing)...)
	}
	return list
}
