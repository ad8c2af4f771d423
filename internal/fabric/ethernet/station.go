package ethernet

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// wire is the port of a station at its first link. Those at others follow, and then the one at the host.
const wire = 0

// StationConfig describes a station. The zero value is the default.
type StationConfig struct {
	// Wire is the port at the link: its rate, its pauses, the priorities of what is sent. VLANs do not matter.
	Wire PortConfig
	// Links is how many such ports there are, which all lead to one switch (link aggregation): each flow leaves by one. 0: one.
	Links int
	// Seed is that of the choice between them.
	Seed uint64
	// Take is how fast the host takes what arrives, in bits per second, 1 Mb/s to 1 Tb/s; 0: at once.
	Take uint64
	// Waiting is how many bytes the host may hand over at each priority before it must wait; 0: two of the longest frames.
	Waiting int
	// Buffer is how many bytes of frames may wait in both directions; 0: DefaultBuffer.
	Buffer int
	// PassPauses hands the pauses that arrive to the host too, and sends its own before all else: it obeys and sends pauses itself.
	PassPauses bool
}

// Station is a host's end of a link: it sends what it is handed, obeys and sends pauses as a switch's port does, and hands on what
// arrives. It is a switch of two ports or more, the last of which is at the host.
type Station struct {
	*Switch
	host    int    // the port at the host
	refused uint8  // priorities at which Send had no room
	atOnce  bool   // the host takes what arrives at once
	taking  uint64 // how fast it does otherwise
	passes  bool   // pauses go to the host and come from it
}

// NewStation returns a station whose frames are in a store. The error is a *FieldError.
func NewStation(store *Store, cfg StationConfig) (*Station, error) {
	w := cfg.Wire
	if err := w.settle(); err != nil {
		return nil, err
	}
	if cfg.Waiting == 0 {
		cfg.Waiting = 2 * w.longest()
	}
	h := PortConfig{Rate: cfg.Take, MTU: w.MTU, FlowControl: PriorityPause, Lossless: 0xff, Trust: w.Trust, PCP: w.PCP, DSCP: w.DSCP,
		Default: w.Default}
	for i := range h.Groups {
		h.Groups[i] = Group{Xoff: cfg.Waiting, Xon: w.longest(), Headroom: -1}
	}
	ports := make([]PortConfig, 0, 2)
	for range max(cfg.Links, 1) {
		ports = append(ports, cfg.Wire)
	}
	s, err := build(store, Config{Buffer: cfg.Buffer, Seed: cfg.Seed}, append(ports, h))
	if err != nil {
		return nil, err
	}
	host := len(ports)
	s.crossed, s.ports[host].silent = true, true
	if cfg.Take == 0 {
		s.ports[host].perByte = 0
	}
	return &Station{Switch: s, host: host, atOnce: cfg.Take == 0, taking: cfg.Take, passes: cfg.PassPauses}, nil
}

// Wire returns the port at the link, or the first of them.
func (s *Station) Wire() *Port { return s.Port(wire) }

// Send hands over a frame to be sent, which is the station's then; false: it has no room at its priority, and it is the caller's.
// Where nothing waits it leaves at once; else what follows from it happens at the next Advance.
func (s *Station) Send(now clock.Time, f Ref) bool {
	p := s.Port(s.host)
	var h header
	if !h.parse(s.store.Head(f)) {
		p.dropped.Malformed++
		s.store.Drop(f)
		return true
	}
	if h.pause() && s.passes {
		if s.Wire().speakFor(now, s.store.Head(f)) {
			s.store.Drop(f)
		} else {
			s.Wire().express(now, f)
		}
		return true
	}
	priority := p.priority(&h)
	return !s.refuses(priority) && s.take(now, &h, priority, f)
}

// sendAtOnce is sendAt at a station with one link, for whoever takes the frame along if it leaves at once: then it returns when that
// arrives at the other end. false: nothing has happened.
func (s *Station) sendAtOnce(now clock.Time, priority uint8, f Ref) (arrives clock.Time, ok bool) {
	if s.ports[s.host].xoff>>priority&1 != 0 {
		return 0, false
	}
	return s.occupy(now, wire, priority, f)
}

// sendAt is Send for a frame that is an IP packet without a tag, and whose priority is known. The packet itself is looked at only where
// that decides something: by which link it leaves, or whether it may be marked.
func (s *Station) sendAt(now clock.Time, priority uint8, f Ref) bool {
	if s.refuses(priority) {
		return false
	}
	h := header{network: eth.EthernetLen}
	if s.host > 1 || s.ports[wire].classes[priority].queue.marks() {
		h = header{}
		h.parse(s.store.Head(f))
	}
	return s.take(now, &h, priority, f)
}

// refuses reports whether there is no room at a priority, and remembers who is to be told when there is.
func (s *Station) refuses(priority uint8) bool {
	if s.ports[s.host].xoff>>priority&1 == 0 {
		return false
	}
	s.refused |= 1 << priority
	return true
}

// take takes a frame of the host, for which it has room.
func (s *Station) take(now clock.Time, h *header, priority uint8, f Ref) bool {
	p := &s.ports[s.host]
	n := s.link(h, f)
	if w := &s.ports[n]; w.mute { // no link may send
		w.classes[priority].events.queueDrops++
		s.store.Drop(f)
		return true
	}
	if s.leaves(now, n, priority, f) {
		return true
	}
	s.settle(now, MostPorts)
	if !s.enqueue(now, p, h, f, s.store.Len(f), priority, 1<<n) {
		s.store.Drop(f)
	}
	return true
}

// link returns by which port a frame leaves: the first, where none is up.
func (s *Station) link(h *header, f Ref) int {
	if s.host == 1 {
		return wire
	}
	return max(s.spread(1<<s.host-1, h, s.store.Head(f)), wire)
}

// leaves puts a frame on the line at once, if that is free and nothing waits for it; it needs no room then.
func (s *Station) leaves(now clock.Time, link int, priority uint8, f Ref) bool {
	at, ok := s.occupy(now, link, priority, f)
	if ok {
		s.out = append(s.out, Departure{Frame: f, Port: link, At: at})
	}
	return ok
}

// occupy is leaves for whoever takes the frame along. It returns when that arrives at the other end.
func (s *Station) occupy(now clock.Time, link int, priority uint8, f Ref) (arrives clock.Time, ok bool) {
	w := &s.ports[link]
	if !w.idle(now) || w.down || w.mute || len(w.urgent) > 0 || w.flow.Ready(now) {
		return 0, false
	}
	w.sent(now)
	w.seen |= 1 << priority
	n := s.store.Len(f)
	w.classes[priority].queue.left.add(n)
	return w.occupy(now, n), true
}

// pass counts a frame that has arrived and that the host takes at once; false: it has to go through the station's queues.
func (s *Station) pass(now clock.Time, link uint8, f Ref) bool {
	p, o := &s.ports[link], &s.ports[s.host]
	if !s.atOnce || p.down || p.deaf || o.backlog != 0 || o.hung {
		return false
	}
	var h header
	n := s.store.Len(f)
	if !h.parse(s.store.Head(f)) || h.version == 0 && (h.pause() || s.Slow != nil && h.slow()) || n > p.cfg.MTU+h.network {
		return false
	}
	priority := p.priority(&h)
	p.seen |= 1 << priority
	o.seen |= 1 << priority
	p.classes[priority].group.arrived.add(n)
	o.classes[priority].queue.left.add(n)
	return true
}

// Room returns the priorities at which there is room again after Send had none, each once.
func (s *Station) Room() uint8 {
	room := s.refused &^ s.Port(s.host).xoff
	s.refused &^= room
	return room
}
