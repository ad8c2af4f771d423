package sim

import (
	"math/rand/v2"
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// Link is the way from one port to another.
type Link struct {
	// Queue is how many bytes may wait for a limited rate before packets are dropped; 0: no limit.
	Queue int

	network *Network
	joined  bool
	lane    lane
	ends    *ends // of the packet before
	model   impair.Model

	place             // what follows few packets need
	feed   int        // its place among those of the process at its end
	random *rand.Rand // nil: not needed so far
	late   impair.Late[*packet]
	known  []*ends // all that packets had
}

// Link returns the way from one port to another, to give it an impairment or a queue of its own.
func (n *Network) Link(from, to *Port) *Link { return n.link(from, to) }

// link returns the link from a port to another.
func (n *Network) link(from, to *Port) *Link {
	if l := from.links[to.Addr]; l != nil && l.lane.to == to {
		return l
	}
	l := &Link{network: n, lane: lane{from: from, to: to, rank: rank(to, lanes+uint64(from.number)+1)}}
	n.links = append(n.links, l)
	from.links[to.Addr] = l
	l.feeds()
	l.Set(n.Default)
	return l
}

// Set replaces the link's impairment. Packets that are on their way arrive as decided before.
func (l *Link) Set(i impair.Impairment) {
	number := uint64(l.lane.from.number)<<32 | uint64(l.lane.to.number)
	random := l.random
	switch {
	case i.Seed != 0:
		random = rand.New(rand.NewPCG(i.Seed, number))
	case random == nil && i.Draws():
		random = rand.New(rand.NewPCG(l.network.seed, number))
		l.random = random
	}
	l.model.Set(i, random)
	l.ahead(i.Shortest())
}

// Impairment returns the link's impairment.
func (l *Link) Impairment() impair.Impairment { return l.model.Setting() }

// send sends a packet on its way: into the switch where the port is plugged in, to the port that has the
// address, or to every other port for a multicast address.
func (n *Network) send(from *Port, o *frame.Out) {
	n.Stats.Sent++
	if from.socket != nil {
		n.enter(from, o)
		return
	}
	dst := o.Route.Dst
	if l := from.recent(dst); l != nil {
		l.carry(o, dst)
		return
	}
	plain := dst.Unmap()
	if plain.IsMulticast() {
		for _, to := range n.ports {
			if to != from && to.socket == nil && (!n.Closed || from.links[to.Addr] != nil) {
				n.link(from, to).carry(o, plain)
			}
		}
		return
	}
	to := n.byAddr[plain]
	if to == nil || to.socket != nil || n.Closed && from.links[plain] == nil {
		n.Stats.Unroutable++
		return
	}
	l := n.link(from, to)
	from.used = 1 - from.used
	from.last[from.used] = way{dst, l, to}
	l.carry(o, dst)
}

// way is a link that a port uses for packets to dst.
type way struct {
	dst  netip.Addr
	link *Link // nil: none
	to   *Port
}

// recent returns the link for dst if it is one of the two that were used last, as those of a port are that
// sends to one port and acknowledges to another.
func (p *Port) recent(dst netip.Addr) *Link {
	if x := &p.last[p.used]; x.link != nil && x.dst == dst {
		return x.link
	}
	if x := &p.last[1-p.used]; x.link != nil && x.dst == dst {
		p.used = 1 - p.used
		return x.link
	}
	return nil
}

// towards returns the one of these two that leads to a port, nil if none does.
func (p *Port) towards(to *Port) *Link {
	for i := range p.last {
		if p.last[i].to == to {
			return p.last[i].link
		}
	}
	return nil
}

// carry decides what happens to a packet.
func (l *Link) carry(o *frame.Out, dst netip.Addr) {
	n, from := l.network, l.lane.from
	p := n.take()
	p.route(o.Route, l.between(o.Route.Src, dst.Unmap()))
	p.fill(from, o)
	if n.Filter != nil && !n.Filter(from, l.lane.to, p.data()) {
		n.Stats.Lost++
		n.drop(p)
		return
	}
	f := l.model.Fate()
	if f.Lost {
		n.Stats.Lost++
		n.drop(p)
		return
	}
	if f.Marked {
		n.Stats.Marked++
		p.class = eth.Mark(p.class)
	}
	var again *packet
	if f.Twice {
		n.Stats.Duplicated++
		again = n.take()
		again.copy(p)
	}
	l.depart(p, f)
	if again != nil {
		l.enqueue(again, n.now)
	}
}

// depart corrupts a packet, or holds it back, if that was decided.
func (l *Link) depart(p *packet, f impair.Fate) {
	n := l.network
	if f.Corrupt {
		n.Stats.Corrupted++
		if l.lane.from.Codec == nil {
			n.drop(p)
			return
		}
		at, bit := l.model.Flip(len(p.buf))
		p.buf[at] ^= bit
	}
	if !f.Late {
		l.enqueue(p, n.now)
		return
	}
	n.Stats.Reordered++
	overtaken, until := l.model.Hold(n.now)
	l.late.Add(p, overtaken, until)
	if !l.joined {
		l.joined = true
		l.lane.from.process.join(l)
	}
	l.process.timers.set(l.index, l.deadline())
}

// enqueue decides when a packet arrives.
func (l *Link) enqueue(p *packet, now clock.Time) {
	n := l.network
	l.late.Pass()
	if !l.admit(p, now) {
		n.Stats.Overflowed++
		n.drop(p)
	}
	if l.joined {
		l.advance(now)
		l.process.timers.set(l.index, l.deadline())
	}
}

// admit queues a packet; false: there is no room for it.
func (l *Link) admit(p *packet, now clock.Time) bool {
	length := p.len()
	if l.lane.from.Codec == nil {
		length += ib.ICRCLen
	}
	if l.Queue > 0 && l.overflows(now, length) {
		return false
	}
	at := l.model.Due(l.lane.from.leaves(now, length, p.ends.dst), impair.WireLength(length, p.ends.dst))
	at, ok := l.lane.to.serve(at)
	if ok {
		l.network.arrives(&l.lane, p, at)
	}
	return ok
}

// overflows reports whether the queue of a limited rate has no room for so many bytes more.
func (l *Link) overflows(now clock.Time, length int) bool {
	rate := l.model.Setting().Rate
	return rate > 0 && l.model.Backlog(now).Seconds()*float64(rate)/8+float64(length) > float64(l.Queue)
}

// advance lets packets go that have been held back long enough.
func (l *Link) advance(now clock.Time) {
	for p, ok := l.late.Take(now); ok; p, ok = l.late.Take(now) {
		if !l.admit(p, now) {
			l.network.Stats.Overflowed++
			l.network.drop(p)
		}
	}
}

func (l *Link) turn(*Network) {}

func (l *Link) deadline() clock.Time { return l.late.Deadline() }
