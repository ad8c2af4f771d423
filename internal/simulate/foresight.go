package simulate

import (
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cpu/prefetch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// foresteps is in how many steps memory is asked for: each looks only at what the one before has asked for.
	foresteps = 6
	// worthwhile is how many turns hosts must have had in the last window, since the memory of all is looked for.
	worthwhile = 16
	// many is in a network of how many hosts what these use, some 12 KB each, does not stay in the near caches.
	many = 32
)

// foresee asks for the memory that the shard will use in a window up to a time, if it had much to do in the last: all other shards have
// had their turns since, and what it used then has left the near caches of the processor. Without that it would wait for one line after
// the other.
func (h *shard) foresee(until clock.Time) {
	if h.turns < worthwhile || len(h.r.s.Graph.Hosts) < many || len(h.r.n.shards) == 1 {
		return
	}
	for step := range foresteps {
		h.Prefetch(step, until)
		for _, x := range h.hosts {
			x.prefetch(step)
		}
	}
}

// last is what a host has had in a window, the likes of which it will have in the next.
type last struct {
	sends    *sending   // whose packet was answered, or that has sent; nil: none
	receives *receiving // that has received a packet
	answer   [ib.BTHLen]byte
	request  [ib.BTHLen]byte // of these packets, between RC queue pairs
}

// prefetch asks for the memory of the flows.
func (l *last) prefetch(step int) {
	if f := l.sends; f != nil {
		switch {
		case step == 1:
			prefetch.Lines(unsafe.Pointer(f), unsafe.Sizeof(*f))
		case step == 3 && f.lean != nil:
			prefetch.Lines(unsafe.Pointer(f.lean), unsafe.Sizeof(*f.lean))
		case step == 3 && f.rc != nil:
			prefetch.Lines(unsafe.Pointer(f.rc), unsafe.Sizeof(*f.rc))
		}
	}
	if f := l.receives; f != nil {
		switch {
		case step == 1:
			prefetch.Lines(unsafe.Pointer(f), unsafe.Sizeof(*f))
		case step == 2:
			prefetch.Read(unsafe.Pointer(f.Flow))
		case step == 3 && f.lean != nil:
			prefetch.Lines(unsafe.Pointer(f.lean), unsafe.Sizeof(*f.lean))
		case step == 3 && f.rc != nil:
			prefetch.Lines(unsafe.Pointer(f.rc), unsafe.Sizeof(*f.rc))
		}
	}
}

// prefetch implements host.
func (h *rcHost) prefetch(step int) {
	switch {
	case step == 0:
		prefetch.Lines(unsafe.Pointer(h), unsafe.Offsetof(h.port))
		prefetch.Lines(unsafe.Pointer(&h.wire), unsafe.Offsetof(h.held)-unsafe.Offsetof(h.wire))
		prefetch.Lines(unsafe.Pointer(&h.holds), unsafe.Sizeof(*h)-unsafe.Offsetof(h.holds))
		return
	case h.last.sends == nil && h.last.receives == nil:
		return
	case step == 1:
		prefetch.Lines(unsafe.Pointer(unsafe.SliceData(h.in)), unsafe.Sizeof(frame.In{}))
		prefetch.Read(unsafe.Pointer(unsafe.SliceData(h.refs)))
		h.region.Prefetch()
		h.engine.Prefetch(0, nil)
	default:
		if h.last.sends != nil {
			h.engine.Prefetch(step-1, h.last.answer[:])
		}
		if h.last.receives != nil {
			h.engine.Prefetch(step-1, h.last.request[:])
		}
	}
	h.port.Prefetch(step-1, &h.wire)
	if h.last.prefetch(step); step == foresteps-1 {
		h.last.sends, h.last.receives = nil, nil
	}
}

// prefetch implements host.
func (h *leanHost) prefetch(step int) {
	switch step {
	case 0:
		prefetch.Lines(unsafe.Pointer(h), unsafe.Sizeof(*h))
		return
	case 1:
		prefetch.Read(unsafe.Pointer(&h.nic.AckEvery))
	}
	if h.last.prefetch(step); step == foresteps-1 {
		h.last.sends, h.last.receives = nil, nil
	}
}
