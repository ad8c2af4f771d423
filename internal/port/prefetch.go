package port

import (
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
)

// Prefetch asks for the memory with which Receive passes on packets of a wire, and Transmit what follows from them. A
// driver of many ports calls it with step 0 to 2 while others have their turns: each step looks only at what the one
// before has asked for. It knows the first station only, and asks for nothing of the functions.
func (p *Port) Prefetch(step int, w *Wire) {
	switch step {
	case 0:
		prefetch.Read(unsafe.Pointer(&p.Scheduler.plain))
		prefetch.Lines(unsafe.Pointer(&p.stations), unsafe.Offsetof(p.next)-unsafe.Offsetof(p.stations))
		prefetch.Read(unsafe.Pointer(&p.Classifier))
		prefetch.Lines(unsafe.Pointer(&p.turned.n), unsafe.Offsetof(p.turned.in)-unsafe.Offsetof(p.turned.n))
		prefetch.Lines(unsafe.Pointer(&p.backlog), unsafe.Offsetof(p.backlog.bytes))
		prefetch.Read(unsafe.Pointer(&p.lifetime.cfg))
		prefetch.Lines(unsafe.Pointer(&p.counters.Sent), unsafe.Sizeof(p.counters.Sent))
		prefetch.Read(unsafe.Pointer(&p.counters.Received))
		prefetch.Lines(unsafe.Pointer(w), unsafe.Sizeof(*w))
	case 1:
		prefetch.Read(unsafe.Pointer(unsafe.SliceData(p.stations)))
		prefetch.Lines(unsafe.Pointer(unsafe.SliceData(w.places)), unsafe.Sizeof(place{}))
	case 2:
		if len(p.stations) > 0 {
			prefetch.Lines(unsafe.Pointer(p.stations[0]), unsafe.Sizeof(*p.stations[0]))
		}
	}
}
