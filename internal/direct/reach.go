package direct

import (
	"unsafe"

	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

// gather finds the memory of a request: local, n bytes in total.
func (i *Initiator) gather(wr *ring.SendWR, need memory.Access) (n uint64, why reason) {
	if wr.Flags&ring.Inline != 0 {
		i.locals = 0
		if len(wr.Inline) > 0 {
			i.local[0], i.locals = wr.Inline, 1
		}
		return uint64(len(wr.Inline)), noReason
	}
	i.locals = 0
	for s := range wr.SGE[:wr.NumSGE] {
		e := &wr.SGE[s]
		if e.Length == 0 {
			continue
		}
		k := i.env.Own.Find(i.terms.OwnAdapter, e.LKey)
		if k == nil {
			return 0, localMemory
		}
		off, ok := k.offset(i.terms.OwnPD, e.Addr, uint64(e.Length), need)
		if !ok {
			return 0, localMemory
		}
		if n += uint64(e.Length); n > maxMessage {
			return 0, otherRequest
		}
		if memory.Access(k.Access)&memory.OnDemand != 0 && k.Segment == 0 {
			return 0, otherRequest // its pages may be missing, which is no error of this process to the driver
		}
		i.local[i.locals] = here(k.Address+off, int(e.Length))
		i.locals++
	}
	return n, noReason
}

// here returns a slice of this program's registered memory.
func here(address uint64, n int) []byte {
	base := uintptr(address)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&base)), n)
}

// remote returns n bytes of the peer's memory; nil: they are in its process only, and the next of the pieces in
// far.
func (i *Initiator) remote(key uint32, addr, n uint64, need memory.Access) ([]byte, reason) {
	k := i.env.Peer.Find(i.terms.PeerAdapter, key)
	if k == nil {
		return nil, remoteMemory
	}
	off, ok := k.offset(i.terms.PeerPD, addr, n, need)
	if !ok {
		return nil, remoteMemory
	}
	if k.Segment == 0 {
		return nil, i.reachFar(k.Address+off, n)
	}
	if k.Segment != i.segmentID {
		mem, coming := i.env.Segment(k.Segment)
		switch {
		case coming:
			return nil, notMapped
		case mem == nil:
			return nil, notShared
		}
		i.segment, i.segmentID = mem, k.Segment
	}
	off += k.Offset
	if off > uint64(len(i.segment)) || n > uint64(len(i.segment))-off {
		return nil, remoteMemory
	}
	return i.segment[off : off+n : off+n], noReason
}

// target returns the memory for a write or read of n bytes, as remote does. IBA 9.7.4.1 has no R_Key check for a length of
// 0.
func (i *Initiator) target(wr *ring.SendWR, n uint64, need memory.Access) ([]byte, reason) {
	i.far.start()
	if memory.Access(i.terms.Access)&need == 0 {
		return nil, remoteMemory
	}
	if n == 0 {
		return nil, noReason
	}
	return i.remote(wr.RKey, wr.RemoteAddr, n, need)
}
