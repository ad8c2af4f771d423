package driver

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/link/ethernet"
	"github.com/softvpi/softvpi/internal/link/tap"
)

// putOnWire makes adapter i a function at the port of whole frames that its configuration names: it opens the port's link,
// or puts the function beside that of the first adapter there. Whoever gets an error closes nothing.
func (d *Driver) putOnWire(i int, cfg *device.AdapterConfig) error {
	a := &d.cfg.Adapters[i]
	cfg.MAC, cfg.VLAN, cfg.Networks = a.StationMAC(), a.VLAN, []netip.Prefix{a.Network()}
	cfg.NoProbes = a.NoProbes
	if a.Gateway.IsValid() {
		cfg.Gateways = []netip.Addr{a.Gateway}
	}
	if first := uint32(d.standsAt(i)); first != uint32(i) {
		cfg.ShareWith = &first
		return nil
	}
	if _, carries := d.Roster.Of(i); carries || a.Link == config.LinkTeam {
		return d.Roster.PutOn(i, cfg)
	}
	l, err := d.openWire(a, cfg.UDPPort)
	if err != nil {
		return err // l may hold a nil pointer, which nobody could close
	}
	cfg.Link = l
	return nil
}

// openWire opens the link of whole frames of an adapter with this RoCE v2 port.
func (d *Driver) openWire(a *config.Adapter, udpPort uint16) (link.Link, error) {
	switch a.Link {
	case config.LinkInterface:
		return ethernet.Open(ethernet.Config{Interface: a.Interface, UDPPort: udpPort, ReceiveBuffer: a.ReceiveBuffer})
	case config.LinkTAP:
		return tap.Open(tap.Config{Name: a.Interface, MTU: a.LinkMTU, Up: true})
	case config.LinkSwitch:
		return d.openSwitch(a)
	case config.LinkFabric:
		return d.plugInEthernet(a)
	default:
		return datagram.Open(datagram.Config{Local: a.Datagram, Remote: a.Peer, MTU: a.LinkMTU, Notify: d.host.Wake})
	}
}

// wireName returns what packets of adapter i travel on. The caller holds changes.
func (d *Driver) wireName(i int) string {
	switch t, carries := d.Roster.Of(d.cfg.FirstOnWire(i)); {
	case t != nil && (carries || !d.Roster.Idle(i)):
		return "team " + t.Name
	case t != nil:
		return "none: team " + t.Name + " has it"
	case d.infiniBand(i):
		return "cable"
	}
	if a := &d.cfg.Adapters[i]; a.Link != config.LinkFabric {
		return a.WireName()
	}
	return "fabric " + d.cfg.Fabric.Connect
}
