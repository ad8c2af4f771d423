package device

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/links"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/wire/ib"
)

// maxOverhead is the most that an IP packet holds apart from the payload: IPv6 and UDP or GRH headers, BTH
// and AtomicETH or RETH and ImmDt, ICRC.
const maxOverhead = 40 + 8 + 12 + 28 + 4

// framing returns the format of the adapter's packets.
func (a *adapter) framing() links.Framing {
	return links.Framing{Mode: encap.Mode(a.cfg.RoCE), UDPPort: a.cfg.UDPPort, MAC: a.mac, VLAN: a.cfg.VLAN, InfiniBand: a.ib}
}

// open opens the port's links, or shares those of owner: the first address must work, the others should.
func (a *adapter) open(addrs []netip.Addr, owner *adapter) (err error) {
	var shared *links.Address
	if owner != nil && a.cfg.Link != nil {
		shared = owner.links.All()[0]
	}
	a.links, err = links.New(links.Config{
		Shared:  shared,
		Framing: a.framing(), Addr: a.cfg.Addr, Given: a.cfg.Link,
		Limit: a.cfg.limit(), Networks: a.cfg.Networks, Gateways: a.cfg.Gateways, Probe: !a.cfg.NoProbes,
		Now: a.host.now, Log: a.host.log.With("adapter", a.name),
		Sockets: udp.Config{SourcePorts: a.cfg.SourcePorts, ReceiveBuffer: a.cfg.ReceiveBuffer, Notify: a.host.Wake, Frames: a.cfg.Frames},
	})
	if err != nil {
		return err
	}
	if err := a.setMTU(a.links.MTU()); err != nil {
		a.links.Unplug()
		return err
	}
	a.setGIDs(a.serve(addrs))
	return nil
}

// serve makes the port serve these addresses and returns those that it does serve.
func (a *adapter) serve(want []netip.Addr) []netip.Addr {
	served, closed := a.links.Serve(want)
	if closed {
		a.function.GSI.Forget()
	}
	a.rewired()
	return served
}

// unplug closes the links while the adapter is disabled. A link from the configuration stays open; what
// arrives on it is dropped.
func (a *adapter) unplug() {
	a.links.Unplug()
	a.function.GSI.Unplug()
	a.switchStation(false)
	a.port.forget(a.station)
	a.rewired()
}

// plugAgain reopens the links.
func (a *adapter) plugAgain() error {
	if err := a.links.PlugAgain(); err != nil {
		return err
	}
	a.switchStation(true)
	if a.subnetLink() != nil { // records may have changed meanwhile
		a.setGIDs(a.serve(append([]netip.Addr{a.cfg.Addr}, a.customers()...)))
		a.answerHosts()
	}
	a.look()
	if a.ib == nil {
		a.followMTU(a.links.MTU())
	}
	a.rewired()
	return nil
}

// rewired tells the poll owner that the descriptors have changed.
func (a *adapter) rewired() {
	a.host.watched++
	a.host.sleep.wake()
}

// setMTU derives the port's largest payload from the link's MTU.
func (a *adapter) setMTU(of int) error {
	if a.ib != nil {
		m := a.ib.Settings().MTU
		if !m.Valid() { // nothing is connected
			m, _ = ib.MTUFor(max(of, ib.MTU256.Bytes()))
		}
		a.linkMTU, a.ipMTU, a.mtu = uint32(of), uint32(of), uint32(m.Bytes())
		return nil
	}
	ip := a.cfg.ipMTU(of)
	a.linkMTU, a.ipMTU = uint32(of), uint32(ip)
	m, ok := ib.MTUFor(ip - maxOverhead)
	if !ok {
		return errTooSmall(ip)
	}
	a.mtu = uint32(m.Bytes())
	if want := a.cfg.RoceMaxFrameSize; want > a.mtu {
		return command.Errorf(command.Invalid, "RoceMaxFrameSize is %d, want at most %d with a link MTU of %d", want, a.mtu, ip)
	} else if want != 0 {
		a.mtu = want
	}
	return nil
}

// errTooSmall reports an MTU of a link that carries no RoCE packet.
func errTooSmall(mtu int) error {
	return command.Errorf(command.Invalid, "Link: an MTU of %d carries no payload of 256 bytes", mtu)
}

// framesMTU returns the present MTU of a link of whole frames; ok is false if the port has another one. The caller holds the
// loop lock.
func (a *adapter) framesMTU() (mtu int, ok bool) {
	if a.ib != nil || a.cfg.Link == nil {
		return 0, false
	}
	return a.links.MTU(), true
}

// ipMTU returns the largest IP packet of a port whose link's MTU is link.
func (c *AdapterConfig) ipMTU(link int) int {
	if c.MTU == 0 {
		return link
	}
	return min(link, int(c.MTU))
}
