package device

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
)

// ringInline handles a doorbell of a program in this process: its QP sends at once, without looking for
// arrived packets.
func (h *Host) ringInline(c *Client, handle command.Handle) {
	q := c.qps.Get(handle)
	if q == nil || q.tq == nil {
		c.rang(handle)
		return
	}
	if q.entrusted() {
		q.doorbell()
		h.step()
		return
	}
	a := q.adapter
	a.doorbells++
	work := a.engine.Doorbell(q.tq)
	if !work && (a.function.Held() || len(a.gathering) > 0 || a.engine.Pending() == 0) {
		return // acknowledgements go with the answer that follows a receive, or in due time
	}
	now := h.now()
	if !work && now.Sub(h.drove) < pollingTime {
		// News of a receive goes with the next poll, since the program may post more.
		a.function.Hold(now)
		return
	}
	if now.Sub(h.drove) < pollingTime {
		// The program polls: its doorbells drive the loop as well; otherwise it would
		// depend on the background goroutine as long as it has enough completions.
		c.polled(now)
		h.sleep.roles.Driven()
		if a.postpone(now, q) {
			return
		}
		if now.Sub(a.port.received) > receiveGap {
			h.driver = c
			a.port.step(now)
			h.exchange(now)
			h.completePeers(now)
			h.driver = nil
			a.rang = h.now() // sending took time
			return
		}
	}
	a.release()
	a.transmit(now)
	h.exchange(now)
	a.rang = a.departed(now, q)
	h.completePeers(now)
}

// departed returns the time at which what q began to send at now has left. For a single packet it is mostly an estimate,
// because reading the clock takes a considerable part of the time that sending the packet takes.
func (a *adapter) departed(now clock.Time, q *qp) clock.Time {
	d := &a.departing
	single := a.port.queued == 1 && !q.tq.Local()
	if d.looks++; single && d.looks%departureLooks != 0 {
		return now.Add(d.took)
	}
	end := a.host.now()
	if single {
		d.took = min(end.Sub(now), departureMost)
	}
	return end
}

// postpone reports whether work just posted should wait for more: a program that polls, and posts requests
// in quick succession, has its packets sent in batches, by the next poll at the latest. A burst belongs to
// one queue pair: posts to others do not cut it short. The first post is sent at once, so that the peer
// has something to do while the others are posted. After the second no doorbells are rung until the burst
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
		a.station.Ring()
		if !q.tq.Local() {
			q.sendRing.Quiet(burstPosts)
		}
	}
	a.function.Hold(now)
	a.gatherDue = now.Add(retryInterval)
	return true
}

// gathered returns how many posts wait.
func (a *adapter) gathered() (all int) {
	for _, q := range a.gathering {
		n, _ := q.sendRing.Pending() // a corrupt ring is left to the engine
		all += n
	}
	return all
}

// release ends postponement: everything is sent now. The doorbell rung here shows the engine whatever the
// program posted without one.
func (a *adapter) release() {
	for _, q := range a.gathering {
		q.row = 0
		q.sendRing.Loud()
		a.engine.Doorbell(q.tq)
	}
	clear(a.gathering)
	a.gathering = a.gathering[:0]
}
