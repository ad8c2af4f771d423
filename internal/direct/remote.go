package direct

import (
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

func (i *Initiator) write(wr *ring.SendWR) reason {
	n, why := i.gather(wr, 0)
	if why != noReason {
		return why
	}
	dst, why := i.target(wr, n, memory.RemoteWrite)
	if why != noReason {
		return why
	}
	if why := i.store(dst, n); why != noReason {
		return why
	}
	return i.complete(wr, countWrite, n)
}

// store copies the request's n bytes of memory to what target returned, the last bytes last.
func (i *Initiator) store(dst []byte, n uint64) reason {
	if i.far.n > 0 {
		return i.putFar(n)
	}
	i.place1(dst)
	return noReason
}

// place1 copies the request's memory to dst, its last bytes last.
func (i *Initiator) place1(dst []byte) {
	for s := range i.locals {
		src := i.local[s]
		if s == i.locals-1 {
			i.stride.put(dst, src)
			return
		}
		copy(dst, src)
		dst = dst[len(src):]
	}
}

func (i *Initiator) read(wr *ring.SendWR) reason {
	if i.terms.Flags&Answers == 0 || wr.Flags&ring.Inline != 0 {
		return otherRequest
	}
	n, why := i.gather(wr, memory.LocalWrite)
	if why != noReason {
		return why
	}
	src, why := i.target(wr, n, memory.RemoteRead)
	if why != noReason {
		return why
	}
	if i.far.n == 0 {
		i.fetch(src)
	} else if why := i.getFar(); why != noReason {
		return why
	}
	return i.complete(wr, CountRead, n)
}

// fetch copies src to the request's memory.
func (i *Initiator) fetch(src []byte) {
	for s := range i.locals {
		dst := i.local[s]
		if s == i.locals-1 {
			i.stride.put(dst, src[:len(dst)])
			return
		}
		copy(dst, src)
		src = src[len(dst):]
	}
}

func (i *Initiator) atomic(wr *ring.SendWR) reason {
	if i.terms.Flags&Answers == 0 || wr.Flags&ring.Inline != 0 || wr.RemoteAddr%8 != 0 {
		return otherRequest
	}
	n, why := i.gather(wr, memory.LocalWrite)
	if why != noReason {
		return why
	}
	if n != 8 || i.locals != 1 {
		return otherRequest
	}
	b, why := i.target(wr, 8, memory.RemoteAtomic)
	if why != noReason {
		return why
	}
	if b == nil {
		return notShared // the kernel copies, but not atomically
	}
	if uintptr(unsafe.Pointer(&b[0]))%8 != 0 {
		return otherRequest
	}
	// Claim the slot for the completion first: an atomic must not be executed twice.
	slot, why := i.claim(wr)
	if why != noReason {
		return why
	}
	p := (*uint64)(unsafe.Pointer(&b[0]))
	var old uint64
	if wr.Op == ring.OpFetchAdd {
		old = atomic.AddUint64(p, wr.CompareAdd) - wr.CompareAdd
	} else {
		for {
			old = atomic.LoadUint64(p)
			if old != wr.CompareAdd || atomic.CompareAndSwapUint64(p, old, wr.Swap) {
				break
			}
		}
	}
	memory.Place(i.local[0], (*[8]byte)(unsafe.Pointer(&old))[:])
	i.finish(wr, slot, CountAtomic, 8)
	return noReason
}
