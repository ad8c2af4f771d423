package udp

import (
	"errors"
	"syscall"
)

// A UDP socket sends from the port to which it is bound. The source port that a connection computes for
// itself (so that switches spread connections over their paths) therefore needs a socket of its own. They
// come from a small pool, bound when a route first needs one; a route's computed port selects the socket.

const (
	sourcePortMask  = 0xc000 // source ports are dynamic ones (IBA annex A17.9.2)
	sourcePortTries = 64
	sourceBuffer    = 16 << 10 // for errors; nothing else is queued
)

// pool assigns source ports. Its sockets belong to the link, in the order of ports.
type pool struct {
	own     uint16 // the receiving socket's port
	limit   int
	exact   bool
	slots   map[uint16]uint8 // slot or exact port to Route.Socket
	ports   []uint16         // indexed by Route.Socket - 1
	skipped int
	bind    func(port uint16) error
}

func newPool(cfg Config, bind func(port uint16) error) pool {
	return pool{own: cfg.Port, limit: cfg.SourcePorts, exact: cfg.ExactSourcePorts, slots: map[uint16]uint8{}, bind: bind}
}

// choose returns the socket that sends for a computed source port, and its actual source port. It falls
// back to the receiving socket, number 0, if nothing better can be bound.
func (p *pool) choose(want uint16) (socket uint8, port uint16) {
	if want == 0 || want == p.own || p.limit == 0 {
		return 0, p.own
	}
	slot := want
	if !p.exact {
		slot = want % uint16(p.limit)
	}
	i, ok := p.slots[slot]
	if !ok {
		i = p.add(slot, want)
	}
	if i == 0 {
		return 0, p.own
	}
	return i, p.ports[i-1]
}

// add binds a port for a slot, or shares an existing one.
func (p *pool) add(slot, want uint16) uint8 {
	if len(p.ports) < p.limit && p.bindNear(want) {
		p.slots[slot] = uint8(len(p.ports))
		return p.slots[slot]
	}
	if len(p.ports) == 0 {
		return 0
	}
	return uint8(1 + int(want)%len(p.ports))
}

// bindNear binds the wanted port or, if it is taken and need not be exact, the next one of the same slot.
func (p *pool) bindNear(want uint16) bool {
	tries := sourcePortTries
	if p.exact {
		tries = 1
	}
	port := want
	for range tries {
		err := p.bind(port)
		if err == nil {
			p.ports = append(p.ports, port)
			return true
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return false
		}
		p.skipped++
		port = (port + uint16(p.limit)) | sourcePortMask
	}
	return false
}
