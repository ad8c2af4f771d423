package eswitch

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/softvpi/softvpi/wire/eth"
)

// Port is a port of the switch by its number.
type Port uint16

// The ports: the wire, the physical function, then the virtual functions and the virtual ports.
const (
	Wire Port = iota
	PF
	firstVF

	// MostVFs is how many virtual functions a port of an adapter has at most (WinOF-2 24.4, SR-IOV), and MostVPorts how many virtual
	// ports (WinOF 5.50, 4.6.6.2: MaxNumVmqs).
	MostVFs    = 127
	MostVPorts = 127

	firstVPort = firstVF + MostVFs
	mostPorts  = int(firstVPort) + MostVPorts

	mostMACs   = 128 // of a port
	mostGroups = 256 // that a port subscribes to
)

// VF returns the port of a virtual function, 0 to MostVFs-1, and VPort that of a virtual port, 0 to MostVPorts-1.
func VF(n int) Port { return firstVF + Port(n) }

// VPort returns the port of a virtual port.
func VPort(n int) Port { return firstVPort + Port(n) }

// IsVF reports whether the port is a virtual function's.
func (p Port) IsVF() bool { return p >= firstVF && p < firstVPort }

// String names the port as events do.
func (p Port) String() string {
	switch {
	case p == Wire:
		return "wire"
	case p == PF:
		return "PF"
	case p.IsVF():
		return fmt.Sprintf("VF %d", p-firstVF)
	}
	return fmt.Sprintf("vPort %d", p-firstVPort)
}

// Set is a set of ports. The zero value is empty.
type Set [(mostPorts + 63) / 64]uint64

// Add puts a port into the set, Drop takes it out, and Has reports whether it is in it.
func (s *Set) Add(p Port) { s[p>>6] |= 1 << (p & 63) }

// Drop takes a port out.
func (s *Set) Drop(p Port) { s[p>>6] &^= 1 << (p & 63) }

// Has reports whether a port is in the set.
func (s *Set) Has(p Port) bool { return int(p) < mostPorts && s[p>>6]>>(p&63)&1 != 0 }

// Empty reports whether no port is.
func (s *Set) Empty() bool { return *s == Set{} }

// Len returns how many ports are.
func (s *Set) Len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Each calls yield with every port, until that returns false.
func (s *Set) Each(yield func(Port) bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			if !yield(Port(i<<6 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

func (s *Set) put(p Port, in bool) {
	if in {
		s.Add(p)
	} else {
		s.Drop(p)
	}
}

// virtual are the ports of virtual functions.
var virtual = func() (s Set) {
	for n := range MostVFs {
		s.Add(VF(n))
	}
	return s
}()

// Link says whether the link of a function is up.
type Link uint8

// The states. LinkAuto is that of the wire.
const (
	LinkAuto Link = iota
	LinkUp
	LinkDown
)

// Function is what is set for a port that is not the wire. The zero value has no address: it gets what goes to groups alone, and a
// virtual function that has none can send nothing.
type Function struct {
	// MACs are its addresses, 128 at most. Those of a virtual function are what it may send from.
	MACs []eth.MAC
	VLAN VLAN
	// Trusted virtual functions may be promiscuous; others may ask for it, and nothing comes of it.
	Trusted bool
	// Promiscuous functions get what is for other functions, and AllGroups what is for any multicast address.
	Promiscuous, AllGroups bool
	// Unlisted functions get what is for any multicast address, trusted or not: nobody can say which groups they have joined.
	Unlisted bool
	Link     Link
	// Blocked keeps all frames from it and for it: a filter without rules is at the port (WinOF-2 24.4, Using PacketDirect for VM).
	Blocked bool
}

// FieldError says which field of a setting is invalid, and what it may be.
type FieldError struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("embedded switch: %s is %v, want %s", e.Field, e.Value, e.Want)
}

// port is a port that there is.
type port struct {
	Function
	macs     []uint64
	groups   []uint64
	spoofed  [2]offence
	counters Counters
}

// Config is what is set for the switch as a whole.
type Config struct {
	Protection Protection
	// RedirectDHCP is RedirectVfDHCPToPF (WinOF-2 24.4, VF's DHCP Redirections).
	RedirectDHCP bool
	// CountSpoofed counts frames that spoof protection drops as sent, too, as WinOF does (5.50, 4.5.3.5.3: "will still be counted as good
	// packets").
	CountSpoofed bool
}

// Switch is an embedded switch. Its wire is there from the start; functions come and go while others have traffic.
type Switch struct {
	cfg       Config
	ports     [mostPorts]*port
	up        Set // ports whose link is up
	hearing   Set // promiscuous ones
	allGroups Set
	blocked   Set
	stations  map[uint64][]Port
	groups    map[uint64]*Set
	wireUp    bool
	version   uint64 // of all that is set, for Recent
	held      bool   // the last frame was kept from a port that is blocked
}

// New returns a switch whose wire is up, and that has no functions yet.
func New(cfg Config) *Switch {
	s := &Switch{cfg: cfg, stations: map[uint64][]Port{}, groups: map[uint64]*Set{}, wireUp: true}
	s.ports[Wire] = &port{}
	s.up.Add(Wire)
	return s
}

// Configure replaces what is set for the switch as a whole.
func (s *Switch) Configure(cfg Config) {
	s.cfg = cfg
	s.version++
}

// Set makes a function's port, or changes it: its counters and groups stay. The error is a *FieldError; nothing has changed then.
func (s *Switch) Set(p Port, f Function) error {
	if err := s.check(p, &f); err != nil {
		return err
	}
	s.version++
	o := s.ports[p]
	if o == nil {
		o = &port{}
		s.ports[p] = o
	}
	s.forget(p, o)
	o.Function = f
	o.macs = o.macs[:0]
	for _, m := range f.MACs {
		k := number(m[:])
		o.macs = append(o.macs, k)
		s.stations[k] = append(s.stations[k], p)
	}
	trusted := f.Trusted || !p.IsVF()
	s.hearing.put(p, trusted && f.Promiscuous)
	s.allGroups.put(p, f.Unlisted || trusted && f.AllGroups)
	s.blocked.put(p, f.Blocked)
	s.link(p)
	return nil
}

// check checks what is to be set for a port.
func (s *Switch) check(p Port, f *Function) error {
	if p == Wire || int(p) >= mostPorts {
		return &FieldError{"port", int(p), fmt.Sprintf("that of a function, 1 to %d", mostPorts-1)}
	}
	if len(f.MACs) > mostMACs {
		return &FieldError{"number of addresses", len(f.MACs), fmt.Sprintf("at most %d", mostMACs)}
	}
	if f.Link > LinkDown {
		return &FieldError{"link", f.Link, "automatic, up or down"}
	}
	if err := f.VLAN.check(); err != nil {
		return err
	}
	for i, m := range f.MACs {
		if m[0]&1 != 0 || m == (eth.MAC{}) {
			return &FieldError{"address", m, "one of a single station that is not 0"}
		}
		for _, o := range f.MACs[:i] {
			if o == m {
				return &FieldError{"address", m, "one that is there once"}
			}
		}
		for _, q := range s.stations[number(m[:])] {
			if q != p && s.ports[q].VLAN.meets(&f.VLAN) {
				return &FieldError{"address", m, "one that no other port has in its VLANs: " + q.String() + " has it"}
			}
		}
	}
	return nil
}

// Remove takes a function's port away, with its counters and groups.
func (s *Switch) Remove(p Port) {
	if p == Wire || int(p) >= mostPorts || s.ports[p] == nil {
		return
	}
	s.version++
	s.leave(p, s.ports[p])
	s.forget(p, s.ports[p])
	s.up.Drop(p)
	s.hearing.Drop(p)
	s.allGroups.Drop(p)
	s.blocked.Drop(p)
	s.ports[p] = nil
}

// forget takes a port's addresses out of the table.
func (s *Switch) forget(p Port, o *port) {
	for _, k := range o.macs {
		list := s.stations[k]
		for i, q := range list {
			if q == p {
				list = append(list[:i], list[i+1:]...)
				break
			}
		}
		if s.stations[k] = list; len(list) == 0 {
			delete(s.stations, k)
		}
	}
}

// Subscribe replaces the multicast addresses of which a port gets the frames, 256 at most. The error is a *FieldError; nothing has
// changed then.
func (s *Switch) Subscribe(p Port, list []eth.MAC) error {
	if p == Wire || int(p) >= mostPorts || s.ports[p] == nil {
		return &FieldError{"port", int(p), "that of a function that there is"}
	}
	if len(list) > mostGroups {
		return &FieldError{"number of groups", len(list), fmt.Sprintf("at most %d", mostGroups)}
	}
	for _, m := range list {
		if m[0]&1 == 0 {
			return &FieldError{"group", m, "a multicast address"}
		}
	}
	o := s.ports[p]
	s.version++
	s.leave(p, o)
	for _, m := range list {
		k := number(m[:])
		g := s.groups[k]
		if g == nil {
			g = new(Set)
			s.groups[k] = g
		}
		if !g.Has(p) {
			g.Add(p)
			o.groups = append(o.groups, k)
		}
	}
	return nil
}

// leave takes a port out of its groups.
func (s *Switch) leave(p Port, o *port) {
	for _, k := range o.groups {
		g := s.groups[k]
		if g.Drop(p); g.Empty() {
			delete(s.groups, k)
		}
	}
	o.groups = o.groups[:0]
}

// SetWire says whether the wire's link is up, which functions with LinkAuto follow.
func (s *Switch) SetWire(up bool) {
	s.version++
	s.wireUp = up
	s.up.put(Wire, up)
	for p := PF; int(p) < mostPorts; p++ {
		if s.ports[p] != nil {
			s.link(p)
		}
	}
}

func (s *Switch) link(p Port) {
	l := s.ports[p].Link
	s.up.put(p, l == LinkUp || l == LinkAuto && s.wireUp)
}

// Up reports whether the link of a port is up.
func (s *Switch) Up(p Port) bool { return s.up.Has(p) }

// number returns an address, the first six bytes of b, as a number.
func number(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}
