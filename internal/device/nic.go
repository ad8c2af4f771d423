package device

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/internal/hostside"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

// mostJumbo is the largest *JumboPacket.
const mostJumbo = 9614

// EthernetConfig describes the Ethernet function of an adapter, which is beside its RDMA function at the port and has its MAC:
// RoCE is for the one, everything else for the other.
type EthernetConfig struct {
	// Host is who uses it. The adapter closes it, unless it is Kept: then its owner does, who may give it to another adapter first.
	Host hostside.End
	Kept bool
	// Config is how it works, as far as keys say; its MAC is the adapter's, and *JumboPacket at most what the link carries: with
	// 0 as much as that. Machine are the machine's processors.
	Config ethernet.Config
	// Raised takes its events; it is called with the loop lock held, and must neither block nor call into the Host.
	Raised func(ethernet.Event)
}

// nic is an adapter's Ethernet function with its host. It is driven by the loop of its port.
type nic struct {
	a       *adapter
	side    *hostside.Side
	cfg     ethernet.Config // to start with
	f       *ethernet.Function
	station *port.Station // nil: it does not work
	kept    bool
	joined  []eth.MAC // groups that the embedded switch knows to be for its host, of a virtual function
	before  ethernetTotals
}

// newNIC gives an adapter an Ethernet function, which does not work yet.
func newNIC(a *adapter, c *EthernetConfig) *nic {
	n := &nic{a: a, side: hostside.New(c.Host, c.Raised, a.host.Wake), cfg: c.Config, kept: c.Kept}
	a.port.nics = append(a.port.nics, n)
	return n
}

// dismiss takes an adapter from the port, whose Ethernet function, if there is one, does not work.
func (p *portLoop) dismiss(a *adapter) {
	p.Detach(a.station)
	p.discharge(a)
	p.reserve(a)
	p.functions = slices.DeleteFunc(p.functions, func(o *adapter) bool { return o == a })
	p.nics = slices.DeleteFunc(p.nics, func(n *nic) bool { return n == a.nic })
	p.relist()
}

// on reports whether it works.
func (n *nic) on() bool { return n != nil && n.station != nil }

// start makes the function work: it is at the port, and its host's link is up. Errors are *command.Error.
func (n *nic) start() error {
	if n == nil || n.on() {
		return nil
	}
	a, cfg := n.a, n.cfg
	cfg.MAC, cfg.Host, cfg.JumboPacket = a.mac, n.side.Abilities(), n.jumbo()
	f, err := ethernet.New(cfg, n.side)
	if err != nil {
		return command.Errorf(command.Invalid, "Ethernet: %v", err)
	}
	f.Filter().SetMode(filter.Usual | filter.AllMulticast) // its host filters groups itself
	if err := n.side.Attach(f); err != nil {
		n.side.Detach()
		return command.Errorf(command.Unsupported, "Ethernet: %v", err)
	}
	address := a.links.All()[0]
	if err := address.Listen(a.mac); err != nil {
		n.side.Detach()
		return command.Errorf(command.Invalid, "Ethernet: %v", err)
	}
	n.f = f
	n.station = a.port.Attach(f, port.Station{MAC: a.mac, Kind: port.Ethernet, UDPPort: a.cfg.UDPPort, At: a.at, Tag: a.tag(),
		Carried: &a.carried.other})
	n.station.Plug(address.Wire, netip.Addr{}, nil)
	n.station.Join(a.purse())
	f.SetWire(n.station)
	f.SetMarking(a.port.marking)
	a.cut()
	n.regroup()
	n.carrier()
	a.rewired()
	a.host.place()
	return nil
}

// carrier tells the host whether the function has a wire.
func (n *nic) carrier() {
	if n.on() {
		n.side.SetCarrier(n.a.wire.Up)
	}
}

// jumbo returns the length of the largest frame: what the keys say, but no more than the link carries.
func (n *nic) jumbo() int {
	most := min(n.a.links.MTU()+eth.EthernetLen, mostJumbo)
	if want := n.cfg.JumboPacket; want != 0 {
		return min(want, most)
	}
	return most
}

// resize adapts the function and its host to another MTU of the link.
func (n *nic) resize() {
	if !n.on() {
		return
	}
	if err := n.follow(n.f.Config()); err != nil {
		n.a.host.log.Warn("the Ethernet function does not follow the MTU", "adapter", n.a.name, "cause", err)
	}
}

// follow changes the function that works, and adapts its host.
func (n *nic) follow(cfg ethernet.Config) error {
	cfg.MAC, cfg.Host, cfg.JumboPacket = n.a.mac, n.side.Abilities(), n.jumbo()
	if err := n.f.Change(cfg); err != nil {
		return command.Errorf(command.Invalid, "Ethernet: %v", err)
	}
	if err := n.side.Follow(); err != nil {
		return command.Errorf(command.Unsupported, "Ethernet: %v", err)
	}
	return nil
}

// stop takes the function from the port, and its host's link down.
func (n *nic) stop() {
	if !n.on() {
		return
	}
	n.leave()
	n.side.Detach()
	n.a.rewired()
	n.a.host.place()
}

// leave takes the function from the port.
func (n *nic) leave() {
	a := n.a
	n.before.add(n.f)
	a.port.forget(n.station)
	a.port.Detach(n.station)
	a.links.All()[0].Unlisten(n.f.MAC())
	n.f.End()
	n.station = nil
}

// renew puts another function in the place of the one that works, with another configuration. The host's link stays up; frames that wait
// in rings are lost. If it cannot be, the function is as it was, and the error says why.
func (n *nic) renew(cfg ethernet.Config) error {
	if !n.on() {
		n.cfg = cfg
		return nil
	}
	before := n.cfg
	n.leave()
	n.cfg = cfg
	err := n.start()
	if err != nil {
		n.cfg = before
		err = errors.Join(err, n.start())
	}
	n.a.rewired()
	return err
}

// close gives the host its end back.
func (n *nic) close() error {
	if n == nil {
		return nil
	}
	if n.on() {
		n.f.End()
		n.station = nil
		n.side.Detach()
	}
	if n.kept {
		return nil
	}
	return n.side.End().Close()
}

// regroup tells the embedded switch which groups' frames are for the host of a virtual function, if they have changed. Others get those
// of all groups there.
func (n *nic) regroup() {
	if !n.a.virtual() || !n.on() {
		return
	}
	if now := n.f.Filter().Groups(); !slices.Equal(now, n.joined) {
		n.joined = slices.Clone(now)
		n.a.subscribe()
	}
}

// nicsOn reports whether any Ethernet function of the port works.
func (p *portLoop) nicsOn() bool {
	for _, n := range p.nics {
		if n.on() {
			return true
		}
	}
	return false
}

// SetEthernet makes the Ethernet function of an adapter work, whether its RDMA function does or not, or takes it away. An
// adapter without one has nothing to do. Errors are *command.Error.
func (h *Host) SetEthernet(index uint32, on bool) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	was := a.linked()
	if on {
		a.look()
		err = a.nic.start()
	} else {
		a.nic.stop()
	}
	a.port.followAgent()
	a.port.followFlow()
	if a.moved(was); err == nil && on && !a.linked() && !a.enabled && a.nic != nil {
		a.report(notify.Down)
	}
	return err
}

// ConfigureEthernet changes how the Ethernet function of an adapter works when it works again. Errors are *command.Error: Busy
// while it does.
func (h *Host) ConfigureEthernet(index uint32, cfg ethernet.Config) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil || a.nic == nil {
		return err
	}
	if a.nic.on() {
		return command.Errorf(command.Busy, "adapter %q is enabled; its Ethernet function changes while it is disabled", a.name)
	}
	a.nic.cfg = cfg
	return nil
}

// RenewEthernet has the Ethernet function of an adapter begin anew with another configuration, queues and processors included, while its
// host's link stays up; one that does not work has it when it does. Errors are *command.Error.
func (h *Host) RenewEthernet(index uint32, cfg ethernet.Config) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil || a.nic == nil {
		return err
	}
	return a.nic.renew(cfg)
}

// ChangeEthernet changes how the Ethernet function of an adapter works while it does, and its host with it; one that does not
// work has it when it does again. Errors are *command.Error: Invalid for what is only read at its start, which changes nothing;
// Unsupported if the host's end does not follow.
func (h *Host) ChangeEthernet(index uint32, cfg ethernet.Config) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil || a.nic == nil {
		return err
	}
	if a.nic.on() {
		err = a.nic.follow(cfg)
	}
	if err == nil {
		a.nic.cfg = cfg
	}
	return err
}
