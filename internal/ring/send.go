package ring

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
)

const (
	sendHeader = 64
	recvHeader = 16
	sgeSize    = 16
	// MaxSGE is the maximum number of scatter/gather elements of a request.
	MaxSGE = 32
	// MaxInline is the maximum number of bytes of inline data of a send.
	MaxInline = 1024
	maxStride = sendHeader + MaxInline
)

// SGE is a piece of local memory (IBA 10.6.4).
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// SendWR is a send request as a program posts it: the fields of a Work, and its elements, of which the first NumSGE count.
type SendWR struct {
	Op         WROp
	Flags      WRFlags
	NumSGE     uint8
	Imm        uint32
	ID         uint64
	RemoteAddr uint64
	RKey       uint32
	CompareAdd uint64
	Swap       uint64
	AH         uint32
	RemoteQPN  uint32
	QKey       uint32
	Access     uint32
	Inline     []byte
	SGE        [MaxSGE]SGE // last, because most requests only use the first element
}

// set makes all but the elements w's.
func (wr *SendWR) set(w *Work) {
	wr.Op, wr.Flags, wr.NumSGE, wr.Imm, wr.ID, wr.Inline = w.Op, w.Flags, w.NumSGE, w.Imm, w.ID, w.Inline
	wr.RemoteAddr, wr.RKey, wr.CompareAdd, wr.Swap, wr.Access = w.RemoteAddr, w.RKey, w.CompareAdd, w.Swap, w.Access
	wr.AH, wr.RemoteQPN, wr.QKey = w.AH, w.RemoteQPN, w.QKey
}

// Work is a send request as the loop takes it, without its elements. The fields used depend on Op; docs/spec/ipc.md has the table.
type Work struct {
	Op     WROp
	Flags  WRFlags
	NumSGE uint8
	// Imm is the immediate data, the rkey to invalidate (OpSendInv,
	// OpLocalInvalidate), the lkey of the region to bind to (OpBind), or the bytes of data in a frame (OpLargeSend).
	Imm        uint32
	ID         uint64
	RemoteAddr uint64 // OpBind: first address of the window
	RKey       uint32 // OpBind: the window's rkey, see memory.Bind
	CompareAdd uint64 // OpCompareSwap: compare; OpFetchAdd: add; OpBind, OpFlush: length
	Swap       uint64 // OpCompareSwap: swap
	AH         uint32 // UD: address handle
	RemoteQPN  uint32 // UD
	QKey       uint32 // UD
	Access     uint32 // OpBind: memory.Access bits; OpFlush: see FlushOf
	// Inline is the data of a request with the flag Inline, or the headers of an OpLargeSend, whose data is in its elements.
	// It points into the entry: it is valid until the entry is released, and a hostile program may change it meanwhile.
	Inline []byte
}

// SendGeometry returns the shape of a send ring for requests of at most sge
// elements or inline bytes of inline data.
func SendGeometry(depth, sge, inline int) Geometry {
	n := max(sge*sgeSize, inline)
	return Geometry{Entries: entries(depth), Stride: sendHeader + (n+63)&^63}
}

// HeaderRoom returns the space in an entry that n bytes of headers of an OpLargeSend take, in front of its elements.
func HeaderRoom(n int) int { return (n + sgeSize - 1) &^ (sgeSize - 1) }

// LargeRoom returns the inline bytes with which an entry has room for an OpLargeSend.
func LargeRoom(headers, sge int) int { return HeaderRoom(headers) + sge*sgeSize }

// Send is a send ring. A program fills it with Post; the loop empties it with
// Next and gives entries back with Release when their requests have completed.
type Send struct {
	base
	p         producer
	c         consumer
	delegated bool
}

// OpenSend opens the ring in b, new zeroed memory.
func OpenSend(b []byte, g Geometry) (*Send, error) {
	s := new(Send)
	if err := s.Open(b, g); err != nil {
		return nil, err
	}
	return s, nil
}

// Open is OpenSend for a Send that already has its place in memory.
func (s *Send) Open(b []byte, g Geometry) error {
	r, err := open(b, g, sendHeader)
	if err == nil {
		*s = Send{base: r}
	}
	return err
}

// Room returns how many requests can be posted. Producer side only.
func (s *Send) Room() int {
	s.p.seen = s.h.consumer.Load()
	return int(max(0, int64(s.count)-int64(s.p.next-s.p.seen)))
}

// Post publishes a request: ErrFull if there is no free entry, errLayout if it does not fit one. Post is a
// full barrier: later loads are not reordered before it. Producer side only.
func (s *Send) Post(wr *SendWR) error {
	if err := s.Put(wr); err != nil {
		return err
	}
	s.h.producer.Store(s.p.next)
	return nil
}

// Put is Post without the full barrier, for callers that execute a store of sync/atomic anyway before they
// call Rings. Producer side only.
func (s *Send) Put(wr *SendWR) error {
	if err := s.p.room(&s.base); err != nil {
		return err
	}
	b := s.slot(s.p.next)
	le := binary.LittleEndian
	inline := uint32(0)
	if wr.Op == OpLargeSend {
		at := HeaderRoom(len(wr.Inline))
		if int(wr.NumSGE) > MaxSGE || at+int(wr.NumSGE)*sgeSize > len(b)-sendHeader {
			return fmt.Errorf("%w: %d bytes of headers and %d SGEs: allowed: %d bytes in all", errLayout, len(wr.Inline), wr.NumSGE, len(b)-sendHeader)
		}
		inline = uint32(copy(b[sendHeader:], wr.Inline))
		putSGEs(b[sendHeader+at:], wr.SGE[:wr.NumSGE])
	} else if wr.Flags&Inline != 0 {
		if len(wr.Inline) > len(b)-sendHeader {
			return fmt.Errorf("%w: %d bytes inline: allowed: up to %d", errLayout, len(wr.Inline), len(b)-sendHeader)
		}
		inline = uint32(copy(b[sendHeader:], wr.Inline))
	} else {
		if int(wr.NumSGE) > min(MaxSGE, (len(b)-sendHeader)/sgeSize) {
			return fmt.Errorf("%w: %d SGEs: allowed: up to %d", errLayout, wr.NumSGE, min(MaxSGE, (len(b)-sendHeader)/sgeSize))
		}
		putSGEs(b[sendHeader:], wr.SGE[:wr.NumSGE])
	}
	h := (*[sendHeader]byte)(b) // of known length: no field is checked against it
	h[0], h[1], h[2], h[3] = uint8(wr.Op), uint8(wr.Flags), wr.NumSGE, 0
	if inline > 0 && wr.Op != OpLargeSend {
		h[2] = 0
	}
	le.PutUint32(h[4:], wr.Imm)
	le.PutUint64(h[8:], wr.ID)
	le.PutUint64(h[16:], wr.RemoteAddr)
	le.PutUint32(h[24:], wr.RKey)
	le.PutUint32(h[28:], inline)
	le.PutUint64(h[32:], wr.CompareAdd)
	le.PutUint64(h[40:], wr.Swap)
	le.PutUint32(h[48:], wr.AH)
	le.PutUint32(h[52:], wr.RemoteQPN)
	le.PutUint32(h[56:], wr.QKey)
	le.PutUint32(h[60:], wr.Access)
	s.p.publish(&s.base)
	return nil
}

// Pending returns how many requests wait to be taken. Consumer side only.
func (s *Send) Pending() (int, error) {
	if s.delegated {
		return s.waiting(), nil
	}
	n, err := s.c.refresh(&s.base)
	return int(n), err
}

// Next takes the next request, without its elements; false if there is none. ErrCorrupt ends the queue. Consumer side only.
func (s *Send) Next(w *Work) (bool, error) {
	if s.delegated {
		return false, nil
	}
	n, err := s.c.pending(&s.base)
	if n == 0 || err != nil {
		return false, err
	}
	if field, v := w.get(s.slot(s.c.next)); field != "" {
		return false, s.c.fail(field, v)
	}
	s.c.next++
	return true, nil
}

// Elements copies those of w, which was taken last, to sges, which has room for NumSGE. Consumer side only.
func (s *Send) Elements(w *Work, sges []SGE) { w.elements(s.slot(s.c.next-1), sges) }

func (w *Work) elements(entry []byte, sges []SGE) {
	at := sendHeader
	if w.Op == OpLargeSend {
		at += HeaderRoom(len(w.Inline))
	}
	getSGEs(sges, entry[at:])
}

// get decodes a request from an entry. It returns the name and value of an invalid field.
func (w *Work) get(b []byte) (field string, v uint64) {
	le := binary.LittleEndian
	h := (*[sendHeader]byte)(b) // of known length: no field is checked against it
	// One pass over the entry: what is checked below is the copy.
	w.Op, w.Flags, w.NumSGE = WROp(h[0]), WRFlags(h[1]), h[2]
	w.Imm = le.Uint32(h[4:])
	w.ID = le.Uint64(h[8:])
	w.RemoteAddr = le.Uint64(h[16:])
	w.RKey = le.Uint32(h[24:])
	inline := le.Uint32(h[28:])
	w.CompareAdd = le.Uint64(h[32:])
	w.Swap = le.Uint64(h[40:])
	w.AH = le.Uint32(h[48:])
	w.RemoteQPN = le.Uint32(h[52:])
	w.QKey = le.Uint32(h[56:])
	w.Access = le.Uint32(h[60:])
	w.Inline = nil
	room := len(b) - sendHeader
	switch {
	case !w.Op.Valid():
		return "operation", uint64(w.Op)
	case w.Op == OpLargeSend:
		if uint64(inline) > uint64(room) {
			return "length of headers", uint64(inline)
		}
		at := HeaderRoom(int(inline))
		if int(w.NumSGE) > MaxSGE || at+int(w.NumSGE)*sgeSize > room {
			return "number of SGEs", uint64(w.NumSGE)
		}
		w.Flags &^= Inline
		w.Inline = b[sendHeader : sendHeader+inline : sendHeader+inline]
	case w.Flags&Inline != 0:
		if uint64(inline) > uint64(room) {
			return "inline length", uint64(inline)
		}
		w.NumSGE = 0
		w.Inline = b[sendHeader : sendHeader+inline : sendHeader+inline]
	case int(w.NumSGE) > MaxSGE || int(w.NumSGE)*sgeSize > room:
		return "number of SGEs", uint64(w.NumSGE)
	}
	return "", 0
}

// Release gives back the n oldest taken entries, whose requests have completed. Consumer side only.
func (s *Send) Release(n int) { s.c.release(&s.base, uint32(n)) }

// Quiet declares that the next n requests, counted from the last one taken, need no doorbell, because the
// loop will look at the ring shortly. Consumer side only.
func (s *Send) Quiet(n int) { s.h.quiet.Store(s.c.next + uint32(n)) }

// Loud ends what Quiet began. Everything posted without a doorbell can be taken once it returns. Consumer
// side only.
func (s *Send) Loud() { s.h.quiet.Store(0) }

// Posted returns how many requests were ever posted; it wraps. Producer side only.
func (s *Send) Posted() uint32 { return s.p.next }

// Rings reports whether the last of posted requests (a value of Posted) needs a doorbell. Any thread of
// the producer.
func (s *Send) Rings(posted uint32) bool {
	// Must follow the store of the producer index, as the consumer calls Loud before it looks at that index.
	q := s.h.quiet.Load()
	return q == 0 || int32(posted-q) > 0
}

func (c *consumer) fail(field string, v uint64) error {
	c.broken = true
	return fmt.Errorf("%w: %s %d in an entry", ErrCorrupt, field, v)
}

func putSGEs(b []byte, sges []SGE) {
	le := binary.LittleEndian
	for i := range sges {
		e := (*[sgeSize]byte)(b[i*sgeSize:])
		le.PutUint64(e[:], sges[i].Addr)
		le.PutUint32(e[8:], sges[i].Length)
		le.PutUint32(e[12:], sges[i].LKey)
	}
}

func getSGEs(sges []SGE, b []byte) {
	le := binary.LittleEndian
	for i := range sges {
		e := (*[sgeSize]byte)(b[i*sgeSize:])
		sges[i] = SGE{Addr: le.Uint64(e[:]), Length: le.Uint32(e[8:]), LKey: le.Uint32(e[12:])}
	}
}

// Prefetch asks for the memory in which the next n requests are posted and taken: in step 0 for what this side keeps
// itself, and in step 1 for both indices and the entries. Consumer side only.
func (s *Send) Prefetch(step, n int) {
	switch step {
	case 0:
		prefetch.Lines(unsafe.Pointer(s), unsafe.Sizeof(*s))
	case 1:
		prefetch.Lines(unsafe.Pointer(s.h), unsafe.Offsetof(s.h.arm))
		for i := range min(uint32(n), s.count) {
			prefetch.Lines(unsafe.Pointer(&s.slot(s.c.next + i)[0]), sendHeader+sgeSize)
		}
	}
}
