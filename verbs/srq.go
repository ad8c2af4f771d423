package verbs

import (
	"sync"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// SRQConfig describes a shared receive queue.
type SRQConfig struct {
	Depth  int // receives it holds at least
	MaxSGE int // scatter/gather entries of a receive; 0: 1
	Limit  int // EventSRQLimit when fewer receives are left; 0: none
}

// SRQ is a shared receive queue: QPs that use it take receives from it.
type SRQ struct {
	pd     *PD
	handle command.Handle
	life   life

	mu      sync.Mutex
	ring    *ring.Recv
	scratch ring.RecvWR
	sges    int
	depth   int
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
	case c.Limit < 0 || c.Limit > c.Depth:
		return nil, newError("create srq", ErrInvalid, "Limit is %d, want 0 to Depth (%d)", c.Limit, c.Depth)
	}
	h, life := pd.dev.host, pd.dev.live()
	q, err := h.backend.CreateSRQ(h.ctx, command.CreateSRQ{
		PD: pd.handle, Depth: uint32(c.Depth), MaxSGE: uint32(c.MaxSGE), Limit: uint32(c.Limit),
	})
	if err != nil {
		return nil, wrap("create srq", err)
	}
	srq := &SRQ{pd: pd, handle: q.Handle, life: life, sges: c.MaxSGE, depth: int(q.Depth)}
	if srq.ring, err = h.openRecv(q.Ring, q.Depth, q.Stride); err != nil {
		_ = srq.Close()
		return nil, err
	}
	return srq, nil
}

func (h *Host) openRecv(at command.Ring, depth, stride uint32) (*ring.Recv, error) {
	mem, err := h.ringMemory(at)
	if err != nil {
		return nil, err
	}
	r, err := ring.OpenRecv(mem, ring.Geometry{Entries: int(depth), Stride: int(stride)})
	if err != nil {
		return nil, newError("map ring", ErrInternal, "%v", err)
	}
	return r, nil
}

// Handle returns the number that events name the queue by.
func (srq *SRQ) Handle() uint32 { return uint32(srq.handle) }

// Depth returns how many receives the queue holds.
func (srq *SRQ) Depth() int { return srq.depth }

// PostRecv posts a receive. The request and its SGE list may be used again when
// it returns.
func (srq *SRQ) PostRecv(wr *RecvWR) error {
	if srq.life.over() {
		return errRecvRemoved
	}
	srq.mu.Lock()
	err := postRecv(srq.ring, &srq.scratch, wr, srq.sges)
	srq.mu.Unlock()
	if err != nil {
		return err
	}
	srq.pd.dev.host.backend.Doorbell(srq.handle)
	return nil
}

// Modify changes the limit and, where depth is not 0, the depth. Not every
// adapter can change the depth: ErrUnsupported.
func (srq *SRQ) Modify(limit, depth int) error {
	l := &srq.pd.dev.limit
	if depth < 0 || depth > l.MaxSRQDepth {
		return newError("modify srq", ErrInvalid, "depth is %d, want 0 to %d", depth, l.MaxSRQDepth)
	}
	if limit < 0 || limit > l.MaxSRQDepth {
		return newError("modify srq", ErrInvalid, "limit is %d, want 0 to %d", limit, l.MaxSRQDepth)
	}
	h := srq.pd.dev.host
	return wrap("modify srq", h.backend.ModifySRQ(h.ctx, command.ModifySRQ{
		SRQ: srq.handle, Limit: uint32(limit), Depth: uint32(depth),
	}))
}

// SRQInfo is the state of a shared receive queue.
type SRQInfo struct {
	Depth, MaxSGE int
	Limit         int // 0: not armed
	Posted        int // receives that wait for a message
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
	return h.destroyed("destroy srq", h.backend.Destroy(h.ctx, command.KindSRQ, srq.handle))
}
