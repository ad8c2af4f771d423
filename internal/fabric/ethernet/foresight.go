package ethernet

import (
	"math/bits"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cpu/prefetch"
)

// Prefetch asks for the memory that frames use of the nodes, as far as they used it since the last time. Where other fabrics have had
// their turns, all that has left the near caches, and a frame would wait for one line after the other. It takes step 0 to 4, between which
// there is time for what the first asked for to arrive, so that it may be looked into. Of frames it asks for those that wait at ports and
// may leave soon, and those that arrive until a time.
func (f *Fabric) Prefetch(step int, until clock.Time) {
	switch step {
	case 0:
		f.cold = true
		for _, x := range f.nodes {
			prefetch.Lines(unsafe.Pointer(x), unsafe.Sizeof(*x))
		}
		prefetch.Lines(unsafe.Pointer(unsafe.SliceData(f.arrivals.lanes)), uintptr(len(f.arrivals.lanes))*unsafe.Sizeof(lane{}))
	case 1:
		for i := range f.nodes {
			s := f.nodes[i].Switch
			prefetch.Lines(unsafe.Pointer(s), unsafe.Offsetof(s.bridged))
			prefetch.Read(unsafe.Pointer(&s.crossed))
			if x := f.nodes[i]; x.station != nil {
				prefetch.Read(unsafe.Pointer(x.station))
			}
			prefetch.Read(unsafe.Pointer(unsafe.SliceData(f.nodes[i].ways)))
			for k := range s.ports {
				prefetch.Read(unsafe.Pointer(&s.ports[k].seen))
			}
		}
	case 2:
		for i := range f.nodes {
			s := f.nodes[i].Switch
			s.due.Prefetch()
			if f.nodes[i].station == nil {
				prefetch.Lines(unsafe.Pointer(&s.routes.recent), unsafe.Sizeof(s.routes.recent))
			}
			prefetch.Read(unsafe.Pointer(unsafe.SliceData(s.out)))
			prefetch.Lines(unsafe.Pointer(unsafe.SliceData(s.entries)), uintptr(min(len(s.entries), few))*unsafe.Sizeof(entry{}))
			for k := range s.ports {
				s.ports[k].prefetch()
			}
		}
	case 3:
		for i := range f.arrivals.lanes {
			if l := &f.arrivals.lanes[i]; l.count > 0 {
				prefetch.Lines(unsafe.Pointer(unsafe.SliceData(l.ring)), uintptr(len(l.ring))*unsafe.Sizeof(coming{}))
			}
		}
	case 4:
		for i := range f.nodes {
			s := f.nodes[i].Switch
			for k := range s.ports {
				if p := &s.ports[k]; p.backlog != 0 {
					p.foresee()
				}
			}
		}
		for i := range f.arrivals.lanes {
			l := &f.arrivals.lanes[i]
			for k := range l.count {
				x := l.place(k)
				if x.at > until {
					break
				}
				f.Store.prefetch(x.frame)
			}
		}
	}
}

// soon is how many frames of a queue are asked for: about as many as leave until the next time.
const soon = 8

// foresee asks for the first frames that wait at a port.
func (p *Port) foresee() {
	for set := p.backlog; set != 0; set &= set - 1 {
		q, entries := &p.classes[bits.TrailingZeros8(set)].queue, p.sw.entries
		at := q.first
		for range min(q.frames, soon) {
			e := &entries[at]
			p.sw.store.prefetch(e.frame)
			at = e.next
		}
	}
}

// few is how many entries of queues are asked for: those of short queues, as the last that became free is used first.
const few = 16

// prefetch asks for what frames use of a port at the priorities of those that it has seen since the last time.
func (p *Port) prefetch() {
	if p.seen == 0 {
		return
	}
	prefetch.Read(unsafe.Pointer(&p.sw))
	prefetch.Read(unsafe.Pointer(&p.urgent))
	prefetch.Read(unsafe.Pointer(&p.scheduler))
	prefetch.Read(unsafe.Pointer(&p.cfg))
	prefetch.Read(unsafe.Pointer(&p.cfg.DSCP))
	for ; p.seen != 0; p.seen &= p.seen - 1 {
		c := &p.classes[bits.TrailingZeros8(p.seen)]
		prefetch.Read(unsafe.Pointer(&c.queue))
		prefetch.Read(unsafe.Pointer(&c.group))
	}
}
