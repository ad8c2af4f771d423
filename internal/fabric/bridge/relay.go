package bridge

import (
	"fmt"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// Relay decides where frames go: the VLANs of ports, and the filtering database (IEEE 802.1Q, 8.6 to 8.8). It holds no frames.
type Relay struct {
	cfg     Config
	table   table
	ports   [MostPorts]*RelayPort
	members [LastVLAN + 1]uint64 // the ports of each VLAN
}

// RelayPort is a port of a relay.
type RelayPort struct {
	relay  *Relay
	number uint8
	pvid   uint16
	tagged VLANs
	known  int // entries of the table
	missed uint64
}

// Verdict is what becomes of a frame.
type Verdict uint8

// The verdicts. All but the first two are why a frame goes nowhere.
const (
	Forwarded   Verdict = iota // it goes where its destination was heard
	Flooded                    // it goes to all other ports of its VLAN
	UnknownVLAN                // the port is not in its VLAN
	Malformed                  // it comes from a group, or from nobody
	Reserved                   // its destination is none that a bridge forwards to (IEEE 802.1Q, 8.6.3)
	Filtered                   // its destination is at the port
)

// NewRelay returns a relay without ports. The error is a *FieldError.
func NewRelay(cfg Config) (*Relay, error) {
	if cfg.Ageing == 0 {
		cfg.Ageing = DefaultAgeing
	}
	if cfg.Entries == 0 {
		cfg.Entries = DefaultEntries
	}
	if cfg.Ageing < time.Second {
		return nil, &FieldError{"Ageing", cfg.Ageing, "0 or 1 s or more"}
	}
	if cfg.Entries < 1 || cfg.Entries > mostEntries {
		return nil, &FieldError{"Entries", cfg.Entries, fmt.Sprintf("0 to %d", mostEntries)}
	}
	r := &Relay{cfg: cfg, table: table{ageing: cfg.Ageing, oldest: clock.Never}}
	r.table.resize(1)
	return r, nil
}

// Add adds a port whose frames without a tag belong to the VLAN pvid (0: to none), and those of others come and go with one.
// The error is a *FieldError.
func (r *Relay) Add(pvid uint16, tagged VLANs) (*RelayPort, error) {
	number := slices.Index(r.ports[:], nil)
	switch {
	case number < 0:
		return nil, &FieldError{"ports", MostPorts + 1, fmt.Sprintf("at most %d", MostPorts)}
	case pvid > LastVLAN:
		return nil, &FieldError{"PVID", pvid, fmt.Sprintf("0 to %d", LastVLAN)}
	case pvid == 0 && tagged == VLANs{}:
		return nil, &FieldError{"PVID", pvid, "a VLAN, or some in Tagged"}
	}
	p := &RelayPort{relay: r, number: uint8(number), pvid: pvid, tagged: tagged}
	r.ports[number] = p
	r.rebuild()
	return p, nil
}

// Remove removes the port and what is known of it.
func (p *RelayPort) Remove() {
	p.Forget()
	p.relay.ports[p.number] = nil
	p.relay.rebuild()
}

// Forget forgets the sources that were heard at the port.
func (p *RelayPort) Forget() {
	p.relay.table.sweep(func(e *entry) bool { return e.port == p.number }, func(*entry) {})
	p.known = 0
}

// rebuild adapts the relay to its ports.
func (r *Relay) rebuild() {
	n := 0
	for id := range r.members {
		r.members[id] = 0
	}
	for _, p := range r.ports {
		if p == nil {
			continue
		}
		n++
		for id := range r.members {
			if p.member(uint16(id)) {
				r.members[id] |= 1 << p.number
			}
		}
	}
	r.table.resize(max(n, 1) * r.cfg.Entries)
}

// member reports whether the port is in a VLAN.
func (p *RelayPort) member(vlan uint16) bool {
	return vlan != 0 && (vlan == p.pvid || p.tagged.Has(vlan))
}

// Member reports whether the port is in a VLAN.
func (p *RelayPort) Member(vlan uint16) bool { return p.member(vlan) }

// Number returns the port's number, from 0.
func (p *RelayPort) Number() int { return int(p.number) }

// NotLearned returns how many frames came from new sources of which there were too many.
func (p *RelayPort) NotLearned() uint64 { return p.missed }

// VLAN returns to which VLAN a frame belongs that the port receives with a tag of the VLAN ID id; 0: without a tag, or with one
// of a priority alone.
func (p *RelayPort) VLAN(id uint16) uint16 {
	if id == 0 {
		return p.pvid
	}
	return id
}

// Tags reports whether frames of a VLAN leave the port with a tag.
func (p *RelayPort) Tags(vlan uint16) bool { return vlan != p.pvid }

// Decide learns the source of a frame of a VLAN that the port has received, and returns where it goes: bit n for port n.
func (p *RelayPort) Decide(now clock.Time, dst, src eth.MAC, vlan uint16) (to uint64, v Verdict) {
	return p.decide(now, dst, src, vlan, true)
}

// Pass is Decide for a frame whose frame check sequence is wrong, which a bridge that does not wait for the whole frame has begun to
// send when it sees that: it learns nothing from it (IEEE 802.1Q, 8.7).
func (p *RelayPort) Pass(now clock.Time, dst, src eth.MAC, vlan uint16) (to uint64, v Verdict) {
	return p.decide(now, dst, src, vlan, false)
}

func (p *RelayPort) decide(now clock.Time, dst, src eth.MAC, vlan uint16, learn bool) (to uint64, v Verdict) {
	switch {
	case src[0]&1 != 0 || src == (eth.MAC{}):
		return 0, Malformed
	case !p.member(vlan):
		return 0, UnknownVLAN
	}
	if learn {
		p.learn(now, keyOf(src, vlan))
	}
	if reserved(dst) {
		return 0, Reserved
	}
	to = p.relay.members[vlan] &^ (1 << p.number)
	e := p.relay.destination(now, dst, vlan)
	if e == nil {
		return to, Flooded
	}
	if to &= 1 << e.port; to == 0 {
		return 0, Filtered
	}
	return to, Forwarded
}

// reserved reports whether a MAC is one of those that no bridge forwards, 01:80:c2:00:00:00 to 0f.
func reserved(m eth.MAC) bool {
	return [5]byte(m[:5]) == [5]byte{0x01, 0x80, 0xc2, 0, 0} && m[5] < 0x10
}

// ReservedMAC reports whether a MAC is one of those that no bridge forwards to (IEEE 802.1Q, 8.6.3).
func ReservedMAC(m eth.MAC) bool { return reserved(m) }

// destination returns where a MAC was heard; nil: everywhere.
func (r *Relay) destination(now clock.Time, mac eth.MAC, vlan uint16) *entry {
	if mac[0]&1 != 0 {
		return nil
	}
	return r.table.find(now, keyOf(mac, vlan))
}

// learn notes that a source was heard at the port.
func (p *RelayPort) learn(now clock.Time, k key) {
	r := p.relay
	e := r.table.place(k)
	if e.key == k && e.port == p.number {
		e.seen = now
		return
	}
	if p.known >= r.cfg.Entries && now.Sub(r.table.oldest) >= r.cfg.Ageing {
		r.table.sweep(func(e *entry) bool { return r.table.expired(now, e) }, func(e *entry) { r.ports[e.port].known-- })
		e = r.table.place(k)
	}
	full := p.known >= r.cfg.Entries
	if full {
		p.missed++
	}
	switch {
	case e.key == k: // it has moved
		r.ports[e.port].known--
		if full { // better known nowhere than at the wrong port
			r.forget(k)
			return
		}
	case full:
		return
	}
	*e = entry{key: k, seen: now, port: p.number}
	r.table.oldest = clock.Min(r.table.oldest, now)
	p.known++
}

func (r *Relay) forget(k key) {
	for i := r.table.home(k); ; i = (i + 1) & (len(r.table.slots) - 1) {
		if r.table.slots[i].key == k {
			r.table.remove(i)
			return
		}
	}
}

// Entry is a source that is known.
type Entry struct {
	VLAN uint16
	MAC  eth.MAC
	Port int
	Age  time.Duration // since it was heard last
}

// Table returns the sources that are known, by VLAN and MAC.
func (r *Relay) Table(now clock.Time) (all []Entry) {
	for i := range r.table.slots {
		if e := &r.table.slots[i]; e.key != 0 && !r.table.expired(now, e) {
			all = append(all, Entry{e.key.vlan(), e.key.mac(), int(e.port), now.Sub(e.seen)})
		}
	}
	slices.SortFunc(all, func(x, y Entry) int {
		a, b := keyOf(x.MAC, x.VLAN), keyOf(y.MAC, y.VLAN)
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	return all
}
