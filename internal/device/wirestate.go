package device

import (
	"cmp"
	"net"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/ethtool"
	"github.com/softvpi/softvpi/internal/link/udp"
)

// defaultSpeed is that of a wire of whole frames that has none of its own, in bit/s: what Linux says of a TAP or veth, and
// the default of *SpeedDuplex.
const defaultSpeed = 10e9

// limit returns what the wire is slowed down to, in bit/s; 0: it is not.
func (c *AdapterConfig) limit() uint64 {
	if c.Limited {
		return c.Speed
	}
	return 0
}

// up reports whether the port passes RDMA packets.
func (a *adapter) up() bool { return a.enabled && a.present && a.wire.Up }

// linked reports whether any function of the adapter has a wire.
func (a *adapter) linked() bool { return (a.enabled || a.nic.on()) && a.present && a.wire.Up }

// speed returns that of the port's wire in bit/s, whether it is up or not; 0: it is not known.
func (a *adapter) speed() uint64 {
	s := cmp.Or(a.cfg.Speed, a.wire.Speed)
	if s == 0 && a.links.Raw() && a.ib == nil {
		s = defaultSpeed
	}
	if r := a.links.Impairment().Rate; r != 0 && (s == 0 || r < s) {
		return r
	}
	return s
}

// Speed returns that of the wire of an adapter's port in bit/s, whether it is up or not; 0: it is not known.
func (h *Host) Speed(index uint32) uint64 {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return 0
	}
	return a.speed()
}

// wireStatus returns the state of the port's wire with what the configuration says about it.
func (a *adapter) wireStatus() link.State {
	return link.State{Up: a.present && a.wire.Up, Speed: a.speed(), HalfDuplex: a.wire.HalfDuplex && a.cfg.Speed == 0}
}

// look notes the present state of the port's wire, as far as its link knows it.
func (a *adapter) look() {
	if s, ok := a.links.WireState(); ok {
		a.wire = s
	}
	a.wire = a.policed(a.wire)
	a.cut()
}

// carries reports whether the port would pass RDMA packets if it were enabled.
func (a *adapter) carries() bool {
	if a.ib != nil {
		return a.ib.Active()
	}
	return a.present && a.wire.Up
}

// lit returns an error if no packet leaves by the port: a connection would only be found unreachable after all its retries. What
// an InfiniBand port reaches its subnet manager knows.
func (a *adapter) lit() error {
	if a.ib != nil || a.carries() {
		return nil
	}
	a.port.lightDue = 0
	a.port.relight(a.host.now()) // it may have come back this moment
	if !a.carries() {
		return command.Errorf(command.NetworkUnreachable, "the port of adapter %q is down", a.name)
	}
	return nil
}

// cut makes the functions' stations follow the state of the port: one that is down carries nothing, not even from one function
// to another. An InfiniBand port's link sees to that itself.
func (a *adapter) cut() {
	if a.ib != nil {
		if a.station != nil {
			a.station.Cut(a.switchedDown())
		}
		return
	}
	if a.station != nil {
		a.station.Cut(!a.carries())
	}
	if a.raw.station != nil {
		a.raw.station.Cut(!a.carries())
	}
	if a.nic.on() {
		a.nic.station.Cut(!a.wire.Up)
	}
	if p := a.port; p != nil {
		p.dark = slices.ContainsFunc(p.functions, func(a *adapter) bool { return a.ib == nil && !a.carries() && !a.switchedDown() })
	}
}

// followWire adapts the port to the present state of its wire, and to its MTU.
func (a *adapter) followWire() {
	s, ok := a.links.WireState()
	if !ok { // it does not know of any other state
		s = a.wire
		s.Up = s.Up || a.virtual()
	}
	if ok || a.virtual() {
		a.setWire(a.policed(s))
	}
	if mtu, ok := a.framesMTU(); ok && a.enabled {
		a.followMTU(mtu)
	}
}

// setWire notes a state of the port's wire, and tells of its coming and going.
func (a *adapter) setWire(s link.State) {
	if s == a.wire {
		return
	}
	was := a.linked()
	a.wire = s
	a.rewired() // a link whose interface has gone has other descriptors
	a.followSpeed()
	a.nic.carrier()
	a.agentCarrier()
	a.port.followFlow()
	a.moved(was)
	a.reroute()
}

// moved makes the port carry what its new state allows, and tells programs and subscribers that it has come up or gone down, if it
// has; was says what it was before.
func (a *adapter) moved(was bool) {
	a.cut()
	switch now := a.linked(); {
	case now == was:
	case now:
		a.broadcast(command.EventPortActive)
		a.report(notify.Up)
	default:
		a.linkDowns++
		a.broadcast(command.EventPortDown)
		a.report(notify.Down)
	}
}

// started returns what subscribers are told of an adapter that begins to work.
func (a *adapter) started() notify.Flags {
	if a.ib != nil || a.linked() { // InfiniBand's link comes later, with an event of its own
		return notify.RDMAEnabled | notify.Up
	}
	return notify.RDMAEnabled | notify.Down
}

// stopping returns what subscribers are told of an adapter that ends to work: a link that is down already does not go down again.
func (a *adapter) stopping() notify.Flags {
	if a.ib != nil || a.linked() {
		return notify.RDMADisabled | notify.Down
	}
	return notify.RDMADisabled
}

// systemWire is what the interface of a port of sockets is like.
type systemWire struct {
	link.State
	mtu  int
	gone bool // no interface has the address
}

// follows reports whether a port of sockets begins with the state of its interface: one that is down would stay so if nobody looked
// again.
func (a *adapter) follows(w systemWire) bool {
	return w.Up || a.host.cfg.GIDInterval > 0 && a.cfg.namespace == a.host.namespace
}

// ownNamespace tells the network namespace of the host's own goroutines. The calling one's thread may have gone to another.
func ownNamespace() <-chan uint64 {
	c := make(chan uint64, 1)
	go func() { c <- gid.Namespace() }()
	return c
}

// visible reports whether the calling thread sees the port's interface. A program may add an adapter from a thread that is in a
// network namespace of its own: the host's threads see interfaces of another one, which say nothing about this port.
func (c *AdapterConfig) visible() bool { return c.namespace == gid.Namespace() }

// begins makes the wire of a new port of sockets what the system says of its interface.
func (a *adapter) begins(w systemWire) {
	if a.held = !w.gone; a.held && a.follows(w) {
		a.wire = w.State
		a.cut()
	}
}

// heed adapts a port of sockets to what the system says of its interface. An address that an interface has had and none has any more
// is a port that is down: IPv6's vanish with their interface's link. One that no interface has ever had is a route's (AnyIP).
func (a *adapter) heed(w systemWire) {
	if a.held = a.held || !w.gone; !a.held {
		return
	}
	vanished := w.gone && !a.gone
	if a.gone = w.gone; w.gone {
		w.State = a.wire
		w.Up = false
	}
	if !a.enabled {
		a.wire = w.State
		a.cut()
		return
	}
	a.setWire(w.State)
	switch {
	case vanished:
		a.report(notify.Unknown)
	case !w.gone:
		a.followMTU(w.mtu)
	}
}

// interfaceWire returns the present state of the interface with an address. ok is false if the port has no sockets, or the system
// does not say to this thread.
func (c *AdapterConfig) interfaceWire() (w systemWire, ok bool) {
	if c.Link != nil || c.ShareWith != nil || !c.visible() {
		return w, false
	}
	i, ok, err := udp.FindInterface(c.Addr)
	if !ok {
		w.gone = true
		return w, err == nil
	}
	w.mtu, w.Up = i.MTU, i.Flags&net.FlagRunning != 0
	w.Speed, w.HalfDuplex = ethtool.Interface(i.Name)
	return w, true
}
