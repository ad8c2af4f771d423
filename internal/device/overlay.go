package device

import (
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/links"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

// overlaying is the overlay of a port's wire, which is there while virtual functions of the port are in virtual subnets.
type overlaying struct {
	tables overlay.Tables
	on     *port.Overlay // nil: there is none
	at     eswitch.Port  // of the provider addresses
	mac    eth.MAC       // likewise
	link   *links.Address
}

// OverlayStatus is the state of the overlay of an adapter's port.
type OverlayStatus struct {
	On       bool
	MAC      eth.MAC // of the provider addresses
	Counters overlay.Counters
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
	before := p.overlay.tables.Overhead()
	p.overlay.tables = t
	if p.overlay.on == nil {
		return nil
	}
	if err := p.overlay.on.SetTables(t); err != nil {
		return command.Errorf(command.Invalid, "%v", err)
	}
	if t.Overhead() == before {
		return nil
	}
	for _, o := range p.functions {
		if o.subnet() != 0 {
			o.nic.resize()
		}
	}
	return nil
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
	return OverlayStatus{true, o.mac, o.on.Counters()}
}

// subnet returns the virtual subnet of a virtual function; 0: it is in none.
func (a *adapter) subnet() uint32 {
	if !a.virtual() {
		return 0
	}
	return a.cfg.Virtual.VSID
}

// overhead returns by how much smaller an adapter's packets have to be than those of its wire.
func (a *adapter) overhead() int {
	if a.subnet() == 0 {
		return 0
	}
	return a.port.overlay.tables.Overhead()
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
	if err := p.embedded.Set(o.at, eswitch.Function{MACs: []eth.MAC{o.mac}, VLAN: eswitch.AnyVLAN(), Link: eswitch.LinkUp}); err != nil {
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
