package agent

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/mad"
)

// Limits on what programs and other nodes can make a port keep.
const (
	MaxAgents   = 32       // of a file
	MaxLength   = 64 << 20 // bytes of a transfer
	maxSends    = 8192     // of a file, in progress
	maxReceives = 256      // transfers to an agent, in progress
	maxHeld     = 256 << 20
	maxSending  = 256 << 20
)

// IDs numbers agents. All ports of a fabric share it, so that an answer that arrives late, or at another
// port, matches no agent, and so that what their transfers make the process hold has one limit.
type IDs struct {
	last    uint32
	held    int // bytes of transfers to agents, at most maxHeld
	sending int // bytes of MADs in progress, at most maxSending
}

// Port holds the agents of one port.
type Port struct {
	ids     *IDs
	byHigh  map[uint32]*agent // by the upper half of transaction IDs
	methods map[methodKey]*agent
	due     clock.Agenda[func(now clock.Time)]
	out     []Packet
	head    int
	told    Message // message being delivered to a program
}

// methodKey identifies the agent for unsolicited MADs.
type methodKey struct {
	version, class, method uint8
	oui                    uint32
}

// NewPort creates a port that nobody has opened.
func NewPort(ids *IDs) *Port {
	return &Port{ids: ids, byHigh: map[uint32]*agent{}, methods: map[methodKey]*agent{}}
}

// Open opens the port for a program. deliver is called, from within the port's other methods, with each
// message for the program to read; it must not keep it.
func (p *Port) Open(deliver func(*Message)) *File { return &File{port: p, deliver: deliver} }

// Quiet reports whether there is no agent.
func (p *Port) Quiet() bool { return len(p.byHigh) == 0 }

// Transmit fills out with the next packet to send; false: there is none.
func (p *Port) Transmit(out *Packet) bool {
	if p.head == len(p.out) {
		p.out, p.head = p.out[:0], 0
		return false
	}
	*out = p.out[p.head]
	p.head++
	return true
}

// Waiting reports whether Transmit has something.
func (p *Port) Waiting() bool { return p.head < len(p.out) }

func (p *Port) transmit() *Packet {
	p.out = append(p.out, Packet{})
	return &p.out[len(p.out)-1]
}

// Deadline returns when Advance must be called.
func (p *Port) Deadline() clock.Time { return p.due.Deadline() }

// Advance does what is due: it retransmits or gives up.
func (p *Port) Advance(now clock.Time) {
	for t := p.due.Due(now); t != nil; t = p.due.Due(now) {
		t.Of(now)
	}
}

// timer is something with a deadline, and the function called then.
type timer = clock.Appointment[func(now clock.Time)]

// Receive handles a MAD that arrived at the port; false: no agent wants it.
func (p *Port) Receive(now clock.Time, k *Packet) bool {
	a := p.find(k)
	if a == nil {
		return false
	}
	if a.rmpp && active(k.MAD[:]) {
		a.segment(now, k)
		return true
	}
	m := &k.MAD
	if response(m[:]) && !a.raw {
		s := a.request(k)
		if s == nil {
			// A program that does RMPP itself gets all segments; for others, late ones are dropped.
			if a.rmpp || !active(m[:]) {
				return true
			}
		} else {
			a.end(s)
		}
	}
	a.deliver(k, m[:])
	return true
}

// find returns the agent that a MAD is for.
func (p *Port) find(k *Packet) *agent {
	m := &k.MAD
	if m[0] != mad.BaseVersion {
		return nil
	}
	subnet := m[atClass] == mad.ClassSubnetLID || m[atClass] == mad.ClassSubnetDir
	if subnet != (k.DQP == 0) {
		return nil
	}
	if response(m[:]) {
		a := p.byHigh[be32(m[atTID:])]
		if a != nil && a.qpn == k.DQP {
			return a
		}
		return nil
	}
	key := methodKey{version: m[atVersion], class: m[atClass], method: m[atMethod]}
	if vendorOUI(key.class) {
		key.oui = uint32(m[atOUI])<<16 | uint32(m[atOUI+1])<<8 | uint32(m[atOUI+2])
	}
	return p.methods[key]
}

func be32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func putBE32(b []byte, v uint32) {
	_ = b[3]
	b[0], b[1], b[2], b[3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}
