// Package station is what links of whole Ethernet frames share: the stations that they serve, which frames are for them,
// and how routes from them find their neighbours.
//
// Where the system's stack has an address of a station (System), it answers for it, and its routes and neighbours are
// asked; for the others a neighbour.Engine does both. A packet to a neighbour that is not known yet waits a moment for the
// answer, as in a system's stack (RFC 4861 7.2.2). A membership.Reporter tells switches which groups are wanted.
package station

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/membership"
	"github.com/softvpi/softvpi/internal/neighbour"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	mostStations  = 256
	mostAddresses = neighbour.MostAddresses / mostStations // of each
	mostGroups    = 64
	mostErrors    = 64
	// sweep is how often it is noted which neighbours are in use.
	sweep = time.Second
)

// Wire is how a link sends frames that are not its owner's: whole Ethernet frames, one after the other. Any goroutine may
// call it, though only one at a time. What cannot be sent at once is lost.
type Wire func(b []byte)

// System is the system's stack beside a link. The Set calls its methods one at a time, from any goroutine.
type System interface {
	// Owns reports whether the system answers for an address of a station.
	Owns(key neighbour.Key) bool
	// Route returns the neighbour through which the system reaches dst from an address that it owns. The error is the
	// system's if there is none by the station's VLAN.
	Route(src neighbour.Key, dst netip.Addr) (next netip.Addr, err error)
	// Find returns a neighbour's MAC. If it is not known, or was not heard of for long, the system is asked to look for it, for
	// packets from src, which it owns; able is false if it will not.
	Find(key neighbour.Key, src netip.Addr) (mac eth.MAC, known, able bool)
}

// Config describes the link to which a Set belongs.
type Config struct {
	Name string // of the kind of link, for errors: "tap link"
	Wire Wire
	// System is nil if the link is to no stack of this system.
	System System
	// MTU is the largest IP packet in bytes.
	MTU int
	// Promiscuous links hand up every frame.
	Promiscuous bool
	// Arm is called when Tend is due after another time than said last; negative: it is not due at all. Any goroutine may
	// call it, though only one at a time.
	Arm func(after time.Duration)
	// Now returns the time; nil: the system's monotonic clock.
	Now func() clock.Time
}

// Set are the stations of one link. Its methods belong to the owner of the link, except Resolve.
type Set struct {
	cfg   Config
	began time.Time
	stats link.Stats

	mu       sync.Mutex // guards what follows, for Resolve; the owner takes it to change it and to use the engine
	engine   *neighbour.Engine
	reporter *membership.Reporter
	reported map[membership.Port]bool // ports on which groups are wanted
	stations []*station
	own      map[eth.MAC]link.OwnFrames // by station, also of those that are gone
	news     chan struct{}              // closed when a neighbour becomes known; nil: nobody waits
	armed    atomic.Int64               // a clock.Time; changed under mu
	overdue  clock.Time                 // when what waits for a neighbour of the system is lost

	watch watch

	closed     atomic.Bool
	conflicted atomic.Bool          // there are some in seen
	seen       []neighbour.Conflict // guarded by mu

	// What follows is the owner's alone.
	ids    []id // of the stations
	last   id   // of the last frame that was for a station
	groups []group
	ears   []ear     // of those who listen
	heard  []eth.MAC // groups
	hops   map[hopKey]*hop
	held   int                    // frames that wait for their neighbours
	lost   map[neighbour.Key]bool // addresses of stations that others have; changed under mu
	swept  clock.Time
	loop   loop
	asking []byte // a question of a host at the port
	reply  []byte // the answer
	errs   [mostErrors]link.Unreachable
	nerrs  int
}

// id is a station's MAC and VLAN in one word: what frames for it begin with.
type id uint64

func idOf(mac eth.MAC, vlan uint16) id {
	v := uint64(vlan)
	for _, b := range mac {
		v = v<<8 | uint64(b)
	}
	return id(v)
}

// station is one that is served.
type station struct {
	link.Station
	id    id
	addrs []address
	gone  bool // it was removed; routes from it may be left
}

// address is one of a station.
type address struct {
	netip.Prefix
	system bool // the system answers for it
}

// New returns a set without stations.
func New(cfg Config) *Set {
	s := &Set{cfg: cfg, began: time.Now(), engine: neighbour.New(neighbour.Config{Random: rand.Int64N}), hops: map[hopKey]*hop{},
		lost:     map[neighbour.Key]bool{},
		reporter: membership.New(rand.Int64N), reported: map[membership.Port]bool{}, own: map[eth.MAC]link.OwnFrames{},
		overdue: clock.Never}
	s.armed.Store(int64(clock.Never))
	if s.cfg.Arm == nil {
		s.cfg.Arm = func(time.Duration) {}
	}
	return s
}

// FieldError says which field of a station or of a link's configuration is invalid, and what it may be.
type FieldError struct {
	Link  string // its kind
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %s %v: want %s", e.Link, e.Field, e.Value, e.Want)
}

func (s *Set) bad(field string, value any, want string) error {
	return &FieldError{s.cfg.Name, field, value, want}
}

func (s *Set) now() clock.Time {
	if s.cfg.Now != nil {
		return s.cfg.Now()
	}
	return clock.Time(time.Since(s.began))
}

// check returns what is wrong with a station. The caller holds mu.
func (s *Set) check(n *link.Station, old *station) error {
	mac := eth.MAC(n.MAC)
	switch {
	case mac == eth.MAC{} || mac[0]&1 != 0:
		return s.bad("MAC", mac, "a unicast address")
	case n.VLAN > 4094:
		return s.bad("VLAN", n.VLAN, "0 (untagged) or 1 to 4094")
	case old == nil && len(s.stations) == mostStations:
		return s.bad("stations", len(s.stations)+1, fmt.Sprintf("at most %d", mostStations))
	}
	if len(n.Prefixes) > mostAddresses {
		return s.bad("Prefixes", len(n.Prefixes), fmt.Sprintf("at most %d", mostAddresses))
	}
	for _, p := range n.Prefixes {
		a := p.Addr()
		if !p.IsValid() || a != a.Unmap().WithZone("") || a.IsUnspecified() || a.IsMulticast() {
			return s.bad("Prefixes", p, "unicast addresses without zones, each with a prefix length")
		}
		for _, o := range s.stations {
			if o != old && o.VLAN == n.VLAN && o.find(a) != nil {
				return s.bad("Prefixes", p, "addresses that no other station of the VLAN has")
			}
		}
	}
	for _, g := range n.Gateways {
		if !g.IsValid() || g != g.Unmap().WithZone("") || g.IsUnspecified() || g.IsMulticast() {
			return s.bad("Gateways", g, "unicast addresses without zones")
		}
	}
	return nil
}

// SetStation implements link.Stations.
func (s *Set) SetStation(n link.Station) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n.Prefixes, n.Gateways = slices.Clone(n.Prefixes), slices.Clone(n.Gateways)
	i := s.index(idOf(n.MAC, n.VLAN))
	var old *station
	if i >= 0 {
		old = s.stations[i]
	}
	if err := s.check(&n, old); err != nil {
		return err
	}
	t := old
	if old != nil {
		for _, a := range old.addrs {
			if !slices.ContainsFunc(n.Prefixes, func(p netip.Prefix) bool { return p.Addr() == a.Addr() }) {
				s.silence(neighbour.Key{VLAN: n.VLAN, Addr: a.Addr()})
			}
		}
		old.Station, old.addrs = n, nil
	} else {
		t = &station{Station: n, id: idOf(n.MAC, n.VLAN)}
		s.stations, s.ids = append(s.stations, t), append(s.ids, t.id)
	}
	for _, p := range n.Prefixes {
		key := neighbour.Key{VLAN: n.VLAN, Addr: p.Addr()}
		a := address{Prefix: p, system: s.cfg.System != nil && s.cfg.System.Owns(key)}
		t.addrs = append(t.addrs, a)
		if a.system {
			s.silence(key)
			continue
		}
		if err := s.answer(key, t); err != nil {
			return s.bad("Prefixes", p, err.Error())
		}
	}
	s.subscribe()
	s.settle()
	return nil
}

// silence undoes answer. The caller holds mu.
func (s *Set) silence(key neighbour.Key) {
	s.engine.Silence(key)
	delete(s.lost, key)
}

// answer makes the engine answer for an address of a station. The caller holds mu.
func (s *Set) answer(key neighbour.Key, t *station) error {
	if t.Probe {
		return s.engine.Probe(s.now(), key, t.MAC)
	}
	return s.engine.Answer(key, t.MAC)
}

// RemoveStation implements link.Stations.
func (s *Set) RemoveStation(mac [6]byte, vlan uint16) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(idOf(mac, vlan))
	if i < 0 {
		return s.bad("MAC", fmt.Sprintf("%v in VLAN %d", eth.MAC(mac), vlan), "a station of the link")
	}
	for _, a := range s.stations[i].addrs {
		s.silence(neighbour.Key{VLAN: vlan, Addr: a.Addr()})
	}
	s.engine.Part(vlan, mac)
	s.stations[i].gone = true
	s.stations, s.ids = slices.Delete(s.stations, i, i+1), slices.Delete(s.ids, i, i+1)
	s.last = 0
	s.subscribe()
	s.settle()
	return nil
}

// Refresh asks anew which addresses the system answers for, after these have changed.
func (s *Set) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.stations {
		for i := range t.addrs {
			key := neighbour.Key{VLAN: t.VLAN, Addr: t.addrs[i].Addr()}
			switch owns := s.cfg.System.Owns(key); {
			case owns == t.addrs[i].system:
			case owns:
				s.silence(key)
			default:
				_ = s.answer(key, t) // it was accepted before
			}
			t.addrs[i].system = s.cfg.System.Owns(key)
		}
	}
	s.subscribe()
	s.settle()
}

// SystemAddresses returns the stations' addresses for which the system answers.
func (s *Set) SystemAddresses() (keys []neighbour.Key) {
	for _, t := range s.stations {
		for _, a := range t.addrs {
			if a.system {
				keys = append(keys, neighbour.Key{VLAN: t.VLAN, Addr: a.Addr()})
			}
		}
	}
	return keys
}

// Apart calls do while nobody calls the System.
func (s *Set) Apart(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *Set) index(of id) int { return slices.Index(s.ids, of) }

// find returns a station's address, nil if it is not one of its.
func (t *station) find(a netip.Addr) *address {
	for i := range t.addrs {
		if t.addrs[i].Addr() == a {
			return &t.addrs[i]
		}
	}
	return nil
}

// owner returns the station that has an address, in a VLAN if vlan is not 0, and the address. The caller holds mu or is
// the owner of the link.
func (s *Set) owner(a netip.Addr, vlan uint16) (*station, *address) {
	for _, t := range s.stations {
		if vlan == 0 || t.VLAN == vlan {
			if found := t.find(a); found != nil {
				return t, found
			}
		}
	}
	return nil, nil
}

// source returns the first station with an address of the family of dst, preferably one that has dst on its link.
func (s *Set) source(dst netip.Addr) (*station, *address) {
	var t *station
	var first *address
	for _, o := range s.stations {
		for i := range o.addrs {
			a := &o.addrs[i]
			if a.Addr().Is4() != dst.Is4() {
				continue
			}
			if a.Contains(dst) {
				return o, a
			}
			if first == nil {
				t, first = o, a
			}
		}
	}
	return t, first
}

// SetMTU says that the link carries packets of another length than before.
func (s *Set) SetMTU(mtu int) { s.cfg.MTU = mtu }

// Counters returns those of neighbours.
func (s *Set) Counters() neighbour.Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.Counters()
}

// End says that the link is closed; it returns false if it was before. From then on nothing is sent for the Set, and nobody
// waits for a neighbour any more.
func (s *Set) End() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
	return s.closed.CompareAndSwap(false, true)
}

// Ended reports whether the link is closed.
func (s *Set) Ended() bool { return s.closed.Load() }
