package verbs

import (
	"errors"
	"unsafe"

	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ring"
)

// SGE is a piece of registered local memory; see MR.SGE.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// SendWR is a request for the send queue. Which fields are used depends on Op.
type SendWR struct {
	ID    uint64 // returned in the completion
	Op    Opcode
	Flags SendFlags
	// SGE is the local memory: the data of sends and writes, atomic ones (8 bytes) too, or where the results of reads go (8 bytes for
	// atomics).
	SGE []SGE
	// Inline, if not nil, is sent in place of SGE. It is copied when the request is posted and needs no
	// registration. At most QPConfig.Inline bytes.
	Inline []byte

	Imm           uint32 // OpSendImm, OpWriteImm
	InvalidateKey uint32 // OpSendInvalidate, OpLocalInvalidate
	RemoteAddr    uint64 // writes, reads, atomics and flushes
	RKey          uint32

	Compare, Swap uint64 // OpCompareSwap
	Add           uint64 // OpFetchAdd

	AH         *AH    // UD: the destination
	RemoteQPN  uint32 // UD
	RemoteQKey uint32 // UD; if the top bit is set, the QP's own Q_Key is used
	RemoteSRQ  uint32 // XRC: number of the shared receive queue at the other end (SRQ.Number)

	Bind  Bind  // OpBind
	Flush Flush // OpFlush

	// Headers are those of an OpLargeSend: of TCP over IPv4 or IPv6, at most QPConfig.Headers bytes, which are copied when the request
	// is posted. SGE is the data, at most 256 KB, of which each frame has Segment bytes. Lengths, identifications, sequence numbers,
	// flags and checksums are made, whatever the headers have.
	Headers []byte
	Segment uint16
}

// Bind describes the binding of a memory window (IBA 10.6.7.2). After the post,
// Window.RKey is the key to give to the peer.
type Bind struct {
	Window *MW
	MR     *MR    // needs WindowBind
	Addr   uint64 // first byte, an address in MR
	Length uint64 // type 1: 0 unbinds
	Access Access // some of RemoteRead, RemoteWrite, RemoteAtomic
}

// RecvWR is a receive request.
type RecvWR struct {
	ID  uint64
	SGE []SGE
}

// PostSend posts a request to the send queue. The request and its SGE list may be reused when it returns;
// the memory that SGE names belongs to the adapter until the request completes. On error nothing was
// posted: ErrQueueFull until completions of earlier requests are polled, ErrInvalid naming the field,
// ErrRemoved if the adapter was disabled, ErrClosed after Close.
func (qp *QP) PostSend(wr *SendWR) error {
	qp.sendMu.Lock()
	err := qp.putSend(wr)
	rings, posted := qp.posted()
	qp.sendMu.Unlock() // a full barrier: what was put into the ring is visible before Rings looks
	if rings && qp.send.Rings(posted) {
		qp.backend.Doorbell(qp.handle)
	}
	return err
}

// posted reports whether requests put into the ring since the last call may need a doorbell, and how many
// were ever posted. The caller holds sendMu.
func (qp *QP) posted() (rings bool, count uint32) {
	rings = qp.rings
	qp.rings = false
	return rings, qp.send.Posted()
}

// PostSends posts requests in order with one doorbell and returns how many were posted before the first
// refusal.
func (qp *QP) PostSends(wrs []SendWR) (n int, err error) {
	qp.sendMu.Lock()
	for n < len(wrs) {
		if err = qp.putSend(&wrs[n]); err != nil {
			break
		}
		n++
	}
	rings, posted := qp.posted()
	qp.sendMu.Unlock() // as in PostSend
	if rings && qp.send.Rings(posted) {
		qp.backend.Doorbell(qp.handle)
	}
	return n, err
}

// PostRecv posts a receive. A QP with an SRQ has no receive queue of its own: ErrState.
func (qp *QP) PostRecv(wr *RecvWR) error {
	if err := qp.takesReceives(); err != nil {
		return err
	}
	qp.recvMu.Lock()
	err := qp.putRecv(wr)
	qp.recvMu.Unlock()
	if err == nil {
		qp.ringReceive()
	}
	return err
}

// PostRecvs posts receives in order with one doorbell and returns how many were posted before the first refusal.
func (qp *QP) PostRecvs(wrs []RecvWR) (n int, err error) {
	if err := qp.takesReceives(); err != nil {
		return 0, err
	}
	qp.recvMu.Lock()
	for n < len(wrs) {
		if err = qp.putRecv(&wrs[n]); err != nil {
			break
		}
		n++
	}
	qp.recvMu.Unlock()
	if n > 0 {
		qp.ringReceive()
	}
	return n, err
}

// ringReceive tells the adapter of receives that were posted. Until the queue pair is ready to receive nobody needs a
// doorbell: the command that makes it ready finds what is in the ring. (That command is sent after inUse is set, and inUse is
// read after the receive was put into the ring.) The receives of raw packets are looked for when a frame arrives.
func (qp *QP) ringReceive() {
	if qp.cfg.Type != RawPacket && qp.inUse.Load() && !qp.taken() {
		qp.backend.Doorbell(qp.handle)
	}
}

// initiator returns what carries out requests in the peer's memory, nil if the QP has no such path.
func (qp *QP) initiator() *direct.Initiator {
	if qp.direct == nil {
		return nil
	}
	return qp.direct.Load()
}

// taken reports whether the peer takes receives directly from the ring.
func (qp *QP) taken() bool {
	i := qp.initiator()
	return i != nil && i.Receiving()
}

func (qp *QP) putRecv(wr *RecvWR) error {
	if qp.closed {
		return errRecvClosed
	}
	if qp.receives.used() >= qp.recvPlaces {
		return errRecvFull
	}
	qp.receives.take(1)
	err := postRecv(&qp.recv, wr, qp.cfg.RecvSGE)
	if err != nil {
		qp.receives.take(-1)
	}
	return err
}

// The errors of posting are allocated in advance: a full queue is an ordinary case.
var (
	errSendFull    = &Error{Op: "post send", Class: ErrQueueFull}
	errSendRemoved = &Error{Op: "post send", Class: ErrRemoved}
	errRecvRemoved = &Error{Op: "post receive", Class: ErrRemoved}
	errSendClosed  = &Error{Op: "post send", Class: ErrClosed}
	errRecvClosed  = &Error{Op: "post receive", Class: ErrClosed}
	errSendCorrupt = &Error{Op: "post send", Class: ErrCorrupt}
	errRecvFull    = &Error{Op: "post receive", Class: ErrQueueFull}
	errRecvCorrupt = &Error{Op: "post receive", Class: ErrCorrupt}
	errNoReceives  = &Error{Op: "post receive", Class: ErrState, Detail: "a queue pair of XRC has no receive queue"}
	errNoSends     = &Error{Op: "post send", Class: ErrState, Detail: "an XRC target has no send queue"}
	errHasSRQ      = &Error{Op: "post receive", Class: ErrState, Detail: "the queue pair receives from an SRQ"}
)

// IsQueueFull reports whether err says that a queue has no room until earlier requests complete: a faster
// errors.Is(err, ErrQueueFull).
func IsQueueFull(err error) bool {
	return err == error(errSendFull) || err == error(errRecvFull) || errors.Is(err, ErrQueueFull)
}

func postRecv(r *ring.Recv, wr *RecvWR, sges int) error {
	if len(wr.SGE) > sges {
		return newError("post receive", ErrInvalid, "SGE has %d entries, at most %d", len(wr.SGE), sges)
	}
	switch err := r.PostList(wr.ID, ringSGEs(wr.SGE)); {
	case err == nil:
		return nil
	case err == ring.ErrFull:
		return errRecvFull
	case errors.Is(err, ring.ErrCorrupt):
		return errRecvCorrupt
	default:
		return newError("post receive", ErrInvalid, "%v", err)
	}
}

// ringSGEs converts a list to the ring's type without copying. Both types have the same fields, which the
// conversion of an element verifies at compile time.
func ringSGEs(list []SGE) []ring.SGE {
	_ = ring.SGE(SGE{})
	return unsafe.Slice((*ring.SGE)(unsafe.Pointer(unsafe.SliceData(list))), len(list))
}

func (qp *QP) putSend(wr *SendWR) error {
	if qp.closed {
		return errSendClosed
	}
	if qp.life.over() {
		return errSendRemoved
	}
	if qp.cfg.Type == XRCTarget {
		return errNoSends
	}
	if err := qp.checkSend(wr); err != nil {
		return err
	}
	signaled := wr.Flags&Signaled != 0 || qp.cfg.SignalAll
	if signaled && qp.sends.used() >= qp.sendPlaces {
		return errSendFull
	}
	if qp.scratch == nil {
		qp.scratch = &scratch{inline: make([]byte, max(qp.cfg.Inline, qp.cfg.Headers))}
	}
	out := &qp.scratch.wr
	out.ID, out.Op, out.Flags = wr.ID, ring.WROp(wr.Op), ring.WRFlags(wr.Flags)
	out.RemoteAddr, out.RKey = wr.RemoteAddr, wr.RKey
	out.Imm, out.CompareAdd, out.Swap, out.Access = wr.Imm, 0, 0, 0
	out.NumSGE, out.Inline = 0, nil
	if wr.Inline != nil {
		out.Flags |= ring.Inline
		// Copied, so that the caller's bytes may live on its stack.
		out.Inline = qp.scratch.inline[:copy(qp.scratch.inline, wr.Inline)]
	} else {
		out.NumSGE = uint8(len(wr.SGE))
		for i := range wr.SGE {
			out.SGE[i] = ring.SGE(wr.SGE[i])
		}
	}
	switch wr.Op {
	case OpLargeSend:
		out.Imm, out.Inline = uint32(wr.Segment), qp.scratch.inline[:copy(qp.scratch.inline, wr.Headers)]
	case OpSendInvalidate, OpLocalInvalidate:
		out.Imm = wr.InvalidateKey
	case OpCompareSwap:
		out.CompareAdd, out.Swap = wr.Compare, wr.Swap
	case OpFetchAdd:
		out.CompareAdd = wr.Add
	case OpFlush:
		out.CompareAdd, out.Access = uint64(wr.Flush.Length), wr.Flush.encoded()
	}
	switch qp.cfg.Type {
	case XRCInitiator:
		out.RemoteQPN = wr.RemoteSRQ
	case UD:
		out.AH, out.RemoteQPN, out.QKey = uint32(wr.AH.handle), wr.RemoteQPN, wr.RemoteQKey
	}
	// Counted first, so that the completion finds its request counted.
	if signaled {
		qp.sends.take(1)
	}
	var err error
	if wr.Op == OpBind {
		err = qp.putBind(&wr.Bind, out)
	} else {
		err = qp.publish(out)
	}
	if err != nil && signaled {
		qp.sends.take(-1)
	}
	return err
}

func (qp *QP) publish(out *ring.SendWR) error {
	i := qp.initiator()
	delegated := i != nil && i.Delegated()
	if delegated {
		qp.cfg.RecvCQ.answered()
	}
	if delegated && i.CatchUp(&qp.send) && i.Execute(out) {
		out.Inline = nil
		return nil
	}
	idle := qp.send.Idle()
	var err error
	if delegated { // Delegated below must not be read before the request is visible
		err = qp.send.Post(out)
	} else {
		err = qp.send.Put(out)
	}
	out.Inline = nil
	switch {
	case err == nil:
		// While the queue is delegated, a driver that was told of it watches it.
		if !delegated || idle || !i.Delegated() {
			qp.rings = true
		}
		if i != nil {
			qp.cfg.SendCQ.follow(qp)
		}
		return nil
	case err == ring.ErrFull:
		return errSendFull
	case errors.Is(err, ring.ErrCorrupt):
		return errSendCorrupt
	default:
		return newError("post send", ErrInvalid, "%v", err)
	}
}

// putBind posts a bind and gives the window its new key (see memory.Bind: the program chooses the key of a
// type 2 window; for type 1 the next one is used). Ordering concurrent binds of one window is up to the
// program.
func (qp *QP) putBind(b *Bind, out *ring.SendWR) error {
	mw := b.Window
	key := mw.rkey.Load()
	next := key&^0xff | (key+1)&0xff
	out.RKey = key
	if mw.typ == WindowType2 {
		out.RKey = next
	}
	out.Imm = 0
	if b.MR != nil {
		out.Imm = b.MR.LKey()
	}
	out.RemoteAddr, out.CompareAdd, out.Access = b.Addr, b.Length, uint32(b.Access)
	if err := qp.publish(out); err != nil {
		return err
	}
	mw.rkey.Store(next)
	return nil
}
