package device

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/links"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/tenant"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

// overlaying is the overlay of a port's wire, which is there while virtual functions of the port are in virtual subnets.
type overlaying struct {
	tables    overlay.Tables
	directory *overlay.Directory // of the tables; nil: nothing was said
	on        *port.Overlay      // nil: there is none
	at        eswitch.Port       // of the provider addresses
	mac       eth.MAC            // likewise
	link      *links.Address
}

// OverlayStatus is the state of the overlay of an adapter's port.
type OverlayStatus struct {
	On       bool
	MAC      eth.MAC // of the provider addresses
	Counters overlay.Counters
	// Members are the functions in virtual subnets, and Records, Routes and Addresses what is said of them, customer and provider routes
	// together.
	Members, Records, Routes, Addresses int
}

// SetOverlay says where everybody is in the virtual subnets of an adapter's port, in place of what was said before. Errors are
// *command.Error; nothing has changed then.
func (h *Host) SetOverlay(index uint32, t overlay.Tables) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	p := a.port
	if err := t.Check(); err != nil {
		return command.Errorf(command.Invalid, "%v", err)
	}
	if p.overlay.on != nil {
		if err := p.overlay.on.SetTables(t); err != nil {
			return command.Errorf(command.Invalid, "%v", err)
		}
	}
	p.overlay.tables, p.overlay.directory = t, overlay.NewDirectory(&t)
	for _, o := range p.functions {
		o.followRecords()
	}
	return nil
}

// join makes the link of a function in a virtual subnet of that of the wire.
func (o *overlaying) join(wire link.Link, subnet uint32) *tenant.Link {
	l := tenant.New(wire, subnet)
	o.tell(l)
	return l
}

func (o *overlaying) tell(l *tenant.Link) {
	if o.directory != nil {
		l.Follow(o.directory, o.tables.Overhead())
	}
}

// followRecords adapts a function in a virtual subnet to what records say of it and of its neighbours: its addresses, their MACs, and how
// large packets may be.
func (a *adapter) followRecords() {
	l := a.subnetLink()
	if l == nil {
		return
	}
	a.port.overlay.tell(l)
	a.readdress(l.Customers(a.mac), a.present)
	a.answerHosts()
	if a.enabled {
		a.followMTU(a.links.MTU())
	}
}

// subnetLink returns the link of a function in a virtual subnet; nil: it is in none.
func (a *adapter) subnetLink() *tenant.Link {
	l, _ := a.cfg.Link.(*tenant.Link)
	return l
}

// customers returns the addresses that records give a function in a virtual subnet, beside its own.
func (a *adapter) customers() []netip.Addr {
	l := a.subnetLink()
	if l == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.Customers(a.mac)), func(c netip.Addr) bool { return c == a.cfg.Addr })
}

// customerFor returns the customer address from which a function sends that has only a link-local one beside it, to one that is not.
func (a *adapter) customerFor(remote netip.Addr) (c netip.Addr, ok bool) {
	if !a.cfg.Addr.IsLinkLocalUnicast() || remote.IsLinkLocalUnicast() {
		return c, false
	}
	for _, c := range a.customers() {
		if c.Is4() == remote.Is4() && a.gids.Has(c) {
			return c, true
		}
	}
	return c, false
}

// answerHosts has the overlay answer other hosts for the addresses of a function's RDMA, which sees no questions.
func (a *adapter) answerHosts() {
	if p := a.port; p.overlay.on != nil && a.subnet() != 0 && a.at != eswitch.Wire {
		var addrs []netip.Addr
		if !a.noRDMA() {
			addrs = a.links.Addrs()
		}
		p.overlay.on.AnswerFor(overlay.Port(a.at), addrs)
	}
}

// Overlay returns the state of the overlay of an adapter's port.
func (h *Host) Overlay(index uint32) OverlayStatus {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil || a.port.overlay.on == nil {
		return OverlayStatus{}
	}
	o := &a.port.overlay
	s := OverlayStatus{On: true, MAC: o.mac, Counters: o.on.Counters(), Records: len(o.tables.Records),
		Routes: len(o.tables.Routes) + len(o.tables.Providers), Addresses: len(o.tables.Addresses)}
	for _, f := range a.port.functions {
		if f.at != eswitch.Wire && o.on.Has(overlay.Port(f.at)) {
			s.Members++
		}
	}
	return s
}

// subnet returns the virtual subnet of a virtual function; 0: it is in none.
func (a *adapter) subnet() uint32 { return a.cfg.subnet() }

func (c *AdapterConfig) subnet() uint32 {
	if c.Virtual == nil {
		return 0
	}
	return c.Virtual.VSID
}

// collides reports whether two adapters cannot be on one host, because both have an address. Each virtual subnet has its own.
func (c *AdapterConfig) collides(o *AdapterConfig) bool {
	return c.Addr == o.Addr && c.UDPPort == o.UDPPort && c.subnet() == o.subnet()
}

// admit puts a virtual function, which has its port at the embedded switch, into its virtual subnet, if it has one. The first makes the
// overlay.
func (p *portLoop) admit(a *adapter) error {
	if a.subnet() == 0 || a.blocked() { // one that is blocked is in none until it is not: the switch keeps its frames
		p.expel(a)
		return nil
	}
	if p.overlay.on == nil {
		if err := p.startOverlay(); err != nil {
			return err
		}
	}
	if err := p.overlay.on.SetTenant(overlay.Port(a.at), a.subnet(), a.mac); err != nil {
		p.endOverlay()
		return command.Errorf(command.Invalid, "MAC, VSID: %v", err)
	}
	a.answerHosts()
	return nil
}

// expel takes a virtual function out of its virtual subnet, and the overlay away with the last one.
func (p *portLoop) expel(a *adapter) {
	if p.overlay.on != nil {
		p.overlay.on.RemoveTenant(overlay.Port(a.at))
		p.endOverlay()
	}
}

// startOverlay makes the overlay, whose provider addresses have a port of their own at the embedded switch.
func (p *portLoop) startOverlay() error {
	owner, n := p.functions[0], eswitch.MostVPorts-1
	for n >= 0 && p.embedded.Counters(eswitch.VPort(n)) != nil {
		n--
	}
	if n < 0 {
		return command.Errorf(command.Exhausted, "VSID: the port's switch has no port left for provider addresses")
	}
	o := &p.overlay
	o.at, o.mac, o.link = eswitch.VPort(n), providerMAC(owner.mac), owner.links.All()[0]
	f := eswitch.Function{MACs: []eth.MAC{o.mac}, VLAN: eswitch.AnyVLAN(), Link: eswitch.LinkUp,
		AllGroups: true} // neighbour solicitations are for groups (RFC 4291, 2.7.1)
	if err := p.embedded.Set(o.at, f); err != nil {
		return command.Errorf(command.Invalid, "VSID: the MAC of provider addresses: %v", err)
	}
	if err := o.link.Listen(o.mac); err != nil {
		p.embedded.Remove(o.at)
		return command.Errorf(command.Invalid, "VSID: the MAC of provider addresses: %v", err)
	}
	e := overlay.New(overlay.Config{MAC: o.mac, MTU: owner.links.MTU()})
	_ = e.SetTables(o.tables) // they were checked
	o.on = p.AttachOverlay(e, o.link.Wire, port.Station{MAC: o.mac, Kind: port.Ethernet, At: o.at})
	return nil
}

// endOverlay takes the overlay away if nobody is in a virtual subnet any more.
func (p *portLoop) endOverlay() {
	o := &p.overlay
	if slices.ContainsFunc(p.functions, func(a *adapter) bool { return a.at != eswitch.Wire && o.on.Has(overlay.Port(a.at)) }) {
		return
	}
	o.on.Detach()
	o.link.Unlisten(o.mac)
	p.embedded.Remove(o.at)
	o.on, o.link = nil, nil
}

// followOverlay adapts the overlay to the MTU of the wire.
func (p *portLoop) followOverlay() {
	if p.overlay.on != nil {
		p.overlay.on.SetMTU(p.functions[0].links.MTU())
	}
}

// providerMAC returns the MAC of provider addresses at the port of an adapter with a MAC: that with another second byte, which no virtual
// function that is not told its MAC has.
func providerMAC(mac eth.MAC) eth.MAC {
	mac[0], mac[1] = mac[0]&^1|2, mac[1]^0xff
	return mac
}
