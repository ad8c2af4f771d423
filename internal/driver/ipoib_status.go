package driver

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/ipoib/service"
)

// connection is a connection of an adapter: its own, or that of a virtual port or of a virtual function.
type connection struct {
	name, iname string
	system      string // its network interface; empty: none
	mac         string
	function    string             // whose it is; empty: the adapter's
	face        *service.Interface // nil: it does not run
}

// look returns the status of the interface of a connection if it is running.
func (c *connection) look() (s service.Status, runs bool) {
	if c.face == nil {
		return s, false
	}
	return c.face.Status(), true
}

// endpoints returns those of the interface of a connection, none if it is not running.
func (c *connection) endpoints() api.Endpoints {
	if c.face == nil {
		return endpoints(c.name, ipoib.Endpoints{})
	}
	return endpoints(c.name, c.face.Endpoints())
}

// connections returns the connections of an InfiniBand adapter, its own first; none for an Ethernet
// adapter.
func (d *Driver) connections(i int) []connection {
	if !d.infiniBand(i) {
		return nil
	}
	mac := d.ipoibMAC(i)
	list := []connection{{name: d.running[i].Name, mac: mac}}
	for _, v := range d.registry.VirtualPorts(d.running[i].known()) {
		list = append(list, connection{name: v.Name, iname: v.IName, mac: mac})
	}
	for n := range list {
		c := &list[n]
		c.system, c.face = d.ipoib.systemName(c.name), d.ipoib.find(uint32(i), c.name)
	}
	return list
}

// ipoibStatus returns the status of an adapter's IPoIB interfaces.
func (d *Driver) ipoibStatus(i int) []api.IPoIBStatus {
	var out []api.IPoIBStatus
	for _, c := range d.connections(i) {
		out = append(out, d.connectionStatus(i, &c))
	}
	return out
}

// connectionStatus returns the status of the IPoIB interface of a connection.
func (d *Driver) connectionStatus(i int, c *connection) api.IPoIBStatus {
	s, runs := c.look()
	x := api.IPoIBStatus{Connection: c.name, IName: c.iname, Interface: c.system, State: stateText(s.State, runs), MAC: c.mac,
		Counters: map[string]uint64{}}
	if !runs {
		return x
	}
	x.Connected, x.MTU, x.PKey, x.Address, x.MLID = s.State == ipoib.Up, s.MTU, uint16(s.PKey), s.Address.String(), uint16(s.MLID)
	x.Local, x.Multicast, x.Remote = s.Census.Local, s.Census.Multicast, s.Census.Remote
	words := d.interfaceWords(i, c.name, &s)
	x.Counters = words.Values()
	if !s.Broadcast.IsZero() {
		x.Broadcast = netip.AddrFrom16(s.Broadcast).String()
	}
	return x
}

// interfaceWords returns the counters of an interface.
func (d *Driver) interfaceWords(i int, name string, s *service.Status) collector.Interface {
	w := collector.Interface{Name: name, Made: s.Made, Counters: s.Counters, Census: s.Census}
	if p := d.portStatus(i); p != nil {
		w.Speed = p.Mbps * 1e6
	}
	return w
}

// interfaces returns the network interfaces of an adapter, IPoIB's and that of its Ethernet function, with their counters.
func (d *Driver) interfaces(i int, e *device.EthernetStatus) []collector.Interface {
	var out []collector.Interface
	if e != nil {
		out = append(out, d.ethernetWords(i, e))
	}
	for _, c := range append(d.connections(i), d.functionConnections(i)...) {
		if s, runs := c.look(); runs {
			out = append(out, d.interfaceWords(i, c.name, &s))
		}
	}
	return out
}

// ipoibMAC returns the MAC address of a port's interfaces, derived with GUIDMask (WinOF 5.50, 4.6.7);
// empty before the port has a GUID.
func (d *Driver) ipoibMAC(i int) string {
	p := d.portStatus(i)
	if p == nil || p.PortGUID == 0 {
		return ""
	}
	return d.macOf(i, p.PortGUID)
}

// macOf returns the MAC address of IPoIB interfaces at a GUID, by the keys of an adapter.
func (d *Driver) macOf(i int, guid uint64) string {
	d.settings.RLock()
	defer d.settings.RUnlock()
	m := ipoib.MAC(guid, uint8(d.running[i].value("GUIDMask")))
	return net.HardwareAddr(m[:]).String()
}

// stateText describes the state of a connection.
func stateText(s ipoib.State, runs bool) string {
	switch {
	case !runs:
		return "disconnected: the adapter is disabled"
	case s == ipoib.Up:
		return s.String()
	}
	return "disconnected: " + s.String()
}

// Endpoints implements api.IPoIBEndpoints. An Ethernet adapter has none.
func (d *Driver) Endpoints(name string) ([]api.Endpoints, error) {
	out := []api.Endpoints{}
	var names []string
	ethernet := false
	for i := range d.running {
		ethernet = ethernet || !d.infiniBand(i) && strings.EqualFold(name, d.running[i].Name)
		for _, c := range append(d.connections(i), d.functionConnections(i)...) {
			names = append(names, strconv.Quote(c.name))
			if name != "" && !strings.EqualFold(name, c.name) {
				continue
			}
			out = append(out, c.endpoints())
		}
	}
	if name != "" && len(out) == 0 && !ethernet {
		allowed := strings.Join(names, ", ")
		if names == nil {
			allowed = "an IPoIB interface; this driver has none"
		}
		return nil, api.Wrong("interface name", strconv.Quote(name), allowed)
	}
	return out, nil
}

func endpoints(name string, e ipoib.Endpoints) api.Endpoints {
	out := api.Endpoints{Connection: name, Local: []api.LocalEndpoint{}, Multicast: []api.MulticastEndpoint{},
		Remote: []api.RemoteEndpoint{}}
	for _, x := range e.Local {
		out.Local = append(out.Local, api.LocalEndpoint{Address: x.Addr, Configured: x.Configured, Age: x.Age})
	}
	for _, x := range e.Multicast {
		out.Multicast = append(out.Multicast, api.MulticastEndpoint{MGID: netip.AddrFrom16(x.MGID), MLID: uint16(x.MLID),
			SendOnly: x.SendOnly, State: x.State, QKey: x.QKey, MTU: x.MTU, SL: x.SL})
	}
	for _, x := range e.Remote {
		r := api.RemoteEndpoint{Address: x.Addr, LID: uint16(x.LID), State: x.State, Unused: x.Unused.Seconds(),
			GID: netip.AddrFrom16(x.Address.GID), QPN: uint32(x.Address.QPN)}
		if !x.Address.GID.IsZero() {
			r.Link = x.Address.String()
		}
		out.Remote = append(out.Remote, r)
	}
	return out
}

// find returns a running interface; nil: its adapter is disabled, or there is none of that name.
func (p *ipoibPorts) find(i uint32, name string) *service.Interface {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.ports[i]; x != nil {
		return x.list[name]
	}
	return nil
}

// look returns the status of an interface if it is running.
func (p *ipoibPorts) look(i uint32, name string) (s service.Status, runs bool) {
	f := p.find(i, name)
	if f == nil {
		return s, false
	}
	return f.Status(), true
}

// systemName returns the network interface of a connection, empty if there is none.
func (p *ipoibPorts) systemName(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.systems[name]; s != nil {
		return s.Name()
	}
	return ""
}
