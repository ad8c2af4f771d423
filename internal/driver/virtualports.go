package driver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/wire/ib"
)

// Virtual IPoIB ports (WinOF 5.50, 5.2: part_man) are stored in the registry below the class key of their
// port.

// VirtualPorts returns the virtual ports of all ports, by connection.
func (d *Driver) VirtualPorts() []api.VirtualPort {
	out := []api.VirtualPort{}
	for _, p := range d.placedPorts() {
		out = append(out, d.virtualPort(p))
	}
	return out
}

// placedPort is a virtual port with the port that it is made on: that of adapter i, or of a virtual function there.
type placedPort struct {
	i        uint32
	function string // empty: the adapter's own
	registry.VirtualPort
}

// placedPorts returns the virtual ports of all adapters and their virtual functions.
func (d *Driver) placedPorts() (list []placedPort) {
	for i := range d.running {
		a := d.running[i].known()
		for _, v := range d.registry.VirtualPorts(a) {
			list = append(list, placedPort{uint32(i), "", v})
		}
		for _, name := range d.registry.PortFunctions(a) {
			for _, v := range d.registry.FunctionPorts(a, name) {
				list = append(list, placedPort{uint32(i), name, v})
			}
		}
	}
	return list
}

// virtualPort returns a virtual port with its state.
func (d *Driver) virtualPort(v placedPort) api.VirtualPort {
	p := api.VirtualPort{Connection: v.Name, Port: d.running[v.i].Name, IName: v.IName, PKey: keyText(ib.PKey(v.PKey))}
	s, runs := d.ipoib.look(v.i, v.Name)
	p.State = stateText(s.State, runs)
	if v.function != "" {
		p.Port = v.function
		s, runs = d.functionPort(v)
		if p.State = stateText(s.State, runs); !runs {
			p.State = d.whyNoPort(v)
		}
	}
	active := s.PKey
	if active != 0 {
		p.ActivePKey = keyText(active)
	}
	if v.PKey == 0 {
		p.PKey = keyText(ib.PKeyDefault) // as long as the port has no table
		if active != 0 {
			p.PKey = p.ActivePKey
		}
	}
	return p
}

// keyText formats a P_Key as part_man does.
func keyText(k ib.PKey) string { return fmt.Sprintf("%04X", uint16(k)) }

// AddVirtualPort creates a virtual port, which persists across restarts.
func (d *Driver) AddVirtualPort(q api.VirtualPortRequest) (api.VirtualPort, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	if t := d.Roster.Find(q.Connection); t != nil {
		return api.VirtualPort{}, api.Wrong("network connection name", fmt.Sprintf("%q, a team", q.Connection),
			"an IPoIB port: the interface of a partition is over one physical port (WinOF 5.50, 4.2.7.2 and 5.2); those of members are in no team")
	}
	i, err := d.find(q.Connection)
	if f := d.functions.find(q.Connection); f != nil && err != nil {
		return d.addFunctionPort(f, q)
	}
	if err != nil {
		var field *api.FieldError
		if errors.As(err, &field) {
			field.Field = "network connection name"
			field.Allowed = d.ipoibPorts()
		}
		return api.VirtualPort{}, err
	}
	if !d.infiniBand(int(i)) {
		return api.VirtualPort{}, api.Wrong("network connection name", fmt.Sprintf("%q, an Ethernet port", q.Connection), d.ipoibPorts())
	}
	a := d.running[i].known()
	v, err := newVirtualPort(q, d.takenConnections(), d.registry.VirtualPorts(a), nil)
	if err != nil {
		return api.VirtualPort{}, err
	}
	if err := d.registry.Apply(a.AddVirtualPort(v)...); err != nil {
		return api.VirtualPort{}, err
	}
	if err := d.ipoib.add(i, v); err != nil {
		return api.VirtualPort{}, errors.Join(err, d.registry.Apply(a.RemoveVirtualPort(v.Name)))
	}
	return d.virtualPort(placedPort{i, "", v}), nil
}

// takenConnections lists the connections that there are.
func (d *Driver) takenConnections() (taken []string) {
	for n := range d.running {
		taken = append(taken, d.running[n].Name)
	}
	for _, p := range d.placedPorts() {
		taken = append(taken, p.Name)
	}
	return taken
}

// ipoibPorts lists the names of the adapters and virtual functions that support virtual ports.
func (d *Driver) ipoibPorts() string {
	var names []string
	for i := range d.running {
		if d.infiniBand(i) {
			names = append(names, fmt.Sprintf("%q", d.running[i].Name))
		}
		for _, c := range d.functionConnections(i) {
			if c.iname == "" {
				names = append(names, fmt.Sprintf("%q", c.name))
			}
		}
	}
	if names == nil {
		return "an IPoIB port; this driver has none"
	}
	return strings.Join(names, ", ")
}

// newVirtualPort returns the port for a request, given the connections that there are, the virtual ports of the same port, and names that
// are not to be made up.
func newVirtualPort(q api.VirtualPortRequest, taken []string, existing []registry.VirtualPort, avoid []string) (v registry.VirtualPort,
	err error) {
	if len(existing) >= ipoib.MaxVirtualPorts {
		return v, api.Wrong("virtual ports", fmt.Sprintf("%d on %q", len(existing), q.Connection),
			fmt.Sprintf("at most %d a port", ipoib.MaxVirtualPorts))
	}
	if q.PKey != "" {
		key, err := ipoib.ParsePKey(q.PKey)
		if err != nil {
			return v, asField(err)
		}
		v.PKey = uint16(key)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(existing, func(o registry.VirtualPort) bool { return strings.EqualFold(o.IName, name) })
	}
	switch v.IName = q.IName; {
	case v.IName == "":
		for n := 1; v.IName == "" || has(v.IName) || slices.Contains(avoid, v.IName); n++ {
			v.IName = fmt.Sprintf("ipoib_%s_%d", trailingDigits(q.Connection), n)
		}
	case has(v.IName):
		return v, api.Wrong("iname", strconv.Quote(v.IName), fmt.Sprintf("a name that no virtual port of %q has", q.Connection))
	default:
		if err := ipoib.CheckIName(v.IName); err != nil {
			return v, asField(err)
		}
	}
	for n := 1; v.Name == "" || slices.ContainsFunc(taken, func(s string) bool { return strings.EqualFold(s, v.Name) }); n++ {
		v.Name = fmt.Sprintf("Ethernet %d", n)
	}
	return v, nil
}

// trailingDigits returns the number at the end of a connection's name, 0 if there is none.
func trailingDigits(name string) string {
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	if digits == "" || len(digits) > 9 {
		return "0"
	}
	return digits
}

// asField converts an error of package ipoib to one of a request.
func asField(err error) error {
	var c *ipoib.ConfigError
	if errors.As(err, &c) {
		return api.Wrong(c.Field, fmt.Sprint(c.Got), c.Want)
	}
	return err
}

// RemoveVirtualPort removes a virtual port.
func (d *Driver) RemoveVirtualPort(q api.VirtualPortRequest) error {
	d.changes.Lock()
	defer d.changes.Unlock()
	var names []string
	for _, v := range d.placedPorts() {
		if !strings.EqualFold(v.Name, q.Connection) {
			names = append(names, fmt.Sprintf("%q", v.Name))
			continue
		}
		switch key := d.virtualPort(v).PKey; {
		case q.IName != "" && !strings.EqualFold(q.IName, v.IName):
			return api.Wrong("iname", strconv.Quote(q.IName), fmt.Sprintf("%q, which is that of %q", v.IName, v.Name))
		case q.PKey != "" && !strings.EqualFold(q.PKey, key):
			return api.Wrong("pkey", strconv.Quote(q.PKey), fmt.Sprintf("%s, which is that of %q", key, v.Name))
		}
		return d.removeVirtualPort(v)
	}
	allowed := strings.Join(names, ", ")
	if names == nil {
		allowed = "that of a virtual port; there is none"
	}
	return api.Wrong("network connection name", strconv.Quote(q.Connection), allowed)
}

func (d *Driver) removeVirtualPort(v placedPort) error {
	a := d.running[v.i].known()
	if v.function != "" {
		if err := d.registry.Apply(a.RemoveFunctionPort(v.function, v.Name)); err != nil {
			return err
		}
		if f := d.functions.find(v.function); f != nil {
			d.endFunctionPort(f, v.Name)
		}
		return nil
	}
	if err := d.registry.Apply(a.RemoveVirtualPort(v.Name)); err != nil {
		return err
	}
	d.ipoib.remove(v.i, v.Name)
	return nil
}

// RemoveVirtualPorts removes all virtual ports.
func (d *Driver) RemoveVirtualPorts() error {
	d.changes.Lock()
	defer d.changes.Unlock()
	for _, v := range d.placedPorts() {
		if err := d.removeVirtualPort(v); err != nil {
			return err
		}
	}
	return nil
}
