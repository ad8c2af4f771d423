// Package links connects an adapter's port to the network: a link for each of its addresses, with the
// encapsulation of its packets, the captures that see them and the impairments around it.
package links

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/port"
)

// Address is one address of a port with the link that serves it.
type Address struct {
	Addr  netip.Addr
	Link  link.Link // base with captures and impairments; nil while the port is unplugged
	Encap *encap.Encap
	Wire  *port.Wire // of Link

	base                          link.Link
	impair                        *impair.Link
	shown                         *capture.Link // between base and impair
	way                           link.Link     // where packets enter: impair, shown or base; nil while the port is unplugged
	own                           bool          // the set opened the link
	shared                        bool          // another function's set drives the link
	failed                        bool
	fault                         *faulty // nil: none
	receiveFailures, sendFailures uint64
	owner                         *Address       // of the link, if it is shared
	taps                          []*capture.Tap // of the set
	guests                        []guest        // other sets that share the link and capture
	ears                          [][6]byte      // MACs of Ethernet functions, if the link is its own
	log                           *slog.Logger

	carrier link.Carrier // of base; nil: it does not know its wire
	known   link.State   // of the wire, as WireState returned it last
}

// newAddress adds an encapsulation and the port's taps and impairment to a link.
func (p *Set) newAddress(addr netip.Addr, l link.Link, own bool) (*Address, error) {
	e, err := p.cfg.encap(addr, l)
	if err != nil {
		return nil, err
	}
	c := capture.New(l, addr, p.cfg.UDPPort, time.Now)
	c.SetTaps(p.taps)
	i := impair.New(c, p.cfg.limited(p.impairment), p.cfg.Now)
	o := &Address{Addr: addr, own: own, base: l, Link: i, impair: i, shown: c, taps: p.taps, Encap: e, log: p.cfg.Log,
		carrier: l.Capabilities().Carrier}
	if o.Wire = (&port.Wire{InfiniBand: l.Capabilities().InfiniBand}); p.cfg.Shared != nil {
		o.Wire, o.shared, o.owner = p.cfg.Shared.Wire, true, p.cfg.Shared
	}
	o.shorten()
	p.plug(o)
	return o, nil
}

// plug gives the set's station a place on the wire of an address.
func (p *Set) plug(o *Address) {
	if p.station == nil || o.Link == nil {
		return
	}
	only := o.Addr
	if o.base != nil && o.base.Capabilities().Raw { // it carries packets from any address
		only = netip.Addr{}
	}
	p.station.Plug(o.Wire, only, o.Encap)
}

// Attach makes the set's links the wires of a station.
func (p *Set) Attach(s *port.Station) {
	p.station = s
	for _, o := range p.addresses {
		p.plug(o)
	}
}

// unplug closes the link of an address.
func (p *Set) unplug(o *Address) {
	p.retire(o)
	if p.station != nil {
		p.station.Unplug(o.Wire)
	}
	_ = o.Link.Close()
}

// shorten makes packets bypass the impairment and the captures while these have nothing to do.
func (p *Address) shorten() {
	switch {
	case !p.impair.Idle():
		p.way = p.impair
	case !p.shown.Idle():
		p.way = p.shown
	default:
		p.way = p.base
	}
	if p.fault != nil {
		p.fault.Link, p.way = p.way, p.fault
	}
	if p.owner == nil {
		p.listen()
	}
}

// guest is a set that shares a link, with its captures.
type guest struct {
	set  *Set
	taps []*capture.Tap
}

// tap makes the captures of a set see what passes, the address's own or one that shares its link.
func (p *Address) tap(set *Set, taps []*capture.Tap) {
	if p.owner != nil {
		p.owner.guests = slices.DeleteFunc(p.owner.guests, func(g guest) bool { return g.set == set })
		p.owner.guests = append(p.owner.guests, guest{set, taps})
		p = p.owner
	} else {
		p.taps = taps
	}
	all := slices.Clone(p.taps)
	for _, g := range p.guests {
		all = append(all, g.taps...)
	}
	p.shown.SetTaps(all)
	p.shorten()
}

// Show shows the captures packets that do not leave, because they are for another station of the wire.
func (p *Address) Show(frames []frame.Out) {
	if !p.shown.Idle() {
		p.shown.Show(frames)
	}
}

// listen says how the frames of Ethernet functions come and go: as large as the link can, unless a capture shows them or an
// impairment takes them one by one.
func (p *Address) listen() {
	c := p.base.Capabilities()
	large := c.Large && p.way == p.base
	p.Wire.Large, p.Wire.Shown = large, !p.shown.Idle()
	for _, mac := range p.ears {
		_ = c.Stations.Listen(mac, large) // it has listened before
	}
}

// Whole reports whether the link is of whole Ethernet frames, and serves several functions.
func (p *Address) Whole() bool {
	if p.owner != nil {
		return p.owner.Whole()
	}
	return p.base != nil && p.base.Capabilities().Stations != nil
}

// Listen makes a link of whole frames hand up everything to a MAC, for an Ethernet function at the wire. The error is the
// link's.
func (p *Address) Listen(mac [6]byte) error {
	if p.owner != nil {
		return p.owner.Listen(mac)
	}
	err := p.base.Capabilities().Stations.Listen(mac, p.Wire.Large)
	if err == nil {
		p.ears = append(p.ears, mac)
	}
	return err
}

// Unlisten undoes Listen.
func (p *Address) Unlisten(mac [6]byte) {
	if p.owner != nil {
		p.owner.Unlisten(mac)
		return
	}
	if i := slices.Index(p.ears, mac); i >= 0 {
		if p.ears = slices.Delete(p.ears, i, i+1); slices.Contains(p.ears, mac) {
			return // another function listens to it, too
		}
		_ = p.base.Capabilities().Stations.Unlisten(mac)
	}
}

// Hear makes a link of whole frames hand up the frames to a group, or no longer. The error is the link's.
func (p *Address) Hear(group [6]byte, hear bool) error {
	if p.owner != nil {
		return p.owner.Hear(group, hear)
	}
	return p.base.Capabilities().Stations.Hear(group, hear)
}

// Send sends packets as Link.Send does.
func (p *Address) Send(frames []frame.Out) (int, error) { return p.way.Send(frames) }

// Receive receives packets as Link.Receive does.
func (p *Address) Receive(in []frame.In) (int, error) { return p.way.Receive(in) }

// Moved reports whether the state of the wire is another than that which Set.WireState returned last.
func (p *Address) Moved() bool { return p.carrier != nil && p.carrier.WireState() != p.known }

// Shared reports whether another function's set drives the link.
func (p *Address) Shared() bool { return p.shared }

// Socket reports whether the link is an open socket of this process.
func (p *Address) Socket() bool { return p.own && p.Link != nil }

// ReceiveFailed records that the link as a whole failed to receive.
func (p *Address) ReceiveFailed(err error) {
	p.receiveFailures++
	p.logFailure(err)
}

// SendFailed records that the link as a whole failed to send.
func (p *Address) SendFailed(err error) {
	p.sendFailures++
	p.logFailure(err)
}

// logFailure logs the first error of the link.
func (p *Address) logFailure(err error) {
	if !p.failed {
		p.failed = true
		p.log.Error("link failed", "address", p.Addr, "cause", err)
	}
}

// Resolver returns what finds out whether anybody has an address; nil if the link does not.
func (p *Address) Resolver() link.Resolver {
	if p.base == nil {
		return nil
	}
	return p.base.Capabilities().Resolver
}

// encap returns the encapsulation of packets through the link of an address.
func (f *Framing) encap(addr netip.Addr, l link.Link) (*encap.Encap, error) {
	e, err := encap.New(f.Mode, f.addrs(addr), l.Capabilities(), f.UDPPort)
	if err != nil {
		return nil, command.Errorf(command.Unsupported, "%v", err)
	}
	if f.InfiniBand != nil {
		e.SetPort(f.InfiniBand.Settings())
	}
	return e, nil
}
