package sim

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/port"
)

// Drive returns a port with one wire as the network drives it.
func Drive(p *port.Port, w *port.Wire) Engine { return &driven{p, w} }

// Alone returns a port whose only function is f, as the network drives it. Its packets have no outer headers, unless the
// Port of the network has a Codec.
func Alone(f port.Function) Engine {
	p, w := new(port.Port), new(port.Wire)
	p.Attach(f, port.Station{}).Plug(w, netip.Addr{}, nil)
	return Drive(p, w)
}

type driven struct {
	*port.Port
	wire *port.Wire
}

// Receive implements Engine.
func (d *driven) Receive(now clock.Time, in []frame.In) { d.Port.Receive(now, d.wire, in) }
