package verbs

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ring"
)

// QPType is the transport service of a QP.
type QPType uint32

// The transport services.
const (
	RC = QPType(command.RC) // reliable connection
	UC = QPType(command.UC) // unreliable connection
	UD = QPType(command.UD) // unreliable datagram

	XRCInitiator = QPType(command.XRCInitiator) // sending end of an extended reliable connection
	XRCTarget    = QPType(command.XRCTarget)    // its receiving end, see XRCDomain.CreateTarget

	RawPacket = QPType(command.RawPacket) // whole Ethernet frames, see QP.CreateFlow
)

// String returns "RC", "UC", "UD", "XRC initiator", "XRC target" or "raw packet".
func (t QPType) String() string {
	switch t {
	case RC:
		return "RC"
	case UC:
		return "UC"
	case UD:
		return "UD"
	case XRCInitiator:
		return "XRC initiator"
	case XRCTarget:
		return "XRC target"
	case RawPacket:
		return "raw packet"
	}
	return fmt.Sprintf("QP type %d", uint32(t))
}

// QPState is a state of a QP (IBA 10.3.1).
type QPState uint32

// The states.
const (
	StateReset = QPState(command.Reset)
	StateInit  = QPState(command.Init)
	StateRTR   = QPState(command.RTR)
	StateRTS   = QPState(command.RTS)
	StateSQD   = QPState(command.SQD)
	StateSQE   = QPState(command.SQE)
	StateError = QPState(command.Err)
)

// String returns the state's name in the specification.
func (s QPState) String() string {
	names := [...]string{"Reset", "Init", "RTR", "RTS", "SQD", "SQE", "Error"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", uint32(s))
}

// QPConfig describes a QP.
type QPConfig struct {
	Type           QPType // 0: RC. XRCTarget has its own constructor, XRCDomain.CreateTarget
	SendCQ, RecvCQ *CQ    // may be the same; an XRCInitiator has no RecvCQ
	SRQ            *SRQ   // nil: the QP has its own receive queue, unless it is an XRCInitiator
	SendDepth      int    // at least so many requests may be outstanding
	RecvDepth      int
	SendSGE        int // scatter/gather entries of a request; 0: 1
	RecvSGE        int
	Inline         int  // bytes of inline data
	Headers        int  // RawPacket: bytes of headers of an OpLargeSend, up to 128; 0: there are none
	SignalAll      bool // every send completes, Signaled or not
	BlockSelf      bool // UD and RawPacket: what it sends to multicast groups does not come back to it
	Frames         FrameOptions
	Context        uint64 // returned in completions and events
}

// QP is a queue pair.
type QP struct {
	pd      *PD
	backend backend
	handle  command.Handle
	number  uint32
	cfg     QPConfig
	life    life
	sums    bool // sends may ask for Checksums
	closed  bool // protected by sendMu and recvMu; both are held to change it

	// Occupied places of the queues: signaled requests and receives whose completions have not been
	// polled.
	sends, receives        places
	sendPlaces, recvPlaces int32

	direct *direct.Slot // nil if requests always go to the adapter

	inUse atomic.Bool // the QP may be ready to receive or in the error state: receives ring the doorbell

	sendMu   sync.Mutex
	followed bool // in the list of its send CQ
	rings    bool // a request was put into the ring; ring the doorbell if the ring asks for it
	send     ring.Send
	scratch  *scratch // created by the first request: many connections stay idle for long

	recvMu sync.Mutex
	recv   ring.Recv // not opened if there is an SRQ
}

// scratch is where a request is assembled.
type scratch struct {
	wr     ring.SendWR
	inline []byte
}

// receives reports whether the QP has a receive queue of its own.
func (c *QPConfig) receives() bool { return c.SRQ == nil && (c.Type <= UD || c.Type == RawPacket) }

func (c *QPConfig) check(l *Attributes) error {
	bad := func(field string, v, low, high int) error {
		return newError("create qp", ErrInvalid, "%s is %d, want %d to %d", field, v, low, high)
	}
	recv := c.receives()
	switch {
	case c.Type < RC || c.Type > RawPacket || c.Type == XRCTarget:
		return newError("create qp", ErrInvalid, "Type is %d, want RC, UC, UD, XRCInitiator or RawPacket", uint32(c.Type))
	case c.Type == XRCInitiator && (c.RecvCQ != nil || c.SRQ != nil):
		return newError("create qp", ErrInvalid, "RecvCQ or SRQ is not nil, but an XRC initiator receives nothing")
	case c.BlockSelf && c.Type != UD && c.Type != RawPacket:
		return newError("create qp", ErrInvalid, "BlockSelf is set for %v, want it only for UD and RawPacket", c.Type)
	case c.Frames != 0 && c.Type != RawPacket:
		return newError("create qp", ErrInvalid, "Frames is set for %v, want it only for RawPacket", c.Type)
	case c.Frames&^allFrameOptions != 0:
		return newError("create qp", ErrInvalid, "Frames is %#x, want bits of %#x", uint32(c.Frames), uint32(allFrameOptions))
	case c.SendCQ == nil:
		return newError("create qp", ErrInvalid, "SendCQ is nil")
	case c.RecvCQ == nil && c.Type != XRCInitiator:
		return newError("create qp", ErrInvalid, "RecvCQ is nil")
	case c.SendDepth < 0 || c.SendDepth > l.MaxQPDepth:
		return bad("SendDepth", c.SendDepth, 0, l.MaxQPDepth)
	case recv && (c.RecvDepth < 0 || c.RecvDepth > l.MaxQPDepth):
		return bad("RecvDepth", c.RecvDepth, 0, l.MaxQPDepth)
	case c.SendSGE < 0 || c.SendSGE > l.MaxSGE:
		return bad("SendSGE", c.SendSGE, 0, l.MaxSGE)
	case recv && (c.RecvSGE < 0 || c.RecvSGE > l.MaxSGE):
		return bad("RecvSGE", c.RecvSGE, 0, l.MaxSGE)
	case c.Inline < 0 || c.Inline > l.MaxInline:
		return bad("Inline", c.Inline, 0, l.MaxInline)
	case c.Headers < 0 || c.Headers > command.MostHeaders:
		return bad("Headers", c.Headers, 0, command.MostHeaders)
	case c.Headers != 0 && c.Type != RawPacket:
		return newError("create qp", ErrInvalid, "Headers is set for %v, want it only for RawPacket", c.Type)
	}
	return nil
}

// CreateQP creates a queue pair in state Reset.
func (pd *PD) CreateQP(c QPConfig) (*QP, error) {
	if c.Type == 0 {
		c.Type = RC
	}
	if err := c.check(&pd.dev.limit); err != nil {
		return nil, err
	}
	c.SendDepth, c.SendSGE, c.RecvSGE = max(c.SendDepth, 1), max(c.SendSGE, 1), max(c.RecvSGE, 1)
	cmd := command.CreateQP{
		PD: pd.handle, Type: command.QPType(c.Type), SendCQ: c.SendCQ.handle,
		SendDepth: uint32(c.SendDepth), SendSGE: uint32(c.SendSGE), Inline: uint32(c.Inline), Context: c.Context,
	}
	if c.Headers > 0 || c.Frames != 0 || c.BlockSelf && c.Type == RawPacket {
		if err := c.checkFrames(pd.dev); err != nil {
			return nil, err
		}
		cmd.Flags |= uint32(c.Frames)
	}
	if c.Headers > 0 { // with the elements behind them
		cmd.Inline = max(cmd.Inline, uint32(ring.LargeRoom(c.Headers, c.SendSGE)))
	}
	if c.RecvCQ != nil {
		cmd.RecvCQ = c.RecvCQ.handle
	}
	if c.SRQ != nil {
		cmd.SRQ = c.SRQ.handle
	} else if c.receives() {
		c.RecvDepth = max(c.RecvDepth, 1)
		cmd.RecvDepth, cmd.RecvSGE = uint32(c.RecvDepth), uint32(c.RecvSGE)
	}
	if c.SignalAll {
		cmd.Flags |= command.QPSignalAll
	}
	if c.BlockSelf {
		cmd.Flags |= command.QPBlockSelfMulticast
	}
	h, life := pd.dev.host, pd.dev.live()
	q, err := h.backend.CreateQP(h.ctx, cmd)
	if err != nil {
		return nil, wrap("create qp", err)
	}
	qp := &QP{pd: pd, backend: h.backend, handle: q.Handle, number: q.Number, cfg: c, life: life}
	if err := qp.open(&q); err != nil {
		_ = qp.Close()
		return nil, err
	}
	if d, ok := h.backend.(introducer); ok && c.Type == RC {
		qp.direct = d.Direct(q.Handle, q.Number)
	}
	if c.Type == RawPacket {
		p, err := pd.dev.FramePort()
		qp.sums = err == nil && p.Offloads&FrameChecksums != 0 // older drivers do not tell
	}
	qp.sendPlaces, qp.recvPlaces = int32(q.SendDepth), int32(q.RecvDepth)
	c.SendCQ.use(qp)
	if c.RecvCQ != nil {
		c.RecvCQ.use(qp)
	}
	return qp, nil
}

func (qp *QP) open(q *command.QueuePair) error {
	h := qp.pd.dev.host
	mem, err := h.ringMemory(q.Send)
	if err != nil {
		return err
	}
	if err := qp.send.Open(mem, ring.Geometry{Entries: int(q.SendDepth), Stride: int(q.SendStride)}); err != nil {
		return newError("map ring", ErrInternal, "%v", err)
	}
	if !qp.cfg.receives() {
		return nil
	}
	if mem, err = h.ringMemory(q.Recv); err != nil {
		return err
	}
	if err := qp.recv.Open(mem, ring.Geometry{Entries: int(q.RecvDepth), Stride: int(q.RecvStride)}); err != nil {
		return newError("map ring", ErrInternal, "%v", err)
	}
	return nil
}

// Number returns the 24-bit QP number by which peers address the QP.
func (qp *QP) Number() uint32 { return qp.number }

// Handle returns the number by which events name the QP.
func (qp *QP) Handle() uint32 { return uint32(qp.handle) }

// PD returns the protection domain, nil for an XRC target: the SRQ that a request names has one.
func (qp *QP) PD() *PD {
	if qp.cfg.Type == XRCTarget {
		return nil
	}
	return qp.pd
}

// SendSGE returns how many scatter/gather entries a request may have.
func (qp *QP) SendSGE() int { return qp.cfg.SendSGE }

// RecvSGE returns how many scatter/gather entries a receive may have.
func (qp *QP) RecvSGE() int { return qp.cfg.RecvSGE }

// Inline returns how many bytes of inline data a request may have.
func (qp *QP) Inline() int { return qp.cfg.Inline }

// Config returns the configuration of the QP with defaults filled in.
func (qp *QP) Config() QPConfig { return qp.cfg }

// Flush moves the QP to the error state: outstanding requests complete with
// WRFlush, in order.
func (qp *QP) Flush() error { return qp.Modify(QPAttr{State: StateError}, MaskState) }

// JoinMulticast makes a UD QP receive what is sent to group, an IPv4 or IPv6 multicast address; the
// adapter joins it (IGMP, MLD).
func (qp *QP) JoinMulticast(group netip.Addr) error {
	if !group.IsMulticast() {
		return newError("join multicast", ErrInvalid, "group %s is not a multicast address", group)
	}
	h := qp.pd.dev.host
	return wrap("join multicast", h.backend.AttachMulticast(h.ctx, qp.handle, command.AddrFrom(group)))
}

// LeaveMulticast ends JoinMulticast.
func (qp *QP) LeaveMulticast(group netip.Addr) error {
	h := qp.pd.dev.host
	if !group.IsValid() {
		return newError("leave multicast", ErrInvalid, "group is not an address")
	}
	return wrap("leave multicast", h.backend.DetachMulticast(h.ctx, qp.handle, command.AddrFrom(group)))
}

// Close destroys the QP, an XRC target when nobody else has it open. Its completions may still be polled; outstanding requests
// no longer complete.
func (qp *QP) Close() error {
	// A later post would end up in the rings of the QP that is created next.
	qp.setClosed(true)
	h := qp.pd.dev.host
	err := h.destroyed("destroy qp", h.backend.Destroy(h.ctx, command.KindQP, qp.handle))
	if err != nil {
		if errors.Is(err, ErrBusy) { // it works on
			qp.setClosed(false)
		}
		return err
	}
	for _, cq := range [2]*CQ{qp.cfg.SendCQ, qp.cfg.RecvCQ} {
		if cq != nil {
			cq.leave(qp)
		}
	}
	return err
}

func (qp *QP) setClosed(closed bool) {
	qp.sendMu.Lock()
	qp.recvMu.Lock()
	qp.closed = closed
	qp.recvMu.Unlock()
	qp.sendMu.Unlock()
}
