package overlay

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/neighbour"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

const (
	// mostHeld is how many frames wait for a host's MAC, and mostQueued how many to leave; more are dropped.
	mostHeld   = 64
	mostQueued = 256
)

// way is the way to another host.
type way struct {
	from *ProviderAddress
	host netip.Addr
	next neighbour.Key // whose MAC it is
	mac  eth.MAC
}

// overhead is how much larger the IP packet outside is than the frame inside.
func (w *way) overhead() int {
	o := tunnel.Outer{Src: w.from.Address.Addr()}
	return o.HeadLen(w.from.Kind) // with an Ethernet header, as the frame inside has one that is not counted
}

// size is that of the IP packet around a frame of n bytes.
func (w *way) size(n int) int { return w.overhead() + n - eth.EthernetLen }

// way returns the way to a host. Unresolved: its MAC is asked for.
func (e *Engine) way(now clock.Time, host netip.Addr) (w way, why Reason) {
	hop := host
	from := e.beside(host)
	if from == nil {
		if hop = e.router(host); !hop.IsValid() {
			return w, NoProvider
		}
		if from = e.beside(hop); from == nil {
			return w, NoProvider
		}
	}
	w = way{from: from, host: host, next: neighbour.Key{VLAN: from.VLAN, Addr: hop}}
	mac, known := e.neighbours.Find(now, w.next, neighbour.Source{MAC: e.cfg.MAC, Addr: from.Address.Addr()})
	e.follow()
	if w.mac = mac; !known {
		return w, Unresolved
	}
	return w, 0
}

// Encloses reports whether a large frame of n bytes of TCP from an adapter in a virtual subnet to a MAC gets one header outside, so that
// it leaves as it is: its host is known, and the packet outside not too long.
func (e *Engine) Encloses(from Port, dst eth.MAC, n int) bool {
	host, ok := e.stations[inSubnet[eth.MAC]{e.tenants[from].subnet, dst}]
	if !ok || e.own[host] != nil {
		return false
	}
	hop := host
	at := e.beside(host)
	if at == nil {
		hop = e.router(host)
		at = e.beside(hop)
	}
	if at == nil || !e.neighbours.Knows(neighbour.Key{VLAN: at.VLAN, Addr: hop}) {
		return false
	}
	w := way{from: at}
	return w.size(n) <= offload.MaxPacket
}

// beside returns the provider address on whose network a host is; nil: there is none.
func (e *Engine) beside(host netip.Addr) *ProviderAddress {
	for i := range e.tables.Addresses {
		if a := &e.tables.Addresses[i]; a.Address.Masked().Contains(host) {
			return a
		}
	}
	return nil
}

// router returns the next hop of the best provider route to a host: of the longest prefix, then of the lowest metric.
func (e *Engine) router(host netip.Addr) (hop netip.Addr) {
	var best *ProviderRoute
	for i := range e.tables.Providers {
		r := &e.tables.Providers[i]
		if r.Prefix.Contains(host) && (best == nil || r.Prefix.Bits() > best.Prefix.Bits() ||
			r.Prefix.Bits() == best.Prefix.Bits() && r.Metric < best.Metric) {
			best = r
		}
	}
	if best == nil {
		return hop
	}
	return best.NextHop
}

// held is a frame that waits for a MAC.
type held struct {
	next  neighbour.Key
	frame []byte
}

// hold keeps a frame until the MAC is known to which it goes.
func (e *Engine) hold(w *way, outer []byte, f *Frame) Verdict {
	if len(e.held) == mostHeld || f.Task.Kind != offload.Whole { // a large one is asked for only while Encloses says so
		return e.drop(Congested)
	}
	e.held = append(e.held, held{w.next, join(outer, f)})
	return Verdict{}
}

// queue has a frame leave; false: too many wait.
func (e *Engine) queue(b []byte) bool {
	if len(e.out) == mostQueued {
		e.counters.Dropped[Congested]++
		return false
	}
	e.out = append(e.out, b)
	return true
}

// follow does what changes of neighbours mean for frames that wait, and has those leave that resolve addresses.
func (e *Engine) follow() {
	for _, c := range e.neighbours.Changes() {
		kept := e.held[:0]
		for _, h := range e.held {
			switch {
			case h.next != c.Key:
				kept = append(kept, h)
			case !c.Known:
				e.counters.Dropped[Unresolved]++
			default:
				copy(h.frame, c.MAC[:])
				if e.queue(h.frame) {
					e.sent(len(h.frame))
				}
			}
		}
		clear(e.held[len(kept):])
		e.held = kept
	}
	for b := e.neighbours.Frame(nil); b != nil; b = e.neighbours.Frame(nil) {
		e.queue(b)
	}
}

// Next returns the next frame of the engine's own to leave by the wire; nil: there is none.
func (e *Engine) Next() []byte {
	if len(e.out) == 0 {
		return nil
	}
	b := e.out[0]
	e.out[0] = nil
	if e.out = e.out[1:]; len(e.out) == 0 {
		e.out = nil
	}
	return b
}

// Waiting reports whether Next has a frame.
func (e *Engine) Waiting() bool { return len(e.out) > 0 }

// Advance does what is due.
func (e *Engine) Advance(now clock.Time) {
	e.neighbours.Advance(now)
	e.follow()
}

// Deadline is when Advance is wanted next.
func (e *Engine) Deadline() clock.Time { return e.neighbours.Deadline() }
