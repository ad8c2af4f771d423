package driver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/wire/ib"
)

// Virtual ports of part_man (WinOF 5.50, 5.2) on the IPoIB interface of a virtual function are interfaces of its own, in its partitions.
// They are kept with what is kept of the function, run while its IPoIB does, and their network interfaces are where that of the function
// was made.

// addFunctionPort makes a virtual port of a virtual function. The caller holds changes.
func (d *Driver) addFunctionPort(f *virtualFunction, q api.VirtualPortRequest) (none api.VirtualPort, err error) {
	name, i := f.cfg.Name, f.cfg.Owner
	switch {
	case !d.infiniBand(int(i)):
		return none, api.Wrong("network connection name", fmt.Sprintf("%q, a virtual function of an Ethernet port", name), d.ipoibPorts())
	case f.host.tap() == "":
		return none, api.Wrong("network connection name", fmt.Sprintf("%q, a virtual function without an IPoIB interface (tap=)", name), d.ipoibPorts())
	}
	var made []string
	for _, p := range d.placedPorts() {
		made = append(made, p.IName)
	}
	a := d.running[i].known()
	v, err := newVirtualPort(q, d.takenConnections(), d.registry.FunctionPorts(a, name), made)
	if err == nil {
		err = d.mayPartition(f, ib.PKey(v.PKey))
	}
	if err != nil {
		return none, err
	}
	if err := d.registry.Apply(a.AddFunctionPort(name, v)...); err != nil {
		return none, err
	}
	if err := d.runFunctionPort(f, v); err != nil {
		return none, errors.Join(fmt.Errorf("virtual port %q: %w", v.Name, err), d.registry.Apply(a.RemoveFunctionPort(name, v.Name)))
	}
	return d.virtualPort(placedPort{i, name, v}), nil
}

// mayPartition returns why a virtual function has no virtual port in a partition: its own table has to have it, by what an administrator
// has decided (pkeys=) and the subnet manager has given. 0 is its first partition.
func (d *Driver) mayPartition(f *virtualFunction, key ib.PKey) error {
	if key == 0 {
		return nil
	}
	var have []ib.PKey
	for _, o := range d.host.Functions(f.cfg.Owner) {
		if o.Name == f.cfg.Name && o.Up && o.Fabric != nil {
			have = slices.DeleteFunc(slices.Clone(o.Fabric.PKeys), func(k ib.PKey) bool { return !k.Valid() })
		}
	}
	if given := &f.cfg.Virtual.PKeys; have == nil && given.Used > 0 { // it is down: what it may have decides
		have = given.Keys[:given.Used]
	}
	if have == nil || slices.ContainsFunc(have, func(k ib.PKey) bool { return k&0x7fff == key&0x7fff && k >= key }) {
		return nil
	}
	var words []string
	for _, k := range have {
		words = append(words, keyText(k))
	}
	return api.Wrong("pkey", strconv.Quote(keyText(key)),
		fmt.Sprintf("%s, which is what %q has of its port's partitions (pkeys=)", strings.Join(words, ", "), f.cfg.Name))
}

// runFunctionPort starts a virtual port of a virtual function whose IPoIB runs. The caller holds changes.
func (d *Driver) runFunctionPort(f *virtualFunction, v registry.VirtualPort) error {
	x, t := f.ipoib, f.end
	if x == nil || t == nil || t.front == nil {
		return nil // it starts with the function
	}
	front := t.ports[v.Name]
	if front == nil {
		p := f.host
		p.at = v.IName
		var err error
		if front, err = openFront(p); err != nil {
			return p.refused(err)
		}
		d.functions.mu.Lock()
		if t.ports == nil {
			t.ports = map[string]*service.Front{}
		}
		t.ports[v.Name] = front
		d.functions.mu.Unlock()
	}
	if err := front.SetOffloads(d.ipoib.offloads(f.cfg.Owner)); err != nil {
		d.log.Warn("the system does without offloads", "connection", v.Name, "cause", err)
	}
	cfg := d.ipoib.config(f.cfg.Owner)
	cfg.PKey = ib.PKey(v.PKey)
	face, err := x.port.Add(cfg, front.Device, d.ipoib.teller(f.cfg.Owner, v.Name))
	if err != nil {
		d.endFunctionPort(f, v.Name)
		return err
	}
	front.Stand(face, nil, nil)
	d.functions.mu.Lock()
	defer d.functions.mu.Unlock()
	x.list[v.Name] = face
	return nil
}

// startFunctionPorts starts the virtual ports of a virtual function. The caller holds changes.
func (d *Driver) startFunctionPorts(f *virtualFunction) {
	for _, v := range d.registry.FunctionPorts(d.running[f.cfg.Owner].known(), f.cfg.Name) {
		if err := d.runFunctionPort(f, v); err != nil {
			d.log.Warn("a virtual IPoIB port does not run", "port", v.Name, "function", f.cfg.Name, "cause", err)
		}
	}
}

// endFunctionPort ends a virtual port of a virtual function. The caller holds changes.
func (d *Driver) endFunctionPort(f *virtualFunction, name string) {
	var face *service.Interface
	var front *service.Front
	d.functions.mu.Lock()
	if f.ipoib != nil {
		face = f.ipoib.list[name]
		delete(f.ipoib.list, name)
	}
	if f.end != nil {
		front = f.end.ports[name]
		delete(f.end.ports, name)
	}
	d.functions.mu.Unlock()
	if face != nil {
		face.Close()
	}
	if front != nil {
		_ = front.Close()
	}
}

// functionPort returns the status of a virtual port of a virtual function if it runs.
func (d *Driver) functionPort(v placedPort) (s service.Status, runs bool) {
	d.functions.mu.Lock()
	var face *service.Interface
	if f := d.functions.find(v.function); f != nil && f.ipoib != nil {
		face = f.ipoib.list[v.Name]
	}
	d.functions.mu.Unlock()
	if face == nil {
		return service.Status{State: ipoib.Down}, false
	}
	return face.Status(), true
}

// whyNoPort says why a virtual port of a virtual function does not run.
func (d *Driver) whyNoPort(v placedPort) string {
	d.functions.mu.Lock()
	defer d.functions.mu.Unlock()
	f := d.functions.find(v.function)
	switch {
	case f == nil:
		return "disconnected: the virtual function is not there"
	case f.host.tap() == "":
		return "disconnected: the virtual function has no IPoIB interface (tap=)"
	case f.live:
		return "disconnected: it has no network interface"
	}
	return stateText(ipoib.Down, false)
}
