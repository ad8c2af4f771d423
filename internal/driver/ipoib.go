package driver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tun"
	"github.com/softvpi/softvpi/wire/ib"
)

// ipoibPorts are the IPoIB interfaces of the adapters with InfiniBand ports. They run while their adapter
// is enabled.
type ipoibPorts struct {
	d     *Driver
	tasks sync.WaitGroup

	mu sync.Mutex
	// network interfaces of the system, by the name of the connection; they remain while an adapter is disabled
	systems map[string]*service.Front
	want    map[uint32]bool // whether ports should run
	over    map[uint32]bool // ports whose adapter has been disabled since they began, and that must be restarted
	ports   map[uint32]*ipoibPort
	teams   map[string]*runningTeam // of adapters' own interfaces, by their GUIDs
	busy    bool                    // somebody is adjusting ports to want
	closed  bool
}

// ipoibPort is a running port.
type ipoibPort struct {
	device *service.Device
	port   *service.Port
	list   map[string]*service.Interface // by the name of the connection; that of the adapter itself is the adapter's name
}

// open creates the system's network interface for a connection if one is configured.
func (p *ipoibPorts) open(connection, name string) error {
	if name == "" {
		return nil
	}
	device, err := tun.Open(name)
	if err != nil {
		return err
	}
	s, err := service.NewFront(device)
	if err != nil {
		return errors.Join(err, device.Close())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.systems == nil {
		p.systems = map[string]*service.Front{}
	}
	p.systems[connection] = s
	return nil
}

// set says whether the interfaces of adapter i should run. It does not block: it is called from the
// adapter's loop when its state changes.
func (p *ipoibPorts) set(i uint32, run bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if p.want == nil {
		p.want, p.over, p.ports = map[uint32]bool{}, map[uint32]bool{}, map[uint32]*ipoibPort{}
	}
	p.want[i] = run
	p.over[i] = p.over[i] || !run
	p.begin()
}

// end stops the interfaces of adapter i, which is about to be disabled, so that they leave their groups while there is a port, and reports
// whether they ran. They run again when they are set to.
func (p *ipoibPorts) end(i uint32) (ran bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ran = p.want[i]; ran {
		p.want[i] = false
	}
	if p.ports[i] != nil {
		p.stop(i)
	}
	return ran
}

// settle starts and stops ports until all are in the desired state.
func (p *ipoibPorts) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		i, run, ok := p.next()
		if !ok {
			p.busy = false
			return
		}
		if !run {
			p.stop(i)
			continue
		}
		port, err := p.start(i)
		if err != nil {
			p.d.log.Warn("IPoIB does not run", "adapter", p.d.running[i].Name, "cause", err)
			delete(p.want, i) // until it is enabled again
			continue
		}
		p.ports[i] = port
	}
}

// next returns an adapter whose port is not in the desired state.
func (p *ipoibPorts) next() (i uint32, run, ok bool) {
	for i, run := range p.want {
		runs := p.ports[i] != nil
		switch {
		case runs && (p.over[i] || !run):
			return i, false, true
		case !runs && run && !p.closed:
			p.over[i] = false
			return i, true, true
		}
	}
	return 0, false, false
}

// start runs the interfaces of an adapter: its own, and its virtual ports.
func (p *ipoibPorts) start(i uint32) (*ipoibPort, error) {
	r := p.d.running[i]
	cfg := p.config(i)
	if err := p.d.host.SetSARepetition(i, cfg.SATimeout, cfg.SARetries); err != nil {
		return nil, err
	}
	device, port, err := service.NewDevice(p.d.host, i, r.Name, r.cable(), rand.Uint64)
	if err != nil {
		return nil, err
	}
	x := &ipoibPort{device: device, port: port, list: map[string]*service.Interface{}}
	if t, m := p.teamOf(i); t != nil {
		err = p.join(i, x, t, m)
	} else if p.lent(int(i)) {
		err = p.run(i, x, r.Name, 0, nil)
	} else {
		err = p.run(i, x, r.Name, 0, p.own(int(i)))
	}
	if err != nil {
		x.close()
		return nil, err
	}
	if err := p.d.host.SetResolver(i, x.list[r.Name]); err != nil {
		x.close()
		return nil, err
	}
	if s := p.alone(i); s != nil {
		if err := p.d.host.SetInterface(i, locate(s.Device)); err != nil {
			x.close()
			return nil, err
		}
	}
	if err := p.d.host.SetLinkAddresses(i, func() []command.LinkAddress { return p.links(i) }); err != nil {
		x.close()
		return nil, err
	}
	for _, v := range p.d.registry.VirtualPorts(r.known()) {
		if err := p.run(i, x, v.Name, ib.PKey(v.PKey), nil); err != nil {
			p.d.log.Warn("a virtual IPoIB port does not run", "port", v.Name, "cause", err)
		}
	}
	return x, nil
}

// run starts one interface.
func (p *ipoibPorts) run(i uint32, x *ipoibPort, connection string, key ib.PKey, own []netip.Prefix) error {
	cfg := p.config(i)
	cfg.PKey = key
	s := p.systems[connection]
	if connection == p.d.running[i].Name {
		s = p.alone(i)
	}
	var system service.System // avoids an interface holding a nil *tun.Device
	if s != nil {
		system = s.Device
		if err := s.SetOffloads(p.offloads(i)); err != nil {
			p.d.log.Warn("the system does without offloads", "connection", connection, "cause", err)
		}
	}
	f, err := x.port.Add(cfg, system, p.teller(i, connection))
	if err != nil {
		return err
	}
	x.list[connection] = f
	if s == nil {
		f.Set(own, nil)
		return nil
	}
	s.Stand(f, own, func(all []netip.Prefix) {
		if connection == p.d.running[i].Name {
			p.addressed(i, all)
		}
	})
	return nil
}

// addressed makes the addresses of the interface those of the port for programs. Link-local ones are left
// to the GIDs.
func (p *ipoibPorts) addressed(i uint32, all []netip.Prefix) {
	var ips []netip.Addr
	for _, x := range all {
		if a := x.Addr(); !a.IsLinkLocalUnicast() && !slices.Contains(ips, a) {
			ips = append(ips, a)
		}
	}
	if err := p.d.host.SetAddresses(i, ips); err != nil {
		p.d.log.Warn("programs cannot call the port by its addresses", "adapter", p.d.running[i].Name, "cause", err)
	}
}

// config returns the configuration of an adapter's interfaces from its registry keys.
func (p *ipoibPorts) config(i uint32) service.Config {
	p.d.settings.RLock()
	defer p.d.settings.RUnlock()
	r := p.d.running[i]
	return service.Config{
		Config: ipoib.Config{
			MTU:       int(r.value("*JumboPacket")),
			SATimeout: time.Duration(r.value("SaTimeout")) * time.Millisecond, SARetries: int(r.value("SaRetries")),
			QueryPaths:        r.value("EnableQPR") != 0,
			GeneralQueryRuns:  int(r.value("McastIgmpMldGeneralQueryInterval")),
			QueryResponseRuns: int(r.value("McastQueryResponseInterval")),
			LocalMaxAge:       int(r.value("LocalEndpointMaxAge")),
			LocalInterval:     time.Duration(r.value("LocalEndpointMonitorInterval")) * time.Millisecond,
			MaxGroups:         int(r.value("MaxNumOfMCList")),
		},
		Buffers:    service.Buffers{Send: int(r.value("*TransmitBuffers")), Receive: int(r.value("*ReceiveBuffers"))},
		Unchecked4: r.value("*TCPUDPChecksumOffloadIPv4")&receives == 0, Unchecked6: r.value("*TCPUDPChecksumOffloadIPv6")&receives == 0,
	}
}

// Bits of the keys of checksum offloads (WinOF 5.50, 4.6.4).
const (
	sends    = 1
	receives = 2
)

// offloads returns what the system may leave to the interfaces of an adapter. Linux has a single switch
// for the checksums of both IP versions, and large sends require them.
func (p *ipoibPorts) offloads(i uint32) tun.Offloads {
	p.d.settings.RLock()
	defer p.d.settings.RUnlock()
	r := p.d.running[i]
	size := int(r.value("LSOSize"))
	large := size >= int(r.value("*JumboPacket"))+1024 // WinOF 5.50, 4.6.4: "if LSOSize is smaller than MTU+1024, LSO will be disabled"
	return tun.Offloads{
		Checksum:  r.value("*TCPUDPChecksumOffloadIPv4")&r.value("*TCPUDPChecksumOffloadIPv6")&sends != 0,
		Large4:    large && r.value("*LsoV1IPv4")|r.value("*LsoV2IPv4") != 0,
		Large6:    large && r.value("*LsoV2IPv6") != 0,
		LargeSize: size,
	}
}

// teller returns who is told of an interface's events.
func (p *ipoibPorts) teller(i uint32, connection string) func(ipoib.Event) {
	return func(e ipoib.Event) { p.tell(i, connection, e) }
}

// tell logs an interface's event. It is called with the interface's lock held.
func (p *ipoibPorts) tell(i uint32, connection string, e ipoib.Event) {
	log := p.d.log.With("connection", connection)
	switch e.Kind {
	case ipoib.Connected:
		log.Info("IPoIB is connected", "mtu", e.MTU)
	case ipoib.Disconnected:
		log.Info("IPoIB is disconnected", "cause", e.Text)
	case ipoib.MTUAboveSubnet:
		p.d.events.Raise(p.d.running[i].Generation, events.MTUAboveSubnet{Adapter: connection, MTU: e.MTU, SubnetMTU: e.SubnetMTU})
	case ipoib.UnknownProtocol:
		p.d.events.Raise(p.d.running[i].Generation, events.UnknownProtocol{Adapter: connection, Protocol: events.Hex(e.Protocol)})
	default:
		log.Warn("IPoIB", "problem", e.Text)
	}
}

// stop ends the interfaces of an adapter.
func (p *ipoibPorts) stop(i uint32) {
	if _, m := p.teamOf(i); m != nil {
		m.SetDisabled(!p.want[i])
		m.Leave()
	}
	if x := p.ports[i]; x != nil {
		_ = p.d.host.SetResolver(i, nil)
		x.close()
		delete(p.ports, i)
	}
}

func (x *ipoibPort) close() {
	_ = x.port.Close()
	_ = x.device.Close()
}

// close ends all interfaces.
func (p *ipoibPorts) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.tasks.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.ports {
		p.stop(i)
	}
	for _, t := range p.teams {
		t.Close()
	}
	for _, s := range p.systems {
		_ = s.Close()
	}
}

// add starts a virtual port that was added to the registry.
func (p *ipoibPorts) add(i uint32, v registry.VirtualPort) error {
	if err := p.open(v.Name, p.virtualName(i, v)); err != nil {
		return fmt.Errorf("virtual port %q: %w", v.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.ports[i]
	if x == nil {
		return nil // it will start with its adapter
	}
	if err := p.run(i, x, v.Name, ib.PKey(v.PKey), nil); err != nil {
		p.forget(x, v.Name)
		return fmt.Errorf("virtual port %q: %w", v.Name, err)
	}
	return nil
}

// virtualName returns the name of a virtual port's network interface: its iname if its adapter's port has
// an interface.
func (p *ipoibPorts) virtualName(i uint32, v registry.VirtualPort) string {
	if p.d.cfg.Adapters[i].Interface == "" {
		return ""
	}
	return v.IName
}

// remove ends a virtual port.
func (p *ipoibPorts) remove(i uint32, connection string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(p.ports[i], connection)
}

func (p *ipoibPorts) forget(x *ipoibPort, connection string) {
	if x != nil && x.list[connection] != nil {
		x.list[connection].Close()
		delete(x.list, connection)
	}
	if s := p.systems[connection]; s != nil {
		_ = s.Close()
		delete(p.systems, connection)
	}
}

// openSystems creates the system's network interfaces for an adapter and its virtual ports. The adapter's
// own is explicitly configured, so its failure is an error.
func (p *ipoibPorts) openSystems(i uint32) error {
	a := &p.d.cfg.Adapters[i]
	if err := p.open(a.Name, a.Interface); err != nil {
		if errors.Is(err, tun.ErrUnsupported) {
			return api.Wrong("interface", fmt.Sprintf("%q", a.Interface), "nothing on this system: "+err.Error())
		}
		return err
	}
	for _, v := range p.d.registry.VirtualPorts(p.d.running[i].known()) {
		if err := p.open(v.Name, p.virtualName(i, v)); err != nil {
			p.d.log.Warn("a virtual IPoIB port has no network interface", "port", v.Name, "cause", err)
		}
	}
	return nil
}
