package driver

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/wire/mad"
)

// portType is the configured protocol of a port, numbered as PortType1 and PortType2 (WinOF 5.50,
// 4.1.1.2).
type portType uint64

const (
	portDefault    portType = 0 // sense, with the device's own type as fallback: Ethernet
	portInfiniBand portType = 1
	portEthernet   portType = 2
	portAuto       portType = 3
)

var portTypeNames = [...]string{portDefault: "HW defaults", portInfiniBand: "IB", portEthernet: "ETH", portAuto: "AUTO"}

func (t portType) String() string {
	if int(t) < len(portTypeNames) {
		return portTypeNames[t]
	}
	return fmt.Sprint(uint64(t))
}

// portTypeKey is the key of a port's protocol, without the port's number.
const portTypeKey = "PortType"

// sensingTime is how long to wait for the other end of a cable when sensing the protocol of its port.
const sensingTime = 500 * time.Millisecond

// errPortType says that an adapter does not start with its configured protocol.
var errPortType = errors.New("the port cannot have the protocol that it is set to")

// errSameGUID says that an adapter does not start because another device has its GUID.
var errSameGUID = errors.New("two devices have the same GUID")

// stays reports whether err keeps one adapter from starting, and not the others.
func stays(err error) bool { return errors.Is(err, errPortType) || errors.Is(err, errSameGUID) }

// portType returns the protocol of adapter i's port at its next start: that of the registry now, where it
// is stored for its device, or else that of mlxconfig or firmware.
func (d *Driver) portType(i int) portType {
	at, known := d.cfg.Slot(i), d.running[i].known()
	if s, has := d.registry.Setting(known, fmt.Sprint(portTypeKey, at.Port)); has && s.Stored {
		if n, ok := s.Number(); ok {
			return portType(n)
		}
	}
	switch d.registry.Effective(known)[fmt.Sprintf("LINK_TYPE_P%d", at.Port)] {
	case 1:
		return portInfiniBand
	case 2:
		return portEthernet
	}
	return portAuto
}

// settlePort sets the protocol of adapter i's port, which must be disabled or not created yet, according
// to its configuration and what its link allows. It reports whether the protocol has changed. The error
// wraps errPortType if the adapter does not start; the port then has the protocol that is possible.
func (d *Driver) settlePort(i int) (changed bool, err error) {
	a, r := &d.cfg.Adapters[i], d.running[i]
	want := d.portType(i)
	r.protocol = want
	can := map[portType]bool{portInfiniBand: a.Cable(), portEthernet: a.Ethernet()}
	var refused error
	if (want == portInfiniBand || want == portEthernet) && !can[want] {
		d.log.Warn("the port type is refused", "adapter", r.Name, "type", want, "link", a.Link)
		if r.Generation == catalogue.MLX5 {
			d.events.Raise(r.Generation, events.UnsupportedPortType{Adapter: r.Name, PortType: want.String()})
			refused = fmt.Errorf("%w: %v with a link of %q", errPortType, want, or(a.Link, config.LinkUDP))
		} else {
			at := d.cfg.Slot(i)
			d.events.Raise(r.Generation, events.PortTypeNotChanged{Device: at.Device, Port: uint32(at.Port), PortType: want.String()})
		}
		want = portAuto
	}
	was := r.cable() != nil
	switch {
	case !a.Cable() || want == portEthernet:
		if was {
			_ = r.cable().Close()
		}
		r.setCable(nil)
	case !was:
		cable, err := d.plugIn(i)
		if err == nil {
			r.setCable(cable)
			break
		}
		if a.Link == config.LinkCable || want == portInfiniBand {
			return false, err
		}
	}
	if cable := r.cable(); a.Link == config.LinkVPI && want != portInfiniBand && cable != nil && !d.senses(cable) {
		_ = cable.Close()
		r.setCable(nil)
	}
	d.keyPort(i)
	return was != (r.cable() != nil), refused
}

// keyPort gives adapter i the keys for its port's protocol.
func (d *Driver) keyPort(i int) {
	r := d.running[i]
	is := r.cable() != nil
	if r.infiniBand.Load() == is {
		return
	}
	if _, err := d.registry.SetInfiniBand(r.known(), is); err != nil {
		d.log.Warn("what the port is cannot be kept", "adapter", r.Name, "cause", err)
	}
	r.infiniBand.Store(is)
	d.take(i)
}

func or(s, none string) string {
	if s == "" {
		return none
	}
	return s
}

// senses reports whether there is an InfiniBand port at the other end of a cable.
func (d *Driver) senses(l cabled) bool {
	l.SetPlugged(true)
	for end := time.Now().Add(sensingTime); ; time.Sleep(time.Millisecond) {
		if l.Port().Physical == mad.PhysicalLinkUp {
			return true
		}
		if !time.Now().Before(end) {
			return false
		}
	}
}

// deviceConfig returns the device's configuration of adapter i.
func (d *Driver) deviceConfig(i int, k keys) device.AdapterConfig {
	a, r := &d.cfg.Adapters[i], d.running[i]
	cfg, at := d.plainConfig(a), d.cfg.Slot(i)
	cfg.UDPPort, cfg.Device, cfg.Port = k.UDPPort, at.Device, uint32(at.Port)
	wire := &d.cfg.Adapters[d.standsAt(i)]
	cfg.Speed, cfg.Limited = uint64(wire.Speed)*1e9, wire.LimitSpeed
	if r.Generation == catalogue.MLX4 {
		cfg.DeviceID = device.DeviceMLX4
	}
	cfg.Firmware = r.runs()
	if cable := r.cable(); cable != nil {
		cfg.Link, cfg.Addr, cfg.FollowInterface = cable, portAddress(a, cable), false
	}
	return cfg
}

// distinct ensures that no other device has the GUID of adapter i's (WinOF 5.50, 10: two HCAs burned with the same
// GUID), as when the nodes of a netlist are given to adapters of different devices.
func (d *Driver) distinct(i int) error {
	guid := d.nodeGUID(i)
	at := d.cfg.Slot(i)
	for j := range d.running {
		if guid == 0 || d.cfg.Slot(j).First == at.First || d.nodeGUID(j) != guid || !d.enabled(uint32(j)) {
			continue
		}
		r := d.running[i]
		d.events.Raise(r.Generation, events.SameGUID{Device: at.Device, GUID: fmt.Sprintf("%016x", guid)})
		return fmt.Errorf("%w: %016x is that of %q too", errSameGUID, guid, d.cfg.Slot(j).Device)
	}
	return nil
}

// nodeGUID returns the GUID of the node whose port adapter i is, or for an Ethernet port the one that was burned; 0: there is
// none, or it is not known yet.
func (d *Driver) nodeGUID(i int) uint64 {
	if r := d.running[i]; r.cable() == nil {
		return r.firmware.GUID
	}
	return d.running[i].cable().Port().NodeGUID
}

// legal ensures that no device has an Ethernet port with RoCE off beside an InfiniBand port (WinOF 5.50,
// 4.1.1.2). If both were configured, RoCE is switched on; if it is due to sensing, the adapter does not
// start.
func (d *Driver) legal(i int, k *keys) error {
	at := d.cfg.Slot(i)
	first, port, second := at.First, at.Port, -1
	for j := range d.running {
		if o := d.cfg.Slot(j); o.First == first && o.Port == 2 {
			second = j
		}
	}
	if second < 0 || d.infiniBand(first) || !d.infiniBand(second) {
		return nil
	}
	off := d.running[first].off.Load()
	if port == 1 {
		off = !k.rdma
	}
	if !off {
		return nil
	}
	r := d.running[first]
	cause := fmt.Errorf("%w: port 1 is Ethernet without RoCE, and port 2 InfiniBand", errPortType)
	tell := func(action string) {
		d.events.Raise(r.Generation, events.PortsContradict{Device: at.Device, Action: action})
	}
	if d.portType(first) != portEthernet || d.portType(second) != portInfiniBand {
		tell("port " + strconv.Itoa(port) + " does not start")
		return cause
	}
	tell("port 1 starts with RoCE v2")
	d.events.Raise(r.Generation, events.RoCEModeRefused{Adapter: r.Name, Mode: "none", Cause: cause, Used: "v2"})
	if port == 1 {
		k.rdma, k.RoCE = true, device.RoCEv2
		return nil
	}
	on := d.keys(first)
	on.rdma, on.RoCE = true, device.RoCEv2
	r.off.Store(false)
	return d.enable(first, on)
}
