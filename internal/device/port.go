package device

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/plug"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/wire/ib"
)

// maxOverhead is the most that an IP packet holds apart from the payload: IPv6 and UDP or GRH headers, BTH
// and AtomicETH or RETH and ImmDt, ICRC.
const maxOverhead = 40 + 8 + 12 + 28 + 4

// framing returns the format of the adapter's packets.
func (a *adapter) framing() plug.Framing {
	return plug.Framing{Mode: encap.Mode(a.cfg.RoCE), UDPPort: a.cfg.UDPPort, MAC: a.mac, InfiniBand: a.ib}
}

// open opens the port's links: the first address must work, the others should.
func (a *adapter) open(addrs []netip.Addr) (err error) {
	a.panel, err = plug.New(plug.Config{
		Framing: a.framing(), Addr: a.cfg.Addr, Given: a.cfg.Link, Now: a.host.now, Log: a.host.log.With("adapter", a.name),
		Sockets: udp.Config{SourcePorts: a.cfg.SourcePorts, ReceiveBuffer: a.cfg.ReceiveBuffer, Notify: a.host.Wake, Frames: a.cfg.Frames},
	})
	if err != nil {
		return err
	}
	if err := a.setMTU(a.panel.MTU()); err != nil {
		a.panel.Unplug()
		return err
	}
	a.setGIDs(a.serve(addrs))
	return nil
}

// serve makes the port serve these addresses and returns those that it does serve.
func (a *adapter) serve(want []netip.Addr) []netip.Addr {
	served, closed := a.panel.Serve(want)
	if closed {
		a.gsi.Forget()
	}
	a.rewired()
	return served
}

// unplug closes the links while the adapter is disabled. A link from the configuration stays open; what
// arrives on it is dropped.
func (a *adapter) unplug() {
	a.panel.Unplug()
	a.gsi.Unplug()
	a.sent, a.queued, a.keep.on = 0, 0, false
	a.rewired()
}

// plugAgain reopens the links.
func (a *adapter) plugAgain() error {
	if err := a.panel.PlugAgain(); err != nil {
		return err
	}
	a.rewired()
	return nil
}

// rewired tells the sleeper that the descriptors have changed.
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
		return command.Errorf(command.Invalid, "Link: an MTU of %d carries no payload of 256 bytes", ip)
	}
	a.mtu = uint32(m.Bytes())
	if want := a.cfg.RoceMaxFrameSize; want > a.mtu {
		return command.Errorf(command.Invalid, "RoceMaxFrameSize is %d, want at most %d with a link MTU of %d", want, a.mtu, ip)
	} else if want != 0 {
		a.mtu = want
	}
	return nil
}

// ipMTU returns the largest IP packet of a port whose link's MTU is link.
func (c *AdapterConfig) ipMTU(link int) int {
	if c.MTU == 0 {
		return link
	}
	return min(link, int(c.MTU))
}
