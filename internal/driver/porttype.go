package driver

import (
	"errors"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/wire/mad"
)

// portType is the protocol that a port is to have, by the numbers of PortType1 and PortType2 (WinOF 5.50, 4.1.1.2).
type portType uint64

const (
	portDefault    portType = 0 // sense, and take the device's own where that fails: Ethernet
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

// sensingTime is how long a port waits for the other end of its cable when its protocol is sensed.
const sensingTime = 500 * time.Millisecond

// errPortType says that an adapter does not start with the protocol that it is to have.
var errPortType = errors.New("the port cannot have the protocol that it is set to")

// device is where adapter i's port is: the first adapter of its device, and which port of that it is.
func (d *Driver) device(i int) (first, port int) {
	name := d.cfg.Adapters[i].Device
	if name == "" {
		return i, 1
	}
	for first = range d.cfg.Adapters {
		if d.cfg.Adapters[first].Device == name {
			break
		}
	}
	if first == i {
		return first, 1
	}
	return first, 2
}

// portType is what adapter i's port is to be at its next start: what the registry says now, which stands at its device, or else
// mlxconfig.
func (d *Driver) portType(i int) portType {
	first, port := d.device(i)
	known, name := d.running[first].known(), fmt.Sprint(portTypeKey, port)
	for _, s := range d.registry.Settings(known) {
		if n, ok := s.Number(); s.Key.Name == name && ok && s.Stored && !s.Auto {
			return portType(n)
		}
	}
	switch d.registry.Configuration(known)[fmt.Sprintf("LINK_TYPE_P%d", port)] {
	case 1:
		return portInfiniBand
	case 2:
		return portEthernet
	}
	return portAuto
}

// settlePort makes the port of adapter i, which is disabled or not made yet, InfiniBand's or Ethernet's: as it is set to and as what it
// is plugged into allows. It tells whether that is another than before. The error wraps errPortType where the adapter does not start: then the
// port is what it can be.
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
			d.events.Raise(r.Generation, events.PortTypeNotChanged{Device: r.Name, PortType: want.String()})
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

// keyPort gives adapter i the keys of what its port is.
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

// senses tells whether there is an InfiniBand port at the other end of a cable.
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

// deviceConfig is what the device is told of adapter i.
func (d *Driver) deviceConfig(i int, k keys) device.AdapterConfig {
	a, r := &d.cfg.Adapters[i], d.running[i]
	cfg := d.plainConfig(a)
	cfg.UDPPort = k.UDPPort
	if cable := r.cable(); cable != nil {
		cfg.Link, cfg.Addr, cfg.FollowInterface = cable, portAddress(a, cable), false
	}
	return cfg
}

// legal makes sure that no device has an Ethernet port whose RoCE is off beside an InfiniBand port (WinOF 5.50, 4.1.1.2). Where somebody
// has set both, RoCE is switched on; where sensing made it so, the adapter does not start.
func (d *Driver) legal(i int, k *keys) error {
	first, port := d.device(i)
	second := -1
	for j := range d.running {
		if f, n := d.device(j); f == first && n == 2 {
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
	if d.portType(first) != portEthernet || d.portType(second) != portInfiniBand {
		return cause
	}
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
