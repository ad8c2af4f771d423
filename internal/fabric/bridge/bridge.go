package bridge

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// MostPorts is the number of ports that a switch can have.
	MostPorts = 64
	// DefaultAgeing is how long a source is known that is not heard of (IEEE 802.1Q, table 8-6).
	DefaultAgeing = 300 * time.Second
	// DefaultEntries is how many sources are known at one port.
	DefaultEntries = 512
	mostEntries    = 1 << 16
	// DefaultQueue is how many bytes wait at a port, twice what an Ethernet function has of large buffers, and QueueFrames how
	// many frames.
	DefaultQueue = 8 << 20
	QueueFrames  = 1024
	mostQueue    = 64 << 20
	leastMTU     = 576
	mostMTU      = 65535
)

// Config describes a switch. The zero value is the default.
type Config struct {
	// Ageing is after which time without a frame a source is forgotten, 1 s or more; 0: DefaultAgeing.
	Ageing time.Duration
	// Entries bounds the sources that are known at each port, 1 to 65536; 0: DefaultEntries. So a port that makes up sources
	// takes nobody's place but its own.
	Entries int
}

// PortConfig describes a port.
type PortConfig struct {
	// PVID is the VLAN of frames without a tag, 1 to LastVLAN, which leave without one too; 0: they are dropped.
	PVID uint16
	// Tagged are the VLANs whose frames come and go with a tag. That of PVID leaves without one nevertheless.
	Tagged VLANs
	// MTU is the largest IP packet in bytes that the port sends, 576 to 65535.
	MTU int
	// Queue is how many bytes of frames wait to be taken, MTU + 18 to 64 MB; 0: DefaultQueue.
	Queue int
}

// FieldError says which field of a configuration is invalid, and what it may be.
type FieldError struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("switch: %s %v: want %s", e.Field, e.Value, e.Want)
}

// Counters are those of a port. Frames larger than the wire's count once.
type Counters struct {
	InFrames, InBytes   uint64 // received
	OutFrames, OutBytes uint64 // put into the queue
	Flooded             uint64 // received, and sent to every port of the VLAN
	UnknownVLAN         uint64 // received, and dropped: the port is not in their VLAN
	Malformed           uint64 // received, and dropped: too short, or from a group
	Reserved            uint64 // received, and dropped: to an address that no bridge forwards (IEEE 802.1Q, 8.6.3)
	Filtered            uint64 // received, and dropped: their destination is at the port
	NotLearned          uint64 // received from new sources, of which there were too many
	QueueDrops          uint64 // not sent: the queue was full
	TooLong             uint64 // not sent: longer than the MTU
}

// Bridge is a switch.
type Bridge struct {
	cfg     Config
	table   table
	ports   [MostPorts]*Port
	members [LastVLAN + 1]uint64 // the ports of each VLAN
}

// Port is one of a switch.
type Port struct {
	bridge   *Bridge
	number   uint8
	cfg      PortConfig
	queue    queue
	known    int // entries of the table
	counters Counters
}

// New returns a switch without ports. The error is a *FieldError.
func New(cfg Config) (*Bridge, error) {
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
	b := &Bridge{cfg: cfg, table: table{ageing: cfg.Ageing, oldest: clock.Never}}
	b.table.resize(1)
	return b, nil
}

// Add adds a port. The error is a *FieldError.
func (b *Bridge) Add(cfg PortConfig) (*Port, error) {
	if cfg.Queue == 0 {
		cfg.Queue = DefaultQueue
	}
	number := slices.Index(b.ports[:], nil)
	switch {
	case number < 0:
		return nil, &FieldError{"ports", MostPorts + 1, fmt.Sprintf("at most %d", MostPorts)}
	case cfg.PVID > LastVLAN:
		return nil, &FieldError{"PVID", cfg.PVID, fmt.Sprintf("0 to %d", LastVLAN)}
	case cfg.PVID == 0 && cfg.Tagged == VLANs{}:
		return nil, &FieldError{"PVID", cfg.PVID, "a VLAN, or some in Tagged"}
	case cfg.MTU < leastMTU || cfg.MTU > mostMTU:
		return nil, &FieldError{"MTU", cfg.MTU, fmt.Sprintf("%d to %d", leastMTU, mostMTU)}
	case cfg.Queue < cfg.MTU+eth.EthernetLen+eth.VLANLen || cfg.Queue > mostQueue:
		return nil, &FieldError{"Queue", cfg.Queue, fmt.Sprintf("the longest frame to %d bytes", mostQueue)}
	}
	p := &Port{bridge: b, number: uint8(number), cfg: cfg, queue: newQueue(cfg.Queue, QueueFrames)}
	b.ports[number] = p
	b.rebuild()
	return p, nil
}

// Remove removes the port, what waits there, and what is known of it. The port must not be used any more.
func (p *Port) Remove() {
	b := p.bridge
	b.table.sweep(func(e *entry) bool { return e.port == p.number }, func(*entry) {})
	b.ports[p.number] = nil
	b.rebuild()
}

// rebuild adapts the switch to its ports.
func (b *Bridge) rebuild() {
	n := 0
	for id := range b.members {
		b.members[id] = 0
	}
	for _, p := range b.ports {
		if p == nil {
			continue
		}
		n++
		for id := range b.members {
			if p.member(uint16(id)) {
				b.members[id] |= 1 << p.number
			}
		}
	}
	b.table.resize(max(n, 1) * b.cfg.Entries)
}

// member reports whether the port is in a VLAN.
func (p *Port) member(vlan uint16) bool {
	return vlan != 0 && (vlan == p.cfg.PVID || p.cfg.Tagged.Has(vlan))
}

// Number returns the port's number, from 0.
func (p *Port) Number() int { return int(p.number) }

// Counters returns the port's.
func (p *Port) Counters() Counters { return p.counters }

// Waiting returns how many frames wait to be taken.
func (p *Port) Waiting() int { return p.queue.len }

// Take hands out frames that the port sends, and returns their number. They are valid until the next call.
func (p *Port) Take(out []Frame) int { return p.queue.take(out) }

// Receive forwards a frame that the port has received. It returns the ports, as a bit for each number, at which nothing waited
// before and something does now.
func (p *Port) Receive(now clock.Time, f *Frame) (woken uint64) {
	p.counters.InFrames++
	p.counters.InBytes += uint64(f.Len())
	if len(f.Pieces[0]) < eth.EthernetLen {
		p.counters.Malformed++
		return 0
	}
	dst, src := eth.MAC(f.Pieces[0]), eth.MAC(f.Pieces[0][6:])
	tci, hasTag, whole := f.tci()
	if !whole || src[0]&1 != 0 || src == (eth.MAC{}) {
		p.counters.Malformed++
		return 0
	}
	vlan := tci & eth.VIDMask
	if vlan == 0 { // no tag, or one of a priority alone
		vlan = p.cfg.PVID
	}
	if !p.member(vlan) {
		p.counters.UnknownVLAN++
		return 0
	}
	p.learn(now, keyOf(src, vlan))
	if reserved(dst) {
		p.counters.Reserved++
		return 0
	}
	to := p.bridge.members[vlan] &^ (1 << p.number)
	if e := p.bridge.destination(now, dst, vlan); e == nil {
		p.counters.Flooded++
	} else if to &= 1 << e.port; to == 0 {
		p.counters.Filtered++
		return 0
	}
	tag := tci&^uint16(eth.VIDMask) | vlan
	for ; to != 0; to &= to - 1 {
		if o := p.bridge.ports[bits.TrailingZeros64(to)]; o.send(f, hasTag, vlan, tag) {
			woken |= 1 << o.number
		}
	}
	return woken
}

// reserved reports whether a MAC is one of those that no bridge forwards, 01:80:c2:00:00:00 to 0f.
func reserved(m eth.MAC) bool {
	return [5]byte(m[:5]) == [5]byte{0x01, 0x80, 0xc2, 0, 0} && m[5] < 0x10
}

// destination returns where a MAC was heard; nil: everywhere.
func (b *Bridge) destination(now clock.Time, mac eth.MAC, vlan uint16) *entry {
	if mac[0]&1 != 0 {
		return nil
	}
	return b.table.find(now, keyOf(mac, vlan))
}

// learn notes that a source was heard at the port.
func (p *Port) learn(now clock.Time, k key) {
	b := p.bridge
	e := b.table.place(k)
	if e.key == k && e.port == p.number {
		e.seen = now
		return
	}
	if p.known >= b.cfg.Entries && now.Sub(b.table.oldest) >= b.cfg.Ageing {
		b.table.sweep(func(e *entry) bool { return b.table.expired(now, e) }, func(e *entry) { b.ports[e.port].known-- })
		e = b.table.place(k)
	}
	full := p.known >= b.cfg.Entries
	if full {
		p.counters.NotLearned++
	}
	switch {
	case e.key == k: // it has moved
		b.ports[e.port].known--
		if full { // better known nowhere than at the wrong port
			b.forget(k)
			return
		}
	case full:
		return
	}
	*e = entry{key: k, seen: now, port: p.number}
	b.table.oldest = clock.Min(b.table.oldest, now)
	p.known++
}

func (b *Bridge) forget(k key) {
	for i := b.table.home(k); ; i = (i + 1) & (len(b.table.slots) - 1) {
		if b.table.slots[i].key == k {
			b.table.remove(i)
			return
		}
	}
}

// send puts a frame of a VLAN into the port's queue, with the tag that it leaves with. It reports whether nothing waited before.
func (p *Port) send(f *Frame, hasTag bool, vlan, tci uint16) bool {
	skip, n := 0, f.Len()
	if hasTag {
		skip = eth.VLANLen
	}
	if n-skip > p.cfg.MTU+eth.EthernetLen && f.Task.Kind == offload.Whole {
		p.counters.TooLong++
		return false
	}
	var b [eth.VLANLen]byte
	tag := b[:0]
	if vlan != p.cfg.PVID {
		tag = b[:]
		binary.BigEndian.PutUint16(tag, uint16(eth.TypeVLAN))
		binary.BigEndian.PutUint16(tag[2:], tci)
	}
	if n = p.queue.put(f, skip, tag); n == 0 {
		p.counters.QueueDrops++
		return false
	}
	p.counters.OutFrames++
	p.counters.OutBytes += uint64(n)
	return p.queue.len == 1
}

// Entry is a source that is known.
type Entry struct {
	VLAN uint16
	MAC  eth.MAC
	Port int
	Age  time.Duration // since it was heard last
}

// Table returns the sources that are known, by VLAN and MAC.
func (b *Bridge) Table(now clock.Time) (all []Entry) {
	for i := range b.table.slots {
		if e := &b.table.slots[i]; e.key != 0 && !b.table.expired(now, e) {
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
