package device

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
)

// ringInline runs what a doorbell of a program in this process asks for: its QP
// sends now, without a look at what has arrived.
func (h *Host) ringInline(c *Client, handle command.Handle) {
	q := c.qps.Get(handle)
	if q == nil || q.tq == nil {
		c.rang(handle)
		return
	}
	if q.lendable || q.loan != nil && q.loan.state != atHome {
		q.doorbell()
		h.step()
		return
	}
	a := q.adapter
	work := a.engine.Doorbell(q.tq)
	if !work && (a.owing || !a.engine.Pending()) {
		return // what the adapter owes goes with the answer that follows a receive, or in its time
	}
	now := h.now()
	if !work && now.Sub(h.drove) < pollingTime {
		// News of a receive goes with the next poll, for the program may post more.
		a.owing = true
		a.retry = now.Add(retryInterval)
		return
	}
	if now.Sub(h.drove) < pollingTime {
		// The program polls: its doorbells drive the loop as well, or it would
		// depend on the background goroutine whenever it has completions enough.
		h.drove = now
		h.sleep.drives.Add(1)
		if a.postpone(now, q) {
			return
		}
		if now.Sub(a.received) > receiveGap {
			h.inline = true
			a.step(now)
			h.completePeers(now)
			h.inline = false
			a.rang = h.now() // sending took its time
			return
		}
	}
	a.release()
	a.transmit(now)
	a.rang = h.now() // sending took its time
	h.completePeers(now)
}

// postpone reports whether work that was just posted waits for more: a program
// that polls, and posts one request right after another, has its packets sent in
// batches, by the next poll at the latest. A burst is of one queue pair: posts to
// others do not cut it short. The first post is sent at once: the peer has something to
// do while the others are posted. Those behind the second ring no doorbell until the burst
// is full.
func (a *adapter) postpone(now clock.Time, q *qp) bool {
	last := a.rang
	a.rang = now
	full := q.row >= burstPosts || q.row > 0 && !q.tq.Local()
	if full || len(a.gathering) == 0 && now.Sub(last) > burstGap || a.gathered() >= transmitBatch-1 {
		return false
	}
	if q.row++; q.row == 1 {
		a.gathering = append(a.gathering, q)
		if !q.tq.Local() {
			q.sendRing.Quiet(burstPosts)
		}
	}
	a.owing = true
	a.retry = now.Add(retryInterval)
	return true
}

// gathered returns how many posts wait.
func (a *adapter) gathered() (all int) {
	for _, q := range a.gathering {
		n, _ := q.sendRing.Pending() // a ring that is corrupt is the engine's business
		all += n
	}
	return all
}

// release ends the wait of what was postponed: it is sent now. Whatever a program posted without
// a doorbell the engine sees by the one that is rung here.
func (a *adapter) release() {
	a.owing = false
	for _, q := range a.gathering {
		q.row = 0
		q.sendRing.Loud()
		a.engine.Doorbell(q.tq)
	}
	clear(a.gathering)
	a.gathering = a.gathering[:0]
}
