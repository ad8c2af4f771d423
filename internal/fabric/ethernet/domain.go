package ethernet

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/wire/eth"
)

// Domain is bridged switches whose links may be circles. What one hears at a port towards hosts all know at once, as where a control
// plane spreads addresses (IEEE 802.1aq, EVPN): frames go over all shortest ways to the switch of their destination, each flow over
// one, and what goes everywhere follows a tree. When links come and go, Rebuild finds ways and tree anew.
type Domain struct {
	fabric  *Fabric
	ageing  time.Duration
	entries int
	nodes   []int      // of the fabric, by switch of the domain
	index   []int      // of the domain, by node; -1: none
	edges   []uint64   // by switch: ports towards hosts
	ways    [][]uint64 // by switch, and by the switch where frames go: ports that lead closer
	tree    []uint64   // by switch: ports to others of the tree
	known   map[uint64]spot
	count   map[End]int
	swept   clock.Time
	circle  []int // switches of the domain among which all frames go to the next; nil: there is none
}

// spot is where an address was heard.
type spot struct {
	at   End // the node is the switch's number in the domain
	seen clock.Time
}

// sweepEvery is how often what is too old is looked for while a port has as many addresses as it may.
const sweepEvery = time.Second

// NewDomain makes a domain of all switches of a fabric, whose links there are. Ports of a switch at which another switch is, are in all
// VLANs with a tag.
func NewDomain(f *Fabric) *Domain {
	d := &Domain{fabric: f, ageing: bridge.DefaultAgeing, entries: DefaultEntries, known: map[uint64]spot{}, count: map[End]int{}}
	d.index = make([]int, len(f.nodes))
	for i := range f.nodes {
		d.index[i] = -1
		if f.nodes[i].station == nil {
			d.index[i] = len(d.nodes)
			d.nodes = append(d.nodes, i)
			s := f.nodes[i].Switch
			s.domain, s.place = d, len(d.nodes)-1
			if s.cfg.Ageing != 0 {
				d.ageing = s.cfg.Ageing
			}
			d.entries = s.cfg.Entries
		}
	}
	d.Rebuild()
	return d
}

// Rebuild finds ways and tree over the links that are up, and forgets what was heard at ports that are down.
func (d *Domain) Rebuild() {
	n := len(d.nodes)
	d.edges, d.tree, d.ways = make([]uint64, n), make([]uint64, n), make([][]uint64, n)
	for s, node := range d.nodes {
		d.ways[s] = make([]uint64, n)
		for p, peer := range d.fabric.nodes[node].Peers {
			if peer.Node < 0 || d.index[peer.Node] < 0 {
				d.edges[s] |= 1 << p
			}
		}
	}
	reached := make([]bool, n)
	for s := range d.nodes {
		far := d.distances(s, !reached[s], reached)
		for at := range d.nodes {
			d.each(at, func(p, to int) {
				if far[to] >= 0 && far[to] < far[at] {
					d.ways[at][s] |= 1 << p
				}
			})
		}
	}
	for i, s := range d.circle {
		next := d.toNext(s, d.circle[(i+1)%len(d.circle)])
		for _, to := range d.circle {
			if to != s && next != 0 {
				d.ways[s][to] = next
			}
		}
	}
	for key, x := range d.known {
		if s := d.fabric.nodes[d.nodes[x.at.Node]].Switch; s.isolated(&s.ports[x.at.Port]) {
			d.forget(key, x)
		}
	}
}

// toNext returns the ports of a switch that lead to another.
func (d *Domain) toNext(s, to int) (ports uint64) {
	d.each(s, func(p, peer int) {
		if peer == to {
			ports |= 1 << p
		}
	})
	return ports
}

// SetCircle makes frames among some switches, by their nodes, all go to the next of them, and from the last to the first, as wrong routes
// may have it: buffers may then wait for each other in a circle. None ends that. False: two that follow each other have no link.
func (d *Domain) SetCircle(nodes []int) bool {
	var circle []int
	for _, n := range nodes {
		circle = append(circle, d.index[n])
	}
	for i, s := range circle {
		if d.toNext(s, circle[(i+1)%len(circle)]) == 0 {
			return false
		}
	}
	d.circle = circle
	d.Rebuild()
	return true
}

// Forget forgets what was heard at a port towards hosts, which is all that has to be done when its link goes.
func (d *Domain) Forget(at End) {
	s := d.fabric.nodes[at.Node].Switch
	if !s.isolated(&s.ports[at.Port]) { // others of its bundle are there
		return
	}
	for key, x := range d.known {
		if x.at == (End{d.index[at.Node], s.first(&s.ports[at.Port])}) {
			d.forget(key, x)
		}
	}
}

// each calls do for each port of a switch that leads to another and is up.
func (d *Domain) each(at int, do func(port, to int)) {
	x := d.fabric.nodes[d.nodes[at]]
	for p, peer := range x.Peers {
		if peer.Node >= 0 && d.index[peer.Node] >= 0 && !x.Switch.ports[p].down && !d.fabric.port(peer).down {
			do(p, d.index[peer.Node])
		}
	}
}

// distances returns how many links switches are away from one; -1: there is no way. With tree the links over which each was found first
// become the tree's.
func (d *Domain) distances(from int, tree bool, reached []bool) []int {
	far := make([]int, len(d.nodes))
	for i := range far {
		far[i] = -1
	}
	far[from] = 0
	for next := []int{from}; len(next) > 0; next = next[1:] {
		at := next[0]
		reached[at] = reached[at] || tree
		d.each(at, func(p, to int) {
			if far[to] >= 0 {
				return
			}
			far[to] = far[at] + 1
			next = append(next, to)
			if tree {
				d.tree[at] |= 1 << p
				d.tree[to] |= 1 << d.fabric.nodes[d.nodes[at]].Peers[p].Port
			}
		})
	}
	return far
}

// decide learns the source of a frame of a VLAN that a switch has received, and returns where it goes.
func (d *Domain) decide(now clock.Time, s *Switch, p *Port, h *header, vlan uint16, f Ref) (to uint64, v bridge.Verdict) {
	switch {
	case h.src[0]&1 != 0 || h.src == (eth.MAC{}):
		return 0, bridge.Malformed
	case !p.relay.Member(vlan):
		return 0, bridge.UnknownVLAN
	}
	if d.edges[s.place]>>p.number&1 != 0 {
		d.learn(now, End{s.place, s.first(p)}, domainKey(h.src, vlan), p)
	}
	if bridge.ReservedMAC(h.dst) {
		return 0, bridge.Reserved
	}
	x, known := d.known[domainKey(h.dst, vlan)]
	switch {
	case h.dst[0]&1 != 0, !known, now.Sub(x.seen) >= d.ageing:
		return d.flood(s, p, h, vlan, f), bridge.Flooded
	case x.at.Node != s.place:
		if n := s.spread(d.ways[s.place][x.at.Node], h, s.store.Head(f)); n >= 0 {
			return 1 << n, bridge.Forwarded
		}
		return 0, bridge.Filtered
	case x.at.Port == s.first(p):
		return 0, bridge.Filtered
	}
	if n := s.bundleOf(&s.ports[x.at.Port]).member(s, h, f); n >= 0 {
		return 1 << n, bridge.Forwarded
	}
	return 0, bridge.Filtered
}

// flood returns the ports of a switch where what goes everywhere leaves, of a bundle one.
func (d *Domain) flood(s *Switch, p *Port, h *header, vlan uint16, f Ref) (to uint64) {
	to = d.tree[s.place] &^ (1 << p.number)
	from := s.first(p)
	for set := d.edges[s.place]; set != 0; set &= set - 1 {
		o := &s.ports[bits.TrailingZeros64(set)]
		if o.relay == nil || !o.relay.Member(vlan) || s.first(o) != int(o.number) || s.first(o) == from {
			continue
		}
		if n := s.bundleOf(o).member(s, h, f); n >= 0 {
			to |= 1 << n
		}
	}
	return to
}

func domainKey(mac eth.MAC, vlan uint16) uint64 {
	v := uint64(vlan)
	for _, b := range mac {
		v = v<<8 | uint64(b)
	}
	return v
}

// learn notes where a source was heard.
func (d *Domain) learn(now clock.Time, at End, key uint64, p *Port) {
	x, known := d.known[key]
	if known && x.at == at {
		if now.Sub(x.seen) > d.ageing/64 { // not for every frame
			d.known[key] = spot{at, now}
		}
		return
	}
	if d.count[at] >= d.entries && now.Sub(d.swept) >= sweepEvery {
		d.sweep(now)
	}
	if known { // it has moved
		d.forget(key, x)
	}
	if d.count[at] >= d.entries {
		p.unlearned++
		return
	}
	d.known[key] = spot{at, now}
	d.count[at]++
}

func (d *Domain) forget(key uint64, x spot) {
	delete(d.known, key)
	if d.count[x.at]--; d.count[x.at] == 0 {
		delete(d.count, x.at)
	}
}

// sweep forgets what was not heard of for too long.
func (d *Domain) sweep(now clock.Time) {
	d.swept = now
	for key, x := range d.known {
		if now.Sub(x.seen) >= d.ageing {
			d.forget(key, x)
		}
	}
}

// Table returns the addresses that are known, and at which ports of a node frames to them leave.
func (d *Domain) Table(now clock.Time, node int) (all []bridge.Entry) {
	s := d.index[node]
	for key, x := range d.known {
		if now.Sub(x.seen) >= d.ageing {
			continue
		}
		e := bridge.Entry{VLAN: uint16(key >> 48), Port: x.at.Port, Age: now.Sub(x.seen)}
		for i := range e.MAC {
			e.MAC[i] = byte(key >> (40 - 8*i))
		}
		if x.at.Node != s {
			e.Port = bits.TrailingZeros64(d.ways[s][x.at.Node])
		}
		if e.Port < MostPorts {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y bridge.Entry) int {
		a, b := domainKey(x.MAC, x.VLAN), domainKey(y.MAC, y.VLAN)
		return cmp.Compare(a, b)
	})
	return all
}
