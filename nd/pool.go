package nd

import (
	"context"
	"sync"
)

// QueuePairsPool holds queue pairs created in advance, each with completion queues of its own, so that
// connections are set up faster (IND2QueuePairsPool, WinOF manual 4.9.1.1.1). Set its parameters and
// limits, Fill it, and take from it with CreateObjects; when fewer than the low limit are left it is
// refilled in the background.
type QueuePairsPool struct {
	adapter *Adapter

	mu      sync.Mutex
	pairs   []pooled
	qp      QueuePairParams
	cq      CompletionQueueParams
	low     int
	high    int
	making  int // being made
	filling bool
	closed  bool
	stats   PoolStatistics
	filler  sync.WaitGroup
}

type pooled struct {
	qp      *QueuePair
	receive *CompletionQueue
	send    *CompletionQueue
}

// QueuePairParams describes the queue pairs of a pool; see QueuePairConfig.
type QueuePairParams struct {
	ReceiveQueueDepth      int
	InitiatorQueueDepth    int
	MaxReceiveRequestSGE   int
	MaxInitiatorRequestSGE int
	InlineDataSize         int
}

// CompletionQueueParams describes the completion queues of a pool.
type CompletionQueueParams struct {
	// ReceiveDepth and InitiatorDepth are the depths of a queue pair's two completion queues. With an
	// InitiatorDepth of 0 one queue of ReceiveDepth serves both.
	ReceiveDepth   int
	InitiatorDepth int
}

// PoolStatistics help to judge whether the limits fit.
type PoolStatistics struct {
	Available       int    // in the pool now
	Created         uint64 // objects created in total
	Hits            uint64 // calls of CreateObjects that were served from the pool
	Misses          uint64 // calls of CreateObjects that had to create theirs
	BackgroundFills uint64 // background refills
	FailedFills     uint64 // of those, ended by an error
	LastError       error  // of the background refills; nil once one has succeeded again
}

// CreateQueuePairsPool creates an empty pool. Its limits are 0: nothing is created in the background.
func (a *Adapter) CreateQueuePairsPool() (*QueuePairsPool, error) {
	return &QueuePairsPool{adapter: a}, nil
}

// SetQueuePairParams sets the parameters of the queue pairs. Those in the pool that were created with
// other parameters are dropped.
func (p *QueuePairsPool) SetQueuePairParams(params QueuePairParams) error {
	c := params.config()
	// Any queue of the adapter will do for the check: the pool creates its own.
	probe := &CompletionQueue{adapter: p.adapter}
	c.ReceiveCompletionQueue, c.InitiatorCompletionQueue = probe, probe
	if err := p.adapter.checkPair(&c); err != nil {
		return err
	}
	p.mu.Lock()
	changed := p.qp != params
	p.qp = params
	stale := p.dropStale(changed)
	p.mu.Unlock()
	return closePooled(stale)
}

func (q *QueuePairParams) config() QueuePairConfig {
	return QueuePairConfig{
		ReceiveQueueDepth: q.ReceiveQueueDepth, InitiatorQueueDepth: q.InitiatorQueueDepth,
		MaxReceiveRequestSGE: q.MaxReceiveRequestSGE, MaxInitiatorRequestSGE: q.MaxInitiatorRequestSGE,
		InlineDataSize: q.InlineDataSize,
	}
}

// SetCompletionQueueParams sets the parameters of the completion queues. Queue pairs in the pool that were
// created with other parameters are dropped.
func (p *QueuePairsPool) SetCompletionQueueParams(params CompletionQueueParams) error {
	const op = "QueuePairsPool.SetCompletionQueueParams"
	most := p.adapter.dev.Limits().MaxCQDepth
	if params.ReceiveDepth < 1 || params.ReceiveDepth > most {
		return refuse(StatusInvalidParameter, op, "ReceiveDepth is %d, want 1 to %d", params.ReceiveDepth, most)
	}
	if params.InitiatorDepth < 0 || params.InitiatorDepth > most {
		return refuse(StatusInvalidParameter, op, "InitiatorDepth is %d, want 0 to %d", params.InitiatorDepth, most)
	}
	p.mu.Lock()
	changed := p.cq != params
	p.cq = params
	stale := p.dropStale(changed)
	p.mu.Unlock()
	return closePooled(stale)
}

func (p *QueuePairsPool) dropStale(changed bool) []pooled {
	if !changed {
		return nil
	}
	stale := p.pairs
	p.pairs = nil
	return stale
}

// SetLimits sets the thresholds: when fewer than low queue pairs are left, the pool is filled up to high
// in the background. A low of 0 switches that off.
func (p *QueuePairsPool) SetLimits(low, high int) error {
	if low < 0 || high < low || high > p.adapter.dev.Limits().MaxQP {
		return refuse(StatusInvalidParameter, "QueuePairsPool.SetLimits", "low, high are %d, %d, want 0 <= low <= high <= %d", low, high,
			p.adapter.dev.Limits().MaxQP)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.low, p.high = low, high
	return nil
}

// Fill creates queue pairs until the pool holds as many as the high limit.
func (p *QueuePairsPool) Fill(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return fail("QueuePairsPool.Fill", canceled(err))
		}
		more, err := p.fillOne()
		if err != nil || !more {
			return err
		}
	}
}

// fillOne creates a queue pair unless the pool is full.
func (p *QueuePairsPool) fillOne() (more bool, err error) {
	p.mu.Lock()
	if p.closed || len(p.pairs)+p.making >= p.high {
		p.mu.Unlock()
		return false, nil
	}
	p.making++
	qp, cq := p.qp, p.cq
	p.mu.Unlock()
	made, err := p.adapter.makePooled(qp, cq)
	p.mu.Lock()
	p.making--
	if err == nil {
		p.stats.Created++
		if !p.closed && p.qp == qp && p.cq == cq {
			p.pairs = append(p.pairs, made)
			p.mu.Unlock()
			return true, nil
		}
	}
	closed := p.closed
	p.mu.Unlock()
	if err != nil {
		return false, err
	}
	return !closed, closePooled([]pooled{made})
}

func (a *Adapter) makePooled(qp QueuePairParams, cq CompletionQueueParams) (pooled, error) {
	if cq.ReceiveDepth == 0 {
		return pooled{}, refuse(StatusInvalidDeviceState, "QueuePairsPool", "SetCompletionQueueParams was not called")
	}
	var made pooled
	var err error
	if made.receive, err = a.CreateCompletionQueue(cq.ReceiveDepth); err != nil {
		return pooled{}, err
	}
	made.send = made.receive
	if cq.InitiatorDepth > 0 {
		if made.send, err = a.CreateCompletionQueue(cq.InitiatorDepth); err != nil {
			_ = made.receive.Close()
			return pooled{}, err
		}
	}
	c := qp.config()
	c.ReceiveCompletionQueue, c.InitiatorCompletionQueue = made.receive, made.send
	if made.qp, err = a.CreateQueuePair(c); err != nil {
		_ = closePooled([]pooled{made})
		return pooled{}, err
	}
	return made, nil
}

func closePooled(list []pooled) error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for _, m := range list {
		if m.qp != nil {
			keep(m.qp.Close())
		}
		keep(m.receive.Close())
		if m.send != m.receive {
			keep(m.send.Close())
		}
	}
	return first
}

// CreateObjects takes a queue pair and its completion queues from the pool, or creates them if it is
// empty. The caller closes the objects. receive and initiator are the same queue if the parameters say so.
func (p *QueuePairsPool) CreateObjects(pairContext any) (qp *QueuePair, receive, initiator *CompletionQueue, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, nil, nil, refuse(StatusCanceled, "QueuePairsPool.CreateObjects", "the pool is closed")
	}
	var made pooled
	hit := len(p.pairs) > 0
	if hit {
		last := len(p.pairs) - 1
		made, p.pairs[last] = p.pairs[last], pooled{}
		p.pairs = p.pairs[:last]
		p.stats.Hits++
	} else {
		p.stats.Misses++
	}
	params, cq := p.qp, p.cq
	p.refill()
	p.mu.Unlock()
	if !hit {
		if made, err = p.adapter.makePooled(params, cq); err != nil {
			return nil, nil, nil, err
		}
		p.mu.Lock()
		p.stats.Created++
		p.mu.Unlock()
	}
	made.qp.context = pairContext
	return made.qp, made.receive, made.send, nil
}

// refill starts a background refill if one is due. The caller holds the lock.
func (p *QueuePairsPool) refill() {
	if p.filling || p.closed || len(p.pairs)+p.making >= p.low {
		return
	}
	p.filling = true
	p.stats.BackgroundFills++
	p.filler.Add(1)
	go func() {
		defer p.filler.Done()
		err := p.Fill(context.Background())
		p.mu.Lock()
		defer p.mu.Unlock()
		p.filling = false
		p.stats.LastError = err
		if err != nil {
			p.stats.FailedFills++
		}
	}()
}

// Statistics returns how the pool has been used since its creation.
func (p *QueuePairsPool) Statistics() PoolStatistics {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Available = len(p.pairs)
	return s
}

// Close destroys the queue pairs still in the pool. Objects that CreateObjects returned are not affected.
func (p *QueuePairsPool) Close() error {
	p.mu.Lock()
	p.closed = true
	rest := p.pairs
	p.pairs = nil
	p.mu.Unlock()
	p.filler.Wait()
	return closePooled(rest)
}
