package nd

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/verbs"
)

// SGE is a piece of local memory (ND2_SGE): a slice of a registered buffer and
// the region's local token. See MemoryRegion.SGE.
type SGE struct {
	Buffer            []byte
	MemoryRegionToken uint32
}

// QueuePairConfig describes a queue pair.
type QueuePairConfig struct {
	ReceiveCompletionQueue   *CompletionQueue
	InitiatorCompletionQueue *CompletionQueue    // may be the same
	SharedReceiveQueue       *SharedReceiveQueue // nil: the queue pair has its own receive queue
	Context                  any                 // returned in every Result
	ReceiveQueueDepth        int                 // not with a shared receive queue
	InitiatorQueueDepth      int
	MaxReceiveRequestSGE     int // 0: 1
	MaxInitiatorRequestSGE   int // 0: 1
	InlineDataSize           int
}

// QueuePair exchanges data with the queue pair that a Connector connects it to.
type QueuePair struct {
	adapter   *Adapter
	qp        *verbs.QP
	number    uint64
	context   any
	srq       *SharedReceiveQueue
	connected atomic.Bool
	inUse     atomic.Bool // by a connector
	closed    atomic.Bool
	closing   sync.Mutex // held by Close
}

const (
	maxSGE    = 32
	fewSGE    = 4 // up to so many entries, the full list need not be cleared
	maxInline = 1024
)

// CreateQueuePair creates a queue pair; with SharedReceiveQueue set it does what CreateQueuePairWithSrq
// does. The errors ND_INVALID_PARAMETER_n identify a parameter by its position in those calls and give its
// allowed values in words.
func (a *Adapter) CreateQueuePair(c QueuePairConfig) (*QueuePair, error) {
	if err := a.checkPair(&c); err != nil {
		return nil, err
	}
	return a.createPair(c)
}

// CreateQueuePairWithSrq creates a queue pair that receives from srq.
func (a *Adapter) CreateQueuePairWithSrq(srq *SharedReceiveQueue, c QueuePairConfig) (*QueuePair, error) {
	if srq == nil {
		return nil, refuse(StatusInvalidParameter4, "Adapter.CreateQueuePairWithSrq", "srq is nil")
	}
	c.SharedReceiveQueue = srq
	return a.CreateQueuePair(c)
}

func (a *Adapter) checkPair(c *QueuePairConfig) error {
	op := "Adapter.CreateQueuePair"
	depth, receiveSGE, sge, inline := StatusInvalidParameter6, StatusInvalidParameter7, StatusInvalidParameter8, StatusInvalidParameter9
	if c.SharedReceiveQueue != nil {
		op = "Adapter.CreateQueuePairWithSrq"
		sge, inline = StatusInvalidParameter7, StatusInvalidParameter8
	}
	l := a.dev.Limits()
	sges := min(l.MaxSGE, maxSGE)
	bounded := func(s Status, field string, v, most int) error {
		if v >= 0 && v <= most {
			return nil
		}
		return refuse(s, op, "%s is %d, want 0 to %d", field, v, most)
	}
	if c.ReceiveCompletionQueue == nil || c.ReceiveCompletionQueue.adapter != a {
		return refuse(StatusInvalidParameter2, op, "ReceiveCompletionQueue is not a completion queue of this adapter")
	}
	if c.InitiatorCompletionQueue == nil || c.InitiatorCompletionQueue.adapter != a {
		return refuse(StatusInvalidParameter3, op, "InitiatorCompletionQueue is not a completion queue of this adapter")
	}
	if c.SharedReceiveQueue != nil {
		if c.SharedReceiveQueue.adapter != a {
			return refuse(StatusInvalidParameter4, op, "SharedReceiveQueue is not one of this adapter")
		}
	} else {
		if err := bounded(StatusInvalidParameter5, "ReceiveQueueDepth", c.ReceiveQueueDepth, l.MaxQPDepth); err != nil {
			return err
		}
		if err := bounded(receiveSGE, "MaxReceiveRequestSGE", c.MaxReceiveRequestSGE, sges); err != nil {
			return err
		}
	}
	if err := bounded(depth, "InitiatorQueueDepth", c.InitiatorQueueDepth, l.MaxQPDepth); err != nil {
		return err
	}
	if err := bounded(sge, "MaxInitiatorRequestSGE", c.MaxInitiatorRequestSGE, sges); err != nil {
		return err
	}
	return bounded(inline, "InlineDataSize", c.InlineDataSize, min(l.MaxInline, maxInline))
}

func (a *Adapter) createPair(c QueuePairConfig) (*QueuePair, error) {
	const op = "Adapter.CreateQueuePair"
	number := a.pairs.reserve()
	cfg := verbs.QPConfig{
		Type: verbs.RC, SendCQ: c.InitiatorCompletionQueue.cq, RecvCQ: c.ReceiveCompletionQueue.cq,
		SendDepth: c.InitiatorQueueDepth, RecvDepth: c.ReceiveQueueDepth,
		SendSGE: c.MaxInitiatorRequestSGE, RecvSGE: c.MaxReceiveRequestSGE,
		Inline: c.InlineDataSize, Context: number,
	}
	if c.SharedReceiveQueue != nil {
		cfg.SRQ = c.SharedReceiveQueue.srq
	}
	vqp, err := a.pd.CreateQP(cfg)
	if err != nil {
		a.pairs.release(number)
		return nil, fail(op, err)
	}
	// NetworkDirect allows receives on an unconnected queue pair; state Init does, too.
	err = vqp.Modify(verbs.QPAttr{State: verbs.StateInit, Access: pairAccess},
		verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskAccess)
	if err != nil {
		_ = vqp.Close()
		a.pairs.release(number)
		return nil, fail(op, err)
	}
	qp := &QueuePair{adapter: a, qp: vqp, number: number, context: c.Context, srq: c.SharedReceiveQueue}
	a.pairs.put(number, qp)
	return qp, nil
}

const pairAccess = verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic

// Context returns the context that results carry.
func (qp *QueuePair) Context() any { return qp.context }

// QP returns the underlying verbs queue pair.
func (qp *QueuePair) QP() *verbs.QP { return qp.qp }

// Flush cancels all outstanding requests: their results are ND_CANCELED. The
// queue pair can then only be closed.
func (qp *QueuePair) Flush() error { return fail("QueuePair.Flush", qp.qp.Flush()) }

// The errors of posting are allocated in advance.
var (
	errSendFull     = &Error{Status: StatusNoMoreEntries, Op: "QueuePair", Detail: "InitiatorQueueDepth requests are outstanding"}
	errReceiveFull  = &Error{Status: StatusNoMoreEntries, Op: "QueuePair.Receive", Detail: "ReceiveQueueDepth receives are outstanding"}
	errSharedFull   = &Error{Status: StatusNoMoreEntries, Op: "SharedReceiveQueue.Receive", Detail: "queueDepth receives are posted"}
	errNotConnected = &Error{Status: StatusConnectionInvalid, Op: "QueuePair", Detail: "the queue pair is not connected"}
	errTooManySGE   = &Error{Status: StatusDataOverrun, Op: "QueuePair",
		Detail: "more scatter/gather entries than the queue pair was made for"}
	errTooLong       = &Error{Status: StatusBufferOverflow, Op: "QueuePair", Detail: "more bytes than MaxTransferLength"}
	errInlineTooLong = &Error{Status: StatusBufferOverflow, Op: "QueuePair", Detail: "more bytes than InlineDataSize"}
)

// Send sends the bytes of the entries, of which there may be none, to the peer. The peer must post a
// receive: if it does not for about two seconds, the result is ND_IO_TIMEOUT. Flags: SilentSuccess,
// ReadFence, SendAndSolicitEvent, Inline. Errors: ND_CONNECTION_INVALID, ND_NO_MORE_ENTRIES,
// ND_DATA_OVERRUN (too many entries), ND_BUFFER_OVERFLOW (too many bytes), ND_INVALID_PARAMETER_4 (flags).
func (qp *QueuePair) Send(requestContext uint64, sge []SGE, flags OpFlags) error {
	const allowed = OpFlagSilentSuccess | OpFlagReadFence | OpFlagSendAndSolicitEvent | OpFlagInline
	if flags&^allowed != 0 {
		return refuse(StatusInvalidParameter4, "QueuePair.Send", "flags has bits %#x that Send has not", uint32(flags&^allowed))
	}
	return qp.transfer(verbs.OpSend, requestContext, sge, 0, 0, flags)
}

// Write writes the bytes of the entries to the peer's memory at remoteAddress under remoteToken. Flags:
// SilentSuccess, ReadFence, Inline; others are ND_INVALID_PARAMETER_6. Other errors as for Send.
func (qp *QueuePair) Write(requestContext uint64, sge []SGE, remoteAddress uint64, remoteToken uint32, flags OpFlags) error {
	const allowed = OpFlagSilentSuccess | OpFlagReadFence | OpFlagInline
	if flags&^allowed != 0 {
		return refuse(StatusInvalidParameter6, "QueuePair.Write", "flags has bits %#x that Write has not", uint32(flags&^allowed))
	}
	return qp.transfer(verbs.OpWrite, requestContext, sge, remoteAddress, remoteToken, flags)
}

// Read reads from the peer's memory at remoteAddress under remoteToken into the entries, whose regions
// must allow local write. Flags: SilentSuccess, ReadFence; others are ND_INVALID_PARAMETER_6. Other errors
// as for Send.
func (qp *QueuePair) Read(requestContext uint64, sge []SGE, remoteAddress uint64, remoteToken uint32, flags OpFlags) error {
	const allowed = OpFlagSilentSuccess | OpFlagReadFence
	if flags&^allowed != 0 {
		return refuse(StatusInvalidParameter6, "QueuePair.Read", "flags has bits %#x that Read has not", uint32(flags&^allowed))
	}
	return qp.transfer(verbs.OpRead, requestContext, sge, remoteAddress, remoteToken, flags)
}

// transfer posts a request for the entries. It builds the request itself, next to the list of addresses,
// so that the list stays on the stack; having callers fill a request would cost a copy of what was just
// written, which takes as long as posting it.
func (qp *QueuePair) transfer(op verbs.Opcode, id uint64, sge []SGE, remote uint64, key uint32, flags OpFlags) error {
	if !qp.connected.Load() {
		return errNotConnected
	}
	if flags&OpFlagInline != 0 {
		return qp.transferInline(op, id, sge, remote, key, flags)
	}
	if len(sge) > qp.qp.SendSGE() {
		return errTooManySGE
	}
	var wr verbs.SendWR
	wr.Op, wr.ID, wr.Flags, wr.RemoteAddr, wr.RKey = op, id, flags.verbs(), remote, key
	var few [fewSGE]verbs.SGE
	wr.SGE = few[:]
	if len(sge) > fewSGE {
		wr.SGE = make([]verbs.SGE, maxSGE)
	}
	wr.SGE = wr.SGE[:len(sge)]
	if err := fill(wr.SGE, sge, qp.adapter.dev.Limits().MaxMessage); err != nil {
		return err
	}
	return qp.post(&wr)
}

// transferInline gathers the bytes first, so that the entries need no region and may be any number.
func (qp *QueuePair) transferInline(op verbs.Opcode, id uint64, sge []SGE, remote uint64, key uint32, flags OpFlags) error {
	var wr verbs.SendWR
	wr.Op, wr.ID, wr.Flags, wr.RemoteAddr, wr.RKey = op, id, flags.verbs(), remote, key
	var buf [maxInline]byte
	n, room := 0, qp.qp.Inline()
	for i := range sge {
		if len(sge[i].Buffer) > room-n {
			return errInlineTooLong
		}
		n += copy(buf[n:], sge[i].Buffer)
	}
	wr.Inline = buf[:n]
	return qp.post(&wr)
}

func (qp *QueuePair) post(wr *verbs.SendWR) error {
	err := qp.qp.PostSend(wr)
	if err == nil {
		return nil
	}
	if verbs.IsQueueFull(err) {
		return errSendFull
	}
	return fail("QueuePair", err)
}

// fill converts entries to addresses.
func fill(out []verbs.SGE, sge []SGE, most uint64) error {
	total := uint64(0)
	for i := range sge {
		b := sge[i].Buffer
		total += uint64(len(b))
		if total > most || len(b) > math.MaxUint32 {
			return errTooLong
		}
		out[i] = verbs.SGE{
			Addr:   uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))),
			Length: uint32(len(b)), LKey: sge[i].MemoryRegionToken,
		}
	}
	return nil
}

// Receive posts entries, possibly none, for one Send of the peer. It may be called before the queue pair
// is connected. A longer Send fails, with ND_BUFFER_OVERFLOW as the receive's result. Errors:
// ND_NO_MORE_ENTRIES, ND_DATA_OVERRUN (too many entries), ND_INVALID_DEVICE_STATE (the queue pair uses a
// shared receive queue).
func (qp *QueuePair) Receive(requestContext uint64, sge []SGE) error {
	if qp.srq != nil {
		return refuse(StatusInvalidDeviceState, "QueuePair.Receive", "the queue pair uses a shared receive queue")
	}
	if len(sge) > qp.qp.RecvSGE() {
		return errTooManySGE
	}
	var few [fewSGE]verbs.SGE
	list := few[:]
	if len(sge) > fewSGE {
		list = make([]verbs.SGE, maxSGE)
	}
	wr := verbs.RecvWR{ID: requestContext, SGE: list[:len(sge)]}
	if err := fill(wr.SGE, sge, qp.adapter.dev.Limits().MaxMessage); err != nil {
		return err
	}
	err := qp.qp.PostRecv(&wr)
	if err == nil {
		return nil
	}
	if verbs.IsQueueFull(err) {
		return errReceiveFull
	}
	return fail("QueuePair.Receive", err)
}

// Bind binds a window to buffer, which must lie in region, so that the peer may read or write it. Flags:
// AllowRead, AllowWrite (at least one of them; AllowWrite needs a region with MRFlagAllowLocalWrite, else
// ND_ACCESS_VIOLATION), SilentSuccess, ReadFence. A bound window must be invalidated first, otherwise the
// result is ND_INVALID_DEVICE_REQUEST.
func (qp *QueuePair) Bind(requestContext uint64, region *MemoryRegion, window *MemoryWindow, buffer []byte, flags OpFlags) error {
	const op = "QueuePair.Bind"
	const allowed = OpFlagSilentSuccess | OpFlagReadFence | OpFlagAllowRead | OpFlagAllowWrite
	mr := region.region()
	switch {
	case mr == nil || region.adapter != qp.adapter:
		return refuse(StatusInvalidParameter2, op, "region is not one of this adapter with memory")
	case window == nil || window.adapter != qp.adapter:
		return refuse(StatusInvalidParameter3, op, "window is not one of this adapter")
	case flags&^allowed != 0 || flags&(OpFlagAllowRead|OpFlagAllowWrite) == 0:
		return refuse(StatusInvalidParameter6, op, "flags is %#x, want AllowRead, AllowWrite or both, with SilentSuccess and ReadFence",
			uint32(flags))
	case len(buffer) == 0:
		return refuse(StatusInvalidBufferSize, op, "buffer is empty")
	case flags&OpFlagAllowWrite != 0 && mr.Access()&verbs.LocalWrite == 0:
		return refuse(StatusAccessViolation, op, "AllowWrite needs a region with MRFlagAllowLocalWrite")
	}
	addr := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buffer))))
	if addr < mr.Addr() || addr+uint64(len(buffer)) > mr.Addr()+uint64(mr.Len()) {
		return refuse(StatusAccessViolation, op, "buffer does not lie in the region")
	}
	if !qp.connected.Load() {
		return errNotConnected
	}
	var access verbs.Access
	if flags&OpFlagAllowRead != 0 {
		access |= verbs.RemoteRead
	}
	if flags&OpFlagAllowWrite != 0 {
		access |= verbs.RemoteWrite
	}
	wr := verbs.SendWR{ID: requestContext, Op: verbs.OpBind, Flags: flags.verbs(), Bind: verbs.Bind{
		Window: window.mw, MR: mr, Addr: addr, Length: uint64(len(buffer)), Access: access,
	}}
	return qp.post(&wr)
}

// Invalidate ends the peer's access through a window, which may then be bound again. Flags: SilentSuccess,
// ReadFence; others are ND_INVALID_PARAMETER_3.
func (qp *QueuePair) Invalidate(requestContext uint64, window *MemoryWindow, flags OpFlags) error {
	const op = "QueuePair.Invalidate"
	const allowed = OpFlagSilentSuccess | OpFlagReadFence
	switch {
	case window == nil || window.adapter != qp.adapter:
		return refuse(StatusInvalidParameter2, op, "window is not one of this adapter")
	case flags&^allowed != 0:
		return refuse(StatusInvalidParameter3, op, "flags has bits %#x that Invalidate has not", uint32(flags&^allowed))
	case !qp.connected.Load():
		return errNotConnected
	}
	wr := verbs.SendWR{ID: requestContext, Op: verbs.OpLocalInvalidate, Flags: flags.verbs(), InvalidateKey: window.mw.RKey()}
	return qp.post(&wr)
}

// Close destroys the queue pair and ends its connection. Take its results first: later ones have no
// QueuePairContext.
func (qp *QueuePair) Close() error {
	qp.closing.Lock() // a concurrent Close returns only once it is closed
	defer qp.closing.Unlock()
	if !qp.closed.CompareAndSwap(false, true) {
		return nil
	}
	qp.connected.Store(false)
	if err := qp.qp.Close(); err != nil {
		qp.closed.Store(false)
		return fail("QueuePair.Close", err)
	}
	qp.adapter.pairs.release(qp.number)
	return nil
}
