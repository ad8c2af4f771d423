package verbs

import (
	"errors"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// SRQConfig describes a shared receive queue.
type SRQConfig struct {
	Depth  int // receives that it holds at least
	MaxSGE int // scatter/gather entries of a receive; 0: 1
	Limit  int // raises EventSRQLimit when fewer receives are left; 0: none
	// XRC is the domain of a queue for extended reliable connections, nil for one that QPs of this program share. CQ is
	// where its receives complete; only such a queue has one.
	XRC *XRCDomain
	CQ  *CQ
}

// SRQ is a shared receive queue: the QPs that use it take their receives from it.
type SRQ struct {
	pd     *PD
	handle command.Handle
	life   life
	number uint32

	mu     sync.Mutex
	closed bool
	ring   *ring.Recv
	sges   int
	depth  int
}

// CreateSRQ makes a shared receive queue.
func (pd *PD) CreateSRQ(c SRQConfig) (*SRQ, error) {
	l := &pd.dev.limit
	if c.MaxSGE == 0 {
		c.MaxSGE = 1
	}
	switch {
	case c.Depth < 1 || c.Depth > l.MaxSRQDepth:
		return nil, newError("create srq", ErrInvalid, "Depth is %d, want 1 to %d", c.Depth, l.MaxSRQDepth)
	case c.MaxSGE < 1 || c.MaxSGE > l.MaxSGE:
		return nil, newError("create srq", ErrInvalid, "MaxSGE is %d, want 1 to %d", c.MaxSGE, l.MaxSGE)
	case (c.XRC == nil) != (c.CQ == nil):
		return nil, newError("create srq", ErrInvalid, "XRC or CQ is nil, want both or none")
	case c.Limit < 0 || c.Limit > c.Depth:
		return nil, newError("create srq", ErrInvalid, "Limit is %d, want 0 to Depth (%d)", c.Limit, c.Depth)
	}
	h, life := pd.dev.host, pd.dev.live()
	basic := command.CreateSRQ{PD: pd.handle, Depth: uint32(c.Depth), MaxSGE: uint32(c.MaxSGE), Limit: uint32(c.Limit)}
	var q command.Queue
	var err error
	if c.XRC == nil {
		q, err = h.backend.CreateSRQ(h.ctx, basic)
	} else {
		q, err = h.backend.CreateXRCSRQ(h.ctx, command.CreateXRCSRQ{CreateSRQ: basic, XRCD: c.XRC.handle, CQ: c.CQ.handle})
	}
	if err != nil {
		return nil, wrap("create srq", err)
	}
	srq := &SRQ{pd: pd, handle: q.Handle, life: life, number: q.Number, sges: c.MaxSGE, depth: int(q.Depth)}
	if srq.ring, err = h.openRecv(ring.OpenRecv, q.Ring, q.Depth, q.Stride); err != nil {
		_ = srq.Close()
		return nil, err
	}
	return srq, nil
}

// openRecv maps a ring and opens it: a new one with ring.OpenRecv, one that already holds requests with
// ring.ResumeRecv.
func (h *Host) openRecv(open func([]byte, ring.Geometry) (*ring.Recv, error), at command.Ring, depth, stride uint32) (*ring.Recv, error) {
	mem, err := h.ringMemory(at)
	if err != nil {
		return nil, err
	}
	r, err := open(mem, ring.Geometry{Entries: int(depth), Stride: int(stride)})
	if err != nil {
		return nil, newError("map ring", ErrInternal, "%v", err)
	}
	return r, nil
}

// Handle returns the number by which events name the queue.
func (srq *SRQ) Handle() uint32 { return uint32(srq.handle) }

// Number returns the number by which peers name a queue in an XRC domain (SendWR.RemoteSRQ).
func (srq *SRQ) Number() uint32 { return srq.number }

// Depth returns how many receives the queue holds.
func (srq *SRQ) Depth() int {
	srq.mu.Lock()
	defer srq.mu.Unlock()
	return srq.depth
}

// PostRecv posts a receive. The request and its SGE list may be reused when it returns.
func (srq *SRQ) PostRecv(wr *RecvWR) error {
	if srq.life.over() {
		return errRecvRemoved
	}
	srq.mu.Lock()
	if srq.closed {
		srq.mu.Unlock()
		return errRecvClosed
	}
	err := postRecv(srq.ring, wr, srq.sges)
	srq.mu.Unlock()
	if err != nil {
		return err
	}
	srq.pd.dev.host.backend.Doorbell(srq.handle)
	return nil
}

// Modify sets the limit; 0 disarms it (IBA 11.2.3.3).
func (srq *SRQ) Modify(limit int) error {
	if d := srq.Depth(); limit < 0 || limit > d {
		return newError("modify srq", ErrInvalid, "limit is %d, want 0 to the depth (%d)", limit, d)
	}
	h := srq.pd.dev.host
	return wrap("modify srq", h.backend.ModifySRQ(h.ctx, command.ModifySRQ{SRQ: srq.handle, Limit: uint32(limit)}))
}

// Resize makes the queue hold at least depth receives. Messages may arrive meanwhile; waiting receives
// stay, in order. ErrBusy if more are waiting than would fit; ErrInvalid also if the armed limit is
// larger.
func (srq *SRQ) Resize(depth int) error {
	if most := srq.pd.dev.limit.MaxSRQDepth; depth < 1 || depth > most {
		return newError("resize srq", ErrInvalid, "depth is %d, want 1 to %d", depth, most)
	}
	srq.mu.Lock() // nothing is posted meanwhile
	defer srq.mu.Unlock()
	h := srq.pd.dev.host
	q, err := h.backend.ResizeSRQ(h.ctx, srq.handle, uint32(depth))
	if err != nil {
		return wrap("resize srq", err)
	}
	next, err := h.openRecv(ring.ResumeRecv, q.Ring, q.Depth, q.Stride)
	if err != nil {
		return err
	}
	srq.ring, srq.depth = next, int(q.Depth)
	return nil
}

// SRQInfo is the state of a shared receive queue.
type SRQInfo struct {
	Depth, MaxSGE int
	Limit         int // 0: not armed
	Posted        int // receives waiting for a message
}

// Query returns the state of the queue.
func (srq *SRQ) Query() (SRQInfo, error) {
	h := srq.pd.dev.host
	i, err := h.backend.QuerySRQ(h.ctx, srq.handle)
	if err != nil {
		return SRQInfo{}, wrap("query srq", err)
	}
	return SRQInfo{Depth: int(i.Depth), MaxSGE: int(i.MaxSGE), Limit: int(i.Limit), Posted: int(i.Posted)}, nil
}

// Close destroys the queue; ErrBusy while a QP uses it.
func (srq *SRQ) Close() error {
	h := srq.pd.dev.host
	srq.setClosed(true)
	err := h.destroyed("destroy srq", h.backend.Destroy(h.ctx, command.KindSRQ, srq.handle))
	if errors.Is(err, ErrBusy) {
		srq.setClosed(false)
	}
	return err
}

// setClosed keeps receives away from the ring, whose memory may be reused for another one.
func (srq *SRQ) setClosed(closed bool) {
	srq.mu.Lock()
	srq.closed = closed
	srq.mu.Unlock()
}
