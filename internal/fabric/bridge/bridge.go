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
	// Reserved were received, and dropped: MAC control that the port does not take, or to an address that no bridge forwards (IEEE 802.1Q,
	// 8.6.3).
	Reserved   uint64
	Filtered   uint64 // received, and dropped: their destination is at the port
	NotLearned uint64 // received from new sources, of which there were too many
	QueueDrops uint64 // not sent: the queue was full
	TooLong    uint64 // not sent: longer than the MTU
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
	queues   [classes]*queue // made when they are used first
	backlog  uint16          // classes of which frames wait
	turn     uint8           // the class that was taken last
	counters Counters
	pauses
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
	p := &Port{bridge: b, relay: r, cfg: cfg}
	b.ports[r.Number()] = p
	return p, nil
}

// Remove removes the port, what waits there, and what is known of it. The port must not be used any more. It returns the ports, as a bit
// for each number, at which something is to be taken now.
func (p *Port) Remove(now clock.Time) (woken uint64) {
	woken = p.leave(now) &^ (1 << p.Number())
	p.bridge.ports[p.Number()] = nil
	p.relay.Remove()
	return woken
}

// Number returns the port's number, from 0.
func (p *Port) Number() int { return p.relay.Number() }

// Counters returns the port's.
func (p *Port) Counters() Counters {
	c := p.counters
	c.NotLearned = p.relay.NotLearned()
	return c
}

// Waiting returns how many frames are to be taken now.
func (p *Port) Waiting(now clock.Time) (n int) {
	if p.flow.Ready(now) {
		n = 1
	}
	for set := p.backlog &^ p.closed(now); set != 0; set &= set - 1 {
		n += p.queues[bits.TrailingZeros16(set)].len
	}
	return n
}

// Take hands out frames that the port sends, and returns their number. They are valid until the next call. A pause goes first;
// classes take turns. woken are other ports at which something is to be taken now.
func (p *Port) Take(now clock.Time, out []Frame) (n int, woken uint64) {
	for _, q := range p.queues {
		if q != nil {
			q.out = 0
		}
	}
	if len(out) > 0 && p.flow.Ready(now) {
		out[0] = Frame{Pieces: [3][]byte{p.flow.Append(now, p.frame[:0])}}
		n = 1
	}
	open := p.backlog &^ p.closed(now)
	for open != 0 && n < len(out) {
		next := open &^ (2<<p.turn - 1)
		if next == 0 {
			next = open
		}
		p.turn = uint8(bits.TrailingZeros16(next))
		open &^= 1 << p.turn
		q := p.queues[p.turn]
		n += q.take(out[n:])
		if q.len == 0 {
			p.backlog &^= 1 << p.turn
		}
		if q.pausing != 0 && !q.beyond(xonPart) {
			woken |= p.drained(now, p.turn)
		}
	}
	return n, woken &^ (1 << p.Number())
}

// Receive forwards a frame that the port has received. It returns the ports, as a bit for each number, at which nothing was to be
// taken before and something is now.
func (p *Port) Receive(now clock.Time, f *Frame) (woken uint64) {
	p.counters.InFrames++
	p.counters.InBytes += uint64(f.Len())
	if len(f.Pieces[0]) < eth.EthernetLen {
		p.counters.Malformed++
		return 0
	}
	if h := f.Pieces[0]; h[12] == byte(eth.TypeMACControl>>8) && h[13] == byte(eth.TypeMACControl&0xff) {
		return p.control(now, f)
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
		woken |= p.pass(now, p.bridge.ports[bits.TrailingZeros64(to)], f, hasTag, vlan, tag)
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

// pass puts a frame that the port has received into a queue of another.
func (p *Port) pass(now clock.Time, o *Port, f *Frame, hasTag bool, vlan, tci uint16) (woken uint64) {
	class, lossless := uint8(0), false
	if hasTag {
		class = uint8(tci >> 13)
	}
	if lossless = p.sends>>class&1 != 0; !lossless && o.obeys>>class&1 == 0 {
		class = others
	}
	closed := uint16(0)
	if o.flow.Held() != 0 {
		closed = o.closed(now)
	}
	idle := o.backlog&^closed == 0
	if !o.send(f, hasTag, vlan, tci, class, lossless) {
		return 0
	}
	if o.backlog |= 1 << class; idle && closed>>class&1 == 0 {
		woken = 1 << o.Number()
	}
	if lossless {
		woken |= p.fills(now, o, class)
	}
	return woken
}

// send puts a frame of a VLAN into the port's queue of a class, with the tag that it leaves with; false: it is lost.
func (p *Port) send(f *Frame, hasTag bool, vlan, tci uint16, class uint8, lossless bool) bool {
	q := p.queues[class]
	if q == nil {
		q = newQueue(p.cfg.Queue, QueueFrames)
		p.queues[class] = q
	}
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
	if n = q.put(f, skip, tag); n == 0 && lossless && q.grow() {
		n = q.put(f, skip, tag)
	}
	if n == 0 {
		p.counters.QueueDrops++
		return false
	}
	p.counters.OutFrames++
	p.counters.OutBytes += uint64(n)
	return true
}

// Table returns the sources that are known, by VLAN and MAC.
func (b *Bridge) Table(now clock.Time) []Entry { return b.relay.Table(now) }
