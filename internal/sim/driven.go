package sim

import (
	"net/netip"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cpu/prefetch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/port"
)

// Drive returns a port with one wire as the network drives it.
func Drive(p *port.Port, w *port.Wire) Engine { return &driven{p, w} }

type driven struct {
	*port.Port
	wire *port.Wire
}

// Receive implements Engine.
func (d *driven) Receive(now clock.Time, in []frame.In) { d.Port.Receive(now, d.wire, in) }

// Alone returns a port whose only function is f, as the network drives it. Its packets have no outer headers, unless the
// Port of the network has a Codec.
func Alone(f port.Function) Engine {
	a := new(alone)
	a.Attach(f, port.Station{}).Plug(&a.wire, netip.Addr{}, nil)
	a.function, _ = f.(Prefetcher)
	return a
}

// alone is a port with one function, in one piece, so that the first step of Prefetch need not look into it.
type alone struct {
	port.Port
	wire     port.Wire
	function Prefetcher // nil: the function is none
}

// Receive implements Engine.
func (a *alone) Receive(now clock.Time, in []frame.In) { a.Port.Receive(now, &a.wire, in) }

// Prefetch implements Prefetcher. The function is a step behind the port.
func (a *alone) Prefetch(step int, packet []byte) {
	a.Port.Prefetch(step, &a.wire)
	switch {
	case step == 0:
		prefetch.Read(unsafe.Pointer(&a.function))
	case a.function != nil:
		a.function.Prefetch(step-1, packet)
	}
}
