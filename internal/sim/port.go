package sim

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/impair"
)

// Engine drives a port: the methods of transport.Engine that the network needs. An engine that also has
// the method Pending() bool is given another turn as long as that returns true.
type Engine interface {
	// Receive takes packets that have arrived. They are valid until the port's next turn has ended, which
	// is before time goes on.
	Receive(now clock.Time, in []frame.In)
	// Advance does what is due.
	Advance(now clock.Time)
	// Transmit fills in packets to be sent, at most len(out), and returns how many. They are valid until
	// the next call.
	Transmit(now clock.Time, out []frame.Out) int
	// Deadline is when Advance is wanted next. The network asks when the port has had a turn.
	Deadline() clock.Time
}

type pending interface{ Pending() bool }

// Codec is the encapsulation of a port, if one is to be in the path. Without it the network carries
// everything from the BTH to the pad, and drops corrupted packets like a receiver that checks the ICRC.
type Codec interface {
	// Seal appends the bytes of a packet as they are on the wire to b.
	Seal(b []byte, o *frame.Out) []byte
	// Open checks and strips what Seal added; false drops the packet.
	Open(in *frame.In) bool
}

// batchSize is the default of Port.Batch.
const batchSize = 64

// Port is an engine's place in the network.
type Port struct {
	Addr   netip.Addr
	Engine Engine
	Codec  Codec
	// Settle, if set, is called after each turn of the engine: the place to take completions and to post
	// more work.
	Settle func(now clock.Time)
	// Rate is what the port's own wire takes, in bits per second with the headers of Ethernet; 0: no limit.
	// The engine is not asked for packets while one waits for the wire.
	Rate uint64
	// Service is how long the port takes for each arriving packet, and Buffer how many may wait before
	// more are lost, like a socket with its receive buffer. Zero means no time, and no limit.
	Service time.Duration
	Buffer  int
	// Lends says that a payload which the engine hands out, and which is not short, stays as it is until it has
	// been delivered: the programs leave alone what they send. The network then does not copy it.
	Lends bool
	// Prefetcher is told what arrives next: the engine, if it can do that; nil: nobody.
	Prefetcher Prefetcher
	// Batch is the maximum number of packets passed to the engine at once; 0 means 64.
	Batch int

	place
	network *Network
	number  int
	pending pending // Engine, if it is one
	links   map[netip.Addr]*Link
	last    [2]way     // the two used last
	used    uint8      // which of them was last
	busy    clock.Time // until when it serves what has arrived or will
	socket  *socket    // of the switch where it is plugged in; nil: none

	wire    impair.Model // of Rate
	refused packets      // what the switch had no room for
}

// Add plugs an engine in at addr.
func (n *Network) Add(addr netip.Addr, e Engine) *Port { return n.add(addr, e, n.processes[0]) }

// AddApart plugs an engine in at addr whose turns, with what Settle does in them, touch nothing that those of other ports
// or the program touch while the network runs. It gives the same results as Add. The port has some turns in a row, ahead of
// others from which nothing can arrive yet, while its memory is in the caches; but nothing is prefetched for it.
func (n *Network) AddApart(addr netip.Addr, e Engine) *Port { return n.add(addr, e, n.process()) }

func (n *Network) add(addr netip.Addr, e Engine, x *process) *Port {
	p := n.port(addr, e, x)
	if old := n.byAddr[addr]; old != nil {
		for _, l := range n.links {
			l.lane.from.last = [2]way{}
		}
	}
	n.byAddr[addr] = p
	return p
}

func (n *Network) port(addr netip.Addr, e Engine, x *process) *Port {
	p := &Port{Addr: addr, Engine: e, network: n, number: len(n.ports), links: make(map[netip.Addr]*Link)}
	n.ports = append(n.ports, p)
	x.join(p)
	p.pending, _ = e.(pending)
	p.Prefetcher, _ = e.(Prefetcher)
	return p
}

// Wake gives a port a turn in the next step, because its engine has work from elsewhere.
func (p *Port) Wake() { p.process.wake(p.index) }

func (p *Port) batch() int {
	if p.Batch == 0 {
		return batchSize
	}
	return p.Batch
}

func (p *Port) advance(now clock.Time) {
	if p.Engine.Deadline() <= now {
		p.Engine.Advance(now)
	}
}

// deadline is the engine's, and when the wire is free. What is overdue because the engine waits for the
// wire, or for room at the switch, does not count.
func (p *Port) deadline() clock.Time {
	at := p.Engine.Deadline()
	if p.refused.count > 0 && at <= p.network.now {
		return clock.Never
	}
	if p.Rate == 0 {
		return at
	}
	free := p.wire.Last()
	switch {
	case free <= p.network.now:
		return at
	case at <= p.network.now:
		return free
	}
	return clock.Min(at, free)
}

// turn lets a port transmit everything it has, or all that its wire takes.
func (p *Port) turn(n *Network) {
	if p.refused.count > 0 { // what was due while it waited for room
		p.advance(n.now)
	}
	for p.flush(n) && p.free(n.now) {
		k := p.Engine.Transmit(n.now, p.room(n))
		for i := range n.out[:k] {
			if !n.out[i].Inside {
				n.send(p, &n.out[i])
			}
		}
		if p.Settle != nil {
			p.Settle(n.now)
		}
		if k == 0 {
			break
		}
	}
	if e := p.pending; e != nil && e.Pending() && p.refused.count == 0 && p.free(n.now) {
		p.process.woken.add(p.index)
	}
}

// free reports whether the port's wire takes a packet now.
func (p *Port) free(now clock.Time) bool { return p.Rate == 0 || p.wire.Last() <= now }

// room returns where the engine puts its packets: where each of them has to wait for its turn, in one.
func (p *Port) room(n *Network) []frame.Out {
	if p.Rate != 0 {
		return n.out[:1]
	}
	return n.out
}

// leaves returns when a packet of so many bytes has left by the port's wire.
func (p *Port) leaves(now clock.Time, bytes int, dst netip.Addr) clock.Time {
	if p.Rate == 0 {
		return now
	}
	if p.wire.Setting().Rate != p.Rate {
		p.wire.Set(impair.Impairment{Rate: p.Rate}, nil)
	}
	return p.wire.Due(now, impair.WireLength(bytes, dst))
}

// serve returns when the port has taken a packet that arrives at a time; false: its buffer is full.
func (p *Port) serve(at clock.Time) (clock.Time, bool) {
	if p.Service == 0 {
		return at, true
	}
	if p.Buffer > 0 && p.busy.Sub(at) >= time.Duration(p.Buffer)*p.Service {
		return at, false
	}
	p.busy = max(at, p.busy).Add(p.Service)
	return p.busy, true
}
