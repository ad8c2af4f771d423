package udp

import (
	"errors"
	"syscall"
)

// A UDP socket sends from the port that it is bound to. The source port that a
// connection computes for itself (so that switches spread connections over their paths)
// therefore needs sockets of its own: a pool of a few, bound when a route first needs
// one, that a route's computed port chooses from.

const (
	sourcePortMask  = 0xc000 // source ports are dynamic ones (IBA annex A17.9.2)
	sourcePortTries = 64
	sourceBuffer    = 16 << 10 // for errors; nothing else is queued
)

// pool chooses among source ports. Its sockets belong to the link, in the order of ports.
type pool struct {
	own     uint16 // the receiving socket's port
	limit   int
	exact   bool
	slots   map[uint16]uint8 // slot or exact port to Route.Socket
	ports   []uint16         // Route.Socket less 1
	skipped int
	bind    func(port uint16) error
}

func newPool(cfg Config, bind func(port uint16) error) pool {
	return pool{own: cfg.Port, limit: cfg.SourcePorts, exact: cfg.ExactSourcePorts, slots: map[uint16]uint8{}, bind: bind}
}

// choose returns the socket that sends for a computed source port, and the port that it
// really sends from. It falls back to the receiving socket, number 0, where nothing
// better can be bound.
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

// add binds a port for a slot, or shares one of those that there are.
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

// bindNear binds the wanted port or, where that is taken and an exact one was not asked
// for, the next of the same slot.
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
