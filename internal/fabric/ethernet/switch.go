package ethernet

import (
	"fmt"
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/clock/due"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lldp"
)

// Switch is an Ethernet switch.
type Switch struct {
	// LLDP takes data units of LLDP that arrive at a port, which no switch forwards (IEEE 802.1AB, 7.1), valid until it returns; nil: they
	// are dropped.
	LLDP func(now clock.Time, port int, frame []byte)
	// Slow takes frames of slow protocols that arrive at a port, LACP among them, which no switch forwards either (IEEE 802.3, 57A.3),
	// and returns whether it does: others are dropped, and all are if it is nil.
	Slow func(now clock.Time, port int, frame []byte) bool

	cfg    Config
	store  *Store
	ports  []Port
	buffer buffer
	relay  *bridge.Relay
	due    due.Times
	late   late
	// apart says that nothing but what Receive is about happens at the time.
	apart bool

	entries []entry // of queues; the first is none
	free    uint32  // the first that is in no queue
	out     []Departure
	taken   int

	bundles []bundle
	bridged [MostPorts]uint8 // the bundle of each port of the relay
	routes  routes
	storms  []Storm
	domain  *Domain // nil: the relay says where frames go
	place   int     // among its switches
	crossed bool    // it is a station's: what arrives at the other ports leaves by the last as it is
}

// Departure is a frame that leaves a switch.
type Departure struct {
	Frame Ref
	Port  int
	At    clock.Time // when its last bit arrives at the other end
}

// mostStorms is how many reports of storms are kept until they are asked for.
const mostStorms = 64

// New returns a switch with ports, whose frames are in a store. Bundles are sets of ports that lead to the same host (link
// aggregation, chosen by flow), each with at most one of them. The error is a *FieldError.
func New(store *Store, cfg Config, ports []PortConfig, bundles ...[]int) (*Switch, error) {
	s, err := build(store, cfg, ports)
	if err != nil {
		return nil, err
	}
	if s.relay, err = bridge.NewRelay(bridge.Config{Ageing: s.cfg.Ageing, Entries: s.cfg.Entries}); err != nil {
		return nil, err
	}
	if err := s.bundle(bundles); err != nil {
		return nil, err
	}
	return s, nil
}

// build returns a switch that knows nothing of where frames go.
func build(store *Store, cfg Config, ports []PortConfig) (*Switch, error) {
	if err := cfg.settle(); err != nil {
		return nil, err
	}
	if len(ports) == 0 || len(ports) > MostPorts {
		return nil, bad("ports", len(ports), fmt.Sprintf("1 to %d", MostPorts))
	}
	s := &Switch{cfg: cfg, store: store, due: due.New(len(ports)), entries: make([]entry, 1),
		storms: make([]Storm, 0, mostStorms), ports: make([]Port, len(ports))}
	s.buffer.size, s.late.first = cfg.Buffer, clock.Never
	for i, c := range ports {
		if err := c.settle(); err != nil {
			return nil, fmt.Errorf("port %d: %w", i, err)
		}
		s.ports[i] = newPort(s, i, c)
		for k := range s.ports[i].classes {
			s.buffer.size -= s.ports[i].classes[k].group.room
		}
	}
	if s.buffer.size < leastShared {
		return nil, bad("Buffer", cfg.Buffer, fmt.Sprintf("%d or more, for the headroom of all ports and %d to share",
			cfg.Buffer-s.buffer.size+leastShared, leastShared))
	}
	return s, nil
}

// MAC returns the switch's own.
func (s *Switch) MAC() eth.MAC { return s.cfg.MAC }

// Ports returns the number of ports.
func (s *Switch) Ports() int { return len(s.ports) }

// Port returns a port by its number, from 0.
func (s *Switch) Port(i int) *Port { return &s.ports[i] }

// Table returns the sources that are known; their ports are bundles.
func (s *Switch) Table(now clock.Time) []bridge.Entry {
	all := s.relay.Table(now)
	for i := range all {
		all[i].Port = s.bundles[s.bridged[all[i].Port]].ports[0]
	}
	return all
}

// Usage returns what is used of the buffer.
func (s *Switch) Usage(now clock.Time) Usage {
	s.settle(now, MostPorts)
	u := Usage{Size: s.buffer.size, Used: s.buffer.used, Peak: s.buffer.peak}
	for i := range s.ports {
		for k := range s.ports[i].classes {
			u.Headroom += s.ports[i].classes[k].group.headroom
		}
	}
	return u
}

// Storm returns a storm that has begun, each once; false: there is none. At most 64 are kept.
func (s *Switch) Storm() (Storm, bool) {
	if len(s.storms) == 0 {
		return Storm{}, false
	}
	first := s.storms[0]
	s.storms = s.storms[:copy(s.storms, s.storms[1:])]
	return first, true
}

// Deadline returns when Advance is wanted next.
func (s *Switch) Deadline() clock.Time { return s.due.First() }

// Advance does what is due: frames leave, pauses end or are sent.
func (s *Switch) Advance(now clock.Time) {
	for s.due.First() <= now {
		s.ports[s.due.Next()].turn(now)
	}
}

// Take returns frames that leave, at most len(out). They are the caller's.
func (s *Switch) Take(out []Departure) int {
	n := copy(out, s.out[s.taken:])
	if s.taken += n; s.taken == len(s.out) {
		s.out, s.taken = s.out[:0], 0
	}
	return n
}

// leave gives back the room of a frame that has left by a port, behind those that have left before it where that matters.
func (s *Switch) leave(now clock.Time, by int, c charge) {
	p := &s.ports[c.port]
	if p.xoff>>c.group&1 != 0 {
		s.settle(now, by)
	}
	p.leave(now, c.group, int(c.size))
}

// Receive takes a frame whose last bit has arrived at a port. What follows from it happens at the next Advance.
func (s *Switch) Receive(now clock.Time, port int, f Ref) {
	p := &s.ports[port]
	var h header
	b := s.store.Head(f)
	n := s.store.Len(f)
	d := &p.dropped
	switch {
	case p.down:
		d.Down++
	case !h.parse(b):
		d.Malformed++
	case h.version == 0 && s.listen(now, p, &h, b):
	case p.deaf:
		d.Inactive++
	case n > p.cfg.Limit+h.network:
		d.TooLong++
	default:
		priority := p.priority(&h)
		p.seen |= 1 << priority
		p.classes[priority].group.arrived.add(n)
		if to := s.forward(now, p, &h, b, f); to != 0 && s.enqueue(now, p, &h, f, n, priority, to) {
			return
		}
	}
	s.store.Drop(f)
}

// listen takes a frame that is for the switch itself: pauses, and what LLDP and Slow take; false: it is none.
func (s *Switch) listen(now clock.Time, p *Port, h *header, b []byte) bool {
	switch {
	case h.pause():
		p.control(now, b)
	case s.LLDP != nil && h.kind == lldp.EtherType && h.dst == lldp.NearestBridge:
		s.LLDP(now, int(p.number), b)
	case s.Slow != nil && h.slow() && s.Slow(now, int(p.number), b):
	default:
		return false
	}
	return true
}

// forward returns the ports where a frame leaves, of which b are the first bytes, bit n for port n. None: it is counted why.
func (s *Switch) forward(now clock.Time, p *Port, h *header, b []byte, f Ref) uint64 {
	d := &p.dropped
	switch {
	case s.crossed:
		return 1 << (len(s.ports) - 1)
	case p.relay == nil:
		if h.dst != s.cfg.MAC {
			d.NoRoute++
			return 0
		}
		return s.route(p, h, b, f)
	}
	vlan := p.relay.VLAN(h.tci & eth.VIDMask)
	s.store.frames[f].vlan = vlan
	to, verdict := s.decide(now, p, h, vlan, f)
	switch verdict {
	case bridge.UnknownVLAN:
		d.UnknownVLAN++
		return 0
	case bridge.Malformed:
		d.Malformed++
		return 0
	case bridge.Reserved:
		d.Reserved++
		return 0
	}
	if h.dst == s.cfg.MAC {
		return s.route(p, h, b, f)
	}
	switch verdict {
	case bridge.Filtered:
		d.Filtered++
	case bridge.Flooded:
		p.flooded++
	}
	if s.domain != nil {
		return to
	}
	return s.members(to, h, f)
}

// decide asks the relay where a frame goes, or the domain.
func (s *Switch) decide(now clock.Time, p *Port, h *header, vlan uint16, f Ref) (to uint64, v bridge.Verdict) {
	if s.domain != nil {
		return s.domain.decide(now, s, p, h, vlan, f)
	}
	return p.relay.Decide(now, h.dst, h.src, vlan)
}

// members returns a port of each bundle of the relay, the one for the flow.
func (s *Switch) members(to uint64, h *header, f Ref) (ports uint64) {
	for ; to != 0; to &= to - 1 {
		b := &s.bundles[s.bridged[bits.TrailingZeros64(to)]]
		if n := b.member(s, h, f); n >= 0 {
			ports |= 1 << n
		}
	}
	return ports
}

// full reports whether a queue, which has no room for n bytes unless something has left meanwhile, has none.
func (s *Switch) full(now clock.Time, q *queue, n int) bool {
	s.settle(now, 0)
	return int(q.bytes)+n > q.most.of(s.buffer.size-s.buffer.used)
}

// enqueue puts a frame of n bytes into the queues of ports; false: it has no room in any.
func (s *Switch) enqueue(now clock.Time, p *Port, h *header, f Ref, n int, priority uint8, to uint64) bool {
	group := p.groupOf(priority)
	lossless := p.pausing>>group&1 != 0
	refs := 0
	for set := to; set != 0; set &= set - 1 {
		o := &s.ports[bits.TrailingZeros64(set)]
		q := &o.classes[priority].queue
		if n > o.cfg.Limit+h.network { // IEEE 802.1Q, 8.6.6: longer than the maximum of the port where it would leave
			o.dropped.TooLong++
			to &^= set & -set
			continue
		}
		if o.down || !lossless && int(q.bytes)+n > q.most.of(s.buffer.size-s.buffer.used) && s.full(now, q, n) {
			o.classes[priority].events.queueDrops++
			to &^= set & -set
			continue
		}
		refs++
	}
	if refs == 0 {
		return false
	}
	if !p.admit(now, group, n) {
		c := &p.classes[priority].events
		if lossless {
			c.headroomDrops++
		} else {
			c.bufferDrops++
		}
		return false
	}
	x := &s.store.frames[f]
	x.size, x.port, x.group = uint32(n), p.number, group
	x.class, x.refs, x.tagged = priority, uint8(refs), h.tagged
	if s.apart && refs == 1 {
		if o := &s.ports[bits.TrailingZeros64(to)]; o.idle(now) && o.straight(now, priority, f, n) {
			return true
		}
	}
	for ; to != 0; to &= to - 1 {
		o := &s.ports[bits.TrailingZeros64(to)]
		o.push(priority, f, n, h.capable() && o.classes[priority].queue.coming(s.cfg.Random))
		o.wake(now)
	}
	return true
}
