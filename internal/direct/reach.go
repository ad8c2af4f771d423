package direct

import (
	"unsafe"

	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

// gather finds the memory of a request: local, n bytes in total.
func (i *Initiator) gather(wr *ring.SendWR, need memory.Access) (n uint64, why Reason) {
	if wr.Flags&ring.Inline != 0 {
		i.locals = 0
		if len(wr.Inline) > 0 {
			i.local[0], i.locals = wr.Inline, 1
		}
		return uint64(len(wr.Inline)), NoReason
	}
	i.locals = 0
	for s := range wr.SGE[:wr.NumSGE] {
		e := &wr.SGE[s]
		if e.Length == 0 {
			continue
		}
		k := i.env.Own.Find(i.terms.OwnAdapter, e.LKey)
		if k == nil {
			return 0, LocalMemory
		}
		off, ok := k.offset(i.terms.OwnPD, e.Addr, uint64(e.Length), need)
		if !ok {
			return 0, LocalMemory
		}
		if n += uint64(e.Length); n > maxMessage {
			return 0, OtherRequest
		}
		i.local[i.locals] = here(k.Address+off, int(e.Length))
		i.locals++
	}
	return n, NoReason
}

// here returns a slice of this program's registered memory.
func here(address uint64, n int) []byte {
	base := uintptr(address)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&base)), n)
}

// remote returns n bytes of the peer's memory.
func (i *Initiator) remote(key uint32, addr, n uint64, need memory.Access) ([]byte, Reason) {
	k := i.env.Peer.Find(i.terms.PeerAdapter, key)
	if k == nil {
		return nil, RemoteMemory
	}
	off, ok := k.offset(i.terms.PeerPD, addr, n, need)
	if !ok {
		return nil, RemoteMemory
	}
	if k.Segment == 0 {
		return nil, NotShared
	}
	if k.Segment != i.segmentID {
		mem, coming := i.env.Segment(k.Segment)
		switch {
		case coming:
			return nil, NotMapped
		case mem == nil:
			return nil, NotShared
		}
		i.segment, i.segmentID = mem, k.Segment
	}
	off += k.Offset
	if off > uint64(len(i.segment)) || n > uint64(len(i.segment))-off {
		return nil, RemoteMemory
	}
	return i.segment[off : off+n : off+n], NoReason
}

// target returns the memory for a write or read of n bytes. IBA 9.7.4.1 has no R_Key check for a length of
// 0.
func (i *Initiator) target(wr *ring.SendWR, n uint64, need memory.Access) ([]byte, Reason) {
	if memory.Access(i.terms.Access)&need == 0 {
		return nil, RemoteMemory
	}
	if n == 0 {
		return nil, NoReason
	}
	return i.remote(wr.RKey, wr.RemoteAddr, n, need)
}
