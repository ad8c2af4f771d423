package driver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/hostside"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/tun"
)

// A virtual function of an InfiniBand port with tap= has an IPoIB interface (WinOF-2 24.4, Configuring IPoIB in SR-IOV), a network
// interface in whichever namespace. It works by the keys of the adapter. The network interface stays while the function is another one
// for its programs and while the adapter restarts, so that whoever has it keeps it.

// startFunctionIPoIB starts the IPoIB interface of a virtual function, if it is to have one. The caller holds changes.
func (d *Driver) startFunctionIPoIB(f *virtualFunction) error {
	p := f.host
	if !d.infiniBand(int(f.cfg.Owner)) || p.tap() == "" {
		return nil
	}
	if _, err := d.find(f.cfg.Name); err == nil {
		return api.Wrong("name", strconv.Quote(f.cfg.Name), "one that no adapter has: connections have names of their own, and that of its IPoIB is this one")
	}
	front, err := d.functionFront(f, p)
	if err != nil {
		return err
	}
	device, port, err := service.NewFunctionDevice(d.host, f.index, f.cfg.Name, rand.Uint64)
	if err != nil {
		return err
	}
	x := &ipoibPort{device: device, port: port, list: map[string]*service.Interface{}}
	if err := front.SetOffloads(d.ipoib.offloads(f.cfg.Owner)); err != nil {
		d.log.Warn("the system does without offloads", "function", f.cfg.Name, "cause", err)
	}
	face, err := port.Add(d.ipoib.config(f.cfg.Owner), front.Device, d.ipoib.teller(f.cfg.Owner, f.cfg.Name))
	if err == nil {
		err = errors.Join(d.host.SetResolver(f.index, face), d.host.SetInterface(f.index, locate(front.Device)))
	}
	if err != nil {
		x.close()
		return err
	}
	x.list[f.cfg.Name] = face
	var own []netip.Prefix
	if !f.cfg.Addr.Addr().IsLinkLocalUnicast() {
		own = append(own, f.cfg.Addr)
	}
	front.Stand(face, own, d.functionAddressed(f.index, f.cfg.Name))
	d.functions.carry(f, x)
	d.startFunctionPorts(f)
	return nil
}

// carry says which IPoIB interfaces a virtual function has; nil: none.
func (s *functions) carry(f *virtualFunction, x *ipoibPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.ipoib = x
}

// functionConnections returns the connections of the virtual functions of an InfiniBand adapter that are to have IPoIB interfaces: each
// has the name of its function. Those of their virtual ports follow them.
func (d *Driver) functionConnections(i int) (list []connection) {
	if !d.infiniBand(i) {
		return nil
	}
	ports := slices.DeleteFunc(d.placedPorts(), func(p placedPort) bool { return int(p.i) != i || p.function == "" })
	var guids []uint64
	d.functions.mu.Lock()
	for _, f := range d.functions.list {
		if f.cfg.Owner != uint32(i) || f.host.tap() == "" {
			continue
		}
		list = append(list, f.connection(f.cfg.Name, ""))
		for _, p := range ports {
			if strings.EqualFold(p.function, f.cfg.Name) {
				list = append(list, f.connection(p.Name, p.IName))
			}
		}
		for len(guids) < len(list) {
			guids = append(guids, f.cfg.GUID)
		}
	}
	d.functions.mu.Unlock() // interfaces tell of what happens to them, and so are not asked with it
	for n := range list {
		list[n].mac = d.macOf(i, guids[n])
	}
	return list
}

// connection returns a connection of a virtual function: its own, or that of a virtual port, which has an iname. The caller holds the
// list's mu.
func (f *virtualFunction) connection(name, iname string) connection {
	c := connection{name: name, iname: iname, function: f.cfg.Name}
	if f.end != nil && f.end.front != nil {
		if own := f.end.front; iname == "" {
			c.system = own.Name()
		} else if own = f.end.ports[name]; own != nil {
			c.system = own.Name()
		}
	}
	if f.ipoib != nil {
		c.face = f.ipoib.list[name]
	}
	return c
}

// functionAddressed returns what makes the addresses of the interface of a virtual function those by which programs find it. Link-local
// ones are left to its GIDs.
func (d *Driver) functionAddressed(index uint32, name string) func(all []netip.Prefix) {
	var last []netip.Addr
	return func(all []netip.Prefix) {
		var ips []netip.Addr
		for _, x := range all {
			if a := x.Addr(); !a.IsLinkLocalUnicast() && !slices.Contains(ips, a) {
				ips = append(ips, a)
			}
		}
		if slices.Equal(ips, last) {
			return
		}
		last = ips
		if err := d.host.SetAddresses(index, ips); err != nil {
			d.log.Warn("programs cannot call the virtual function by its addresses", "function", name, "cause", err)
		}
	}
}

// functionFront returns the network interface of a virtual function, which it makes if it is not there.
func (d *Driver) functionFront(f *virtualFunction, p hostPlace) (*service.Front, error) {
	if err := d.checkHost(f, p); err != nil {
		return nil, err
	}
	if t := d.ends[p.word()]; t != nil && (t.place != p || t.front == nil) {
		d.closeHost(p)
	}
	t := d.ends[p.word()]
	if t == nil {
		front, err := openFront(p)
		if errors.Is(err, tun.ErrUnsupported) {
			err = fmt.Errorf("%w: tap: %w", api.ErrUnsupported, err)
		}
		if err != nil {
			return nil, p.refused(err)
		}
		t = &functionHost{owner: f.cfg.Owner, place: p, front: front}
		d.ends[p.word()] = t
	}
	d.functions.hosted(f, t)
	return t.front, nil
}

// openFront makes a network interface for IPoIB, in the namespace where it is to be.
func openFront(p hostPlace) (front *service.Front, err error) {
	var device *tun.Device
	open := func() (err error) {
		device, err = tun.Open(p.tap())
		return err
	}
	if p.space == "" {
		err = open()
	} else {
		err = hostside.InSpace(p.space, open)
	}
	if err != nil {
		return nil, err
	}
	if front, err = service.NewFront(device); err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return front, nil
}

// stopFunctionIPoIB ends the IPoIB interface of a virtual function. Its network interface stays, without a carrier.
func (d *Driver) stopFunctionIPoIB(f *virtualFunction) {
	if f.ipoib == nil {
		return
	}
	if f.end != nil && f.end.front != nil {
		f.end.front.Leave()
		for _, p := range f.end.ports {
			p.Leave()
		}
	}
	_ = d.host.SetResolver(f.index, nil)
	f.ipoib.close()
	d.functions.carry(f, nil)
}

// closeFunctionIPoIB ends the IPoIB interfaces of all virtual functions, before their adapters are closed.
func (d *Driver) closeFunctionIPoIB() {
	d.changes.Lock()
	defer d.changes.Unlock()
	for _, f := range d.functions.list {
		d.stopFunctionIPoIB(f)
	}
}
