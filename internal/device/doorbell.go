package device

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
)

// ringInline runs what a doorbell of a program in this process asks for: its QP
// sends now, without a look at what has arrived.
func (h *Host) ringInline(c *Client, handle command.Handle) {
	q := c.qps.get(handle)
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
	if !work && !a.engine.Pending() {
		return // what the adapter owes goes with the answer that follows a receive
	}
	if work && a.postponed > 0 && a.postponed&clockSkip != 0 && a.postponed < transmitBatch-1 && a.follows(q.tq.Number()) {
		return
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
		if a.postpone(now, q.tq.Number()) {
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
// do while the others are posted.
func (a *adapter) postpone(now clock.Time, qpn uint32) bool {
	last := a.rang
	a.rang = now
	if qpn != a.rangFor || a.postponed == 0 {
		a.rangFor, a.row = qpn, 0
	}
	a.row++
	if now.Sub(last) > burstGap || a.row > burstPosts || a.postponed >= transmitBatch-1 {
		a.row = 0
		return false
	}
	a.postponed++
	a.owing = true
	a.retry = now.Add(retryInterval)
	return true
}

// follows adds a post to the burst that waits, without a look at the clock, where there is room.
func (a *adapter) follows(qpn uint32) bool {
	if qpn != a.rangFor {
		a.rangFor, a.row = qpn, 0
	}
	if a.row >= burstPosts {
		return false
	}
	a.row++
	a.postponed++
	return true
}

// release ends the wait of what was postponed: it is sent now.
func (a *adapter) release() {
	a.owing, a.postponed = false, 0
}
