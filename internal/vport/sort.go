package vport

import (
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// Sort returns the virtual port and the queue that a received frame with these headers goes to, and counts it. In a tunnel, t, it is
// the frame inside that is looked at first, and hashed; nil: there is none, or its offload is off. Frames to groups and those that no
// filter names go to the default port. It allocates nothing.
func (s *Sorter) Sort(h *eth.Headers, b []byte, t *tunnel.Frame) (n, queue int) {
	n = s.find(h, b, t)
	p := s.ports[n]
	if len(p.queues) == 0 { // weight 0, or no queue was free
		n, p = 0, s.ports[0]
	}
	of := h
	if t != nil {
		of = &t.Inner
	}
	i := 0
	if len(p.queues) > 1 {
		if hash, kind := s.hash.Of(of, b, s.types); kind != 0 {
			i = p.table.Queue(hash)
		}
	}
	q := &p.queues[i]
	q.Frames++
	q.Bytes += uint64(len(b))
	return n, q.Number
}

// find returns the port whose filter names a frame.
func (s *Sorter) find(h *eth.Headers, b []byte, t *tunnel.Frame) int {
	if t != nil {
		if n, ok := s.match(number(b[t.At:])|tunneled, t.ID, &t.Inner); ok {
			return n
		}
	}
	n, _ := s.match(number(b), 0, h)
	return n
}

// match looks for a filter of the frame's VLAN, then for one of any.
func (s *Sorter) match(mac uint64, network uint32, h *eth.Headers) (int, bool) {
	vid := uint64(h.TCI & eth.VIDMask)
	if n, ok := s.filters[key{mac | vid<<vlanShift, network}]; ok {
		return int(n), true
	}
	n, ok := s.filters[key{mac | anyVLAN, network}]
	return int(n), ok
}
