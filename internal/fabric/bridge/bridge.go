package bridge

import (
	"encoding/binary"
	"fmt"
	"math/bits"
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
	Reserved            uint64 // received, and dropped: MAC control, or to an address that no bridge forwards (IEEE 802.1Q, 8.6.3)
	Filtered            uint64 // received, and dropped: their destination is at the port
	NotLearned          uint64 // received from new sources, of which there were too many
	QueueDrops          uint64 // not sent: the queue was full
	TooLong             uint64 // not sent: longer than the MTU
}

// Bridge is a switch.
type Bridge struct {
	relay *Relay
	ports [MostPorts]*Port
}

// Port is one of a switch.
type Port struct {
	bridge   *Bridge
	relay    *RelayPort
	cfg      PortConfig
	queue    queue
	counters Counters
}

// New returns a switch without ports. The error is a *FieldError.
func New(cfg Config) (*Bridge, error) {
	r, err := NewRelay(cfg)
	if err != nil {
		return nil, err
	}
	return &Bridge{relay: r}, nil
}

// Add adds a port. The error is a *FieldError.
func (b *Bridge) Add(cfg PortConfig) (*Port, error) {
	if cfg.Queue == 0 {
		cfg.Queue = DefaultQueue
	}
	switch {
	case cfg.MTU < leastMTU || cfg.MTU > mostMTU:
		return nil, &FieldError{"MTU", cfg.MTU, fmt.Sprintf("%d to %d", leastMTU, mostMTU)}
	case cfg.Queue < cfg.MTU+eth.EthernetLen+eth.VLANLen || cfg.Queue > mostQueue:
		return nil, &FieldError{"Queue", cfg.Queue, fmt.Sprintf("the longest frame to %d bytes", mostQueue)}
	}
	r, err := b.relay.Add(cfg.PVID, cfg.Tagged)
	if err != nil {
		return nil, err
	}
	p := &Port{bridge: b, relay: r, cfg: cfg, queue: newQueue(cfg.Queue, QueueFrames)}
	b.ports[r.Number()] = p
	return p, nil
}

// Remove removes the port, what waits there, and what is known of it. The port must not be used any more.
func (p *Port) Remove() {
	p.bridge.ports[p.Number()] = nil
	p.relay.Remove()
}

// Number returns the port's number, from 0.
func (p *Port) Number() int { return p.relay.Number() }

// Counters returns the port's.
func (p *Port) Counters() Counters {
	c := p.counters
	c.NotLearned = p.relay.NotLearned()
	return c
}

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
	if h := f.Pieces[0]; h[12] == byte(eth.TypeMACControl>>8) && h[13] == byte(eth.TypeMACControl&0xff) {
		p.counters.Reserved++ // whatever its address is (IEEE 802.3, 31.3)
		return 0
	}
	tci, hasTag, whole := f.tci()
	if !whole {
		p.counters.Malformed++
		return 0
	}
	vlan := p.relay.VLAN(tci & eth.VIDMask)
	dst, src := eth.MAC(f.Pieces[0]), eth.MAC(f.Pieces[0][6:])
	to, verdict := uint64(0), Forwarded
	if f.BadFCS {
		to, verdict = p.relay.Pass(now, dst, src, vlan)
	} else {
		to, verdict = p.relay.Decide(now, dst, src, vlan)
	}
	p.count(verdict)
	tag := tci&^uint16(eth.VIDMask) | vlan
	for ; to != 0; to &= to - 1 {
		n := bits.TrailingZeros64(to)
		if p.bridge.ports[n].send(f, hasTag, vlan, tag) {
			woken |= 1 << n
		}
	}
	return woken
}

// count counts what became of a frame.
func (p *Port) count(v Verdict) {
	c := &p.counters
	switch v {
	case Flooded:
		c.Flooded++
	case UnknownVLAN:
		c.UnknownVLAN++
	case Malformed:
		c.Malformed++
	case Reserved:
		c.Reserved++
	case Filtered:
		c.Filtered++
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
	if p.relay.Tags(vlan) {
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

// Table returns the sources that are known, by VLAN and MAC.
func (b *Bridge) Table(now clock.Time) []Entry { return b.relay.Table(now) }
