package umad

import (
	"fmt"
	"math/rand/v2"

	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/mad"
)

// ServiceOptions say how to open a port through a fabric's management service (internal/umad/server).
// Linux only.
type ServiceOptions struct {
	Socket  string // path
	Node    string // node to be, by ID or description; empty: the fabric's first
	Adapter string // adapter of the node; empty: its first
	Port    int    // port of the adapter; 0: the first active one, or else the first
	Manager bool   // be a port with a subnet manager
}

// OpenService opens a port of a node of a fabric.
func OpenService(o ServiceOptions) (*Port, error) {
	t, d, err := openService(o)
	if err != nil {
		return nil, err
	}
	return newPort(t, d, rand.Uint32()), nil
}

func openService(o ServiceOptions) (Transport, Device, error) {
	t, d, err := dialService(o)
	if err != nil {
		return nil, d, fmt.Errorf("fabric service %s: %w", o.Socket, err)
	}
	return t, d, nil
}

// device converts the service's description of an adapter and its port.
func device(name string, a *socket.AdapterInfo, p *socket.PortInfo) (d Device, err error) {
	d = Device{Name: name, Type: a.Type, Firmware: a.Firmware, Hardware: a.Hardware, Ports: max(int(a.Ports), 1), PortNum: int(p.Number),
		LinkLayer: p.LinkLayer, PKeys: p.PKeys}
	if d.Port, err = mad.ParsePortInfo(p.Info[:]); err == nil {
		d.Node, err = mad.ParseNodeInfo(p.Node[:])
	}
	return d, err
}
