package verbs

import "slices"

// follow records a QP whose ring holds requests that it may be able to carry out itself later: polls of
// its send CQ carry on with them. The caller holds sendMu.
func (cq *CQ) follow(qp *QP) {
	if qp.followed {
		return
	}
	qp.followed = true
	cq.mu.Lock()
	cq.followed = append(cq.followed, qp)
	cq.late.Store(int32(len(cq.followed)))
	cq.mu.Unlock()
}

// catchUp carries on with the requests of one of the followed QPs.
func (cq *CQ) catchUp() {
	cq.mu.Lock()
	if len(cq.followed) == 0 {
		cq.mu.Unlock()
		return
	}
	cq.turn++
	qp := cq.followed[cq.turn%uint32(len(cq.followed))]
	cq.mu.Unlock()
	if !qp.sendMu.TryLock() {
		return // its holder carries on with them
	}
	defer qp.sendMu.Unlock()
	i := qp.initiator()
	if !qp.closed && i != nil && i.Delegated() && !i.CatchUp(&qp.send) && !i.Delegated() {
		qp.backend.Doorbell(qp.handle)
	}
	if qp.closed || qp.send.Idle() {
		cq.unfollow(qp)
	}
}

// unfollow forgets a QP. The caller holds its sendMu.
func (cq *CQ) unfollow(qp *QP) {
	qp.followed = false
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if i := slices.Index(cq.followed, qp); i >= 0 {
		cq.followed = slices.Delete(cq.followed, i, i+1)
	}
	cq.late.Store(int32(len(cq.followed)))
}
