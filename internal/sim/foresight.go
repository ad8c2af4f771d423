package sim

import (
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
)

// Prefetcher can prefetch the memory with which an engine will handle a packet. The network tells
// it about the next packets while other engines have their turns: with many ports, what an engine used last
// has left the near caches, and it would wait for one line after the other.
type Prefetcher interface {
	// Prefetch takes step 0, 1, 2 ... up to the last, PrefetchSteps-1. Between two of them there is time for
	// what the first asked for to arrive, so that it may be looked into. The first steps are left out for what
	// arrives soon after it was sent. packet is the one that will be received, from the BTH on; its payload
	// may be missing, and with a Codec it says nothing.
	Prefetch(step int, packet []byte)
}

// PrefetchSteps is how many steps of Prefetch there are.
const PrefetchSteps = 8

// many is the number of members from which on prefetching gains more than it costs: fewer stay in the caches of one
// processor (BenchmarkHops).
const many = 256

// foresee prefetches for the packets that arrive after the first, each time what it takes one step further.
func (p *process) foresee() {
	if len(p.members) < many {
		return
	}
	for i := p.queue.count - 1; i > 0; i-- {
		p.queue.next[i].lane.foresee(i)
	}
}

// foresee prefetches for a lane that is so many turns away.
func (l *lane) foresee(away int) {
	switch to := l.to; away {
	case foresight - 1:
		prefetch.Lines(unsafe.Pointer(l), unsafe.Sizeof(*l))
		return
	case foresight - 2:
		prefetch.Lines(unsafe.Pointer(unsafe.SliceData(l.ring)), min(uintptr(l.count), batchSize)*unsafe.Sizeof(l.ring[0]))
		prefetch.Lines(unsafe.Pointer(to), unsafe.Offsetof(to.wire))
		return
	case foresight - 3:
		prefetch.Lines(unsafe.Pointer(l.first()), unsafe.Sizeof(packet{}))
		prefetch.Lines(unsafe.Pointer(to.towards(l.from)), unsafe.Offsetof(Link{}.place))
	case foresight - 4:
		if k := to.towards(l.from); k != nil {
			prefetch.Lines(unsafe.Pointer(k.ends), unsafe.Sizeof(*k.ends))
		}
	case 2:
		for i := uint32(1); i < min(l.count, batchSize); i++ {
			prefetch.Read(unsafe.Pointer(*l.place(i)))
		}
	case 1:
		for i := uint32(1); i < min(l.count, batchSize); i++ {
			if p := *l.place(i); p.short == 0 || uintptr(p.short) > near {
				prefetch.Read(unsafe.Add(unsafe.Pointer(p), line))
			}
		}
	}
	if e := l.to.Prefetcher; e != nil {
		e.Prefetch(foresight-3-away, l.first().head[:])
	}
}

// approach prefetches the buffer of a packet that is about to be received.
func (p *process) approach(x *packet) {
	if x.short == 0 && len(p.members) >= many {
		prefetch.Lines(unsafe.Pointer(unsafe.SliceData(x.buf)), uintptr(len(x.buf)))
	}
}
