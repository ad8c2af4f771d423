package config

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
)

// maxPorts is how many ports a device may have, as the manuals' ConnectX devices.
const maxPorts = 2

// Slot is an adapter's place in its device.
type Slot struct {
	Device string // name of the device: that of the adapter if it has none of its own
	First  int    // index of the adapter that is the device's first port
	Port   int    // number of the port, from 1
	Ports  int    // of the device
}

// Slot returns the place of adapter i in its device: the first adapter with a device's name is port 1.
func (c *Config) Slot(i int) Slot {
	name := c.Adapters[i].Device
	if name == "" {
		return Slot{Device: c.Adapters[i].Name, First: i, Port: 1, Ports: 1}
	}
	s := Slot{Device: name, First: -1}
	for j := range c.Adapters {
		if c.Adapters[j].Device != name {
			continue
		}
		if s.First < 0 {
			s.First = j
		}
		if s.Ports++; j == i {
			s.Port = s.Ports
		}
	}
	return s
}

// completeDevices checks the adapters that are ports of one device, and gives its InfiniBand ports the node
// of the fabric that is the device, and their numbers in it.
func (c *Config) completeDevices() error {
	for i := range c.Adapters {
		a := &c.Adapters[i]
		if a.Device == "" {
			continue
		}
		field := func(name string) string { return fmt.Sprintf("adapters[%d].%s", i, name) }
		at := c.Slot(i)
		switch first := &c.Adapters[at.First]; {
		case len(a.Device) > maxNameLength:
			return api.Wrong(field("device"), fmt.Sprintf("%d bytes long", len(a.Device)), fmt.Sprintf("up to %d bytes", maxNameLength))
		case at.Port > maxPorts:
			return api.Wrong(field("device"), fmt.Sprintf("%q a third time", a.Device), "two ports of a device")
		case generationOf(a) != generationOf(first):
			return api.Wrong(field("generation"), fmt.Sprintf("%q", generationOf(a)), fmt.Sprintf("%s, as port 1 of device %q",
				generationOf(first), a.Device))
		}
		for j := range c.Adapters {
			if o := &c.Adapters[j]; o.Name == a.Device && o.Device != a.Device {
				return api.Wrong(field("device"), fmt.Sprintf("%q, the name of an adapter that is not its port", a.Device), "another name")
			}
		}
		if a.Cable() {
			if err := c.completeNode(i, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// completeNode makes the InfiniBand ports of a device the ports of one node.
func (c *Config) completeNode(i int, at Slot) error {
	a := &c.Adapters[i]
	field := func(name string) string { return fmt.Sprintf("adapters[%d].%s", i, name) }
	if a.Node == "" && c.Fabric != nil && (c.Fabric.Netlist != "" || c.Fabric.Connect != "") {
		if at.Port > 1 {
			a.Node = c.Adapters[at.First].Node
		}
		if a.Node == "" && at.Ports > 1 {
			return api.Wrong(field("node"), "missing", fmt.Sprintf("the node of the fabric that device %q is, because it has two ports",
				a.Device))
		}
	}
	if a.Node == "" {
		return nil // the driver makes a node of the device
	}
	if first := &c.Adapters[at.First]; first.Cable() && first.Node != a.Node {
		return api.Wrong(field("node"), fmt.Sprintf("%q", a.Node), fmt.Sprintf("%q, where port 1 of device %q is", first.Node, a.Device))
	}
	if at.Ports > 1 && a.Port == 0 {
		a.Port = uint8(at.Port)
	}
	if at.Ports > 1 && int(a.Port) != at.Port {
		return api.Wrong(field("port"), fmt.Sprint(a.Port), fmt.Sprintf("%d, the port of device %q that the adapter is", at.Port, a.Device))
	}
	return nil
}

// generationOf returns the name of an adapter's generation.
func generationOf(a *Adapter) string {
	if a.Generation == "" {
		return "mlx5"
	}
	return a.Generation
}
