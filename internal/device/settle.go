package device

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
)

// recall takes a pair back and reports whether it is at home.
func (r *loan) recall(now clock.Time) bool {
	s := &r.host.loans
	if r.state == lent {
		for i := range r.record.Way {
			r.record.Way[i].Recall()
		}
		r.state, r.since, r.warned = recalled, now, false
		s.recalled = append(s.recalled, r)
		s.check = now.Add(recallLook)
	}
	if r.state == recalled {
		r.settle(now)
	}
	return r.state == atHome
}

// settleAll checks the pairs that were recalled.
func (s *loans) settleAll(now clock.Time) (worked bool) {
	s.check = now.Add(recallLook)
	for _, r := range slices.Clone(s.recalled) {
		r.settle(now)
		worked = worked || r.state == atHome
	}
	return worked
}

// settle ends the recall of a pair once no program is in the middle of an operation on it. It never waits.
func (r *loan) settle(now clock.Time) {
	if r.state != recalled {
		return
	}
	for i, q := range r.ends {
		if _, inside := r.record.Way[i].Inside(); !inside || q.client.gone {
			continue
		}
		if !r.warned && now.Sub(r.since) > recallTime {
			r.warned = true
			q.client.cfg.Direct.End(command.Errorf(command.TimedOut, "the program stood still for %v inside of an operation on the direct path", recallTime))
		}
		return
	}
	s := &r.host.loans
	if i := slices.Index(s.recalled, r); i >= 0 {
		s.recalled = slices.Delete(s.recalled, i, i+1)
	}
	r.home(now)
}

// home returns the pair to the engine.
func (r *loan) home(now clock.Time) {
	r.state = atHome
	var corrupt [2]bool
	for i, q := range r.ends {
		p := r.ends[1-i]
		r.raise(i)
		if q.sendRing.Reclaim() != nil {
			corrupt[i] = true
		}
		voided := 0
		if q.client.gone {
			voided = p.recv.void(r.owners[i])
		}
		if p.recvRing == nil {
			continue
		}
		index := p.recvRing.Consumer()
		if voided > 0 { // the last receive was taken and did not complete
			index = r.record.Way[i].LastTaken()
		}
		if p.recvRing.Reclaim(index) != nil {
			corrupt[1-i] = true
		}
	}
	if r.moved()-r.begun >= worthLending {
		r.wait = firstWait
	} else {
		r.wait = min(2*r.wait, maxWait)
	}
	r.fold()
	for i, q := range r.ends {
		if q.tq == nil {
			continue
		}
		q.adapter.engine.Reclaim(now, q.tq)
		if corrupt[i] {
			q.fail(command.EventQPFatal)
		}
	}
	q, p := r.ends[0], r.ends[1]
	if q.tq == nil || p.tq == nil || !q.tq.Local() {
		return
	}
	if q.apart(p) {
		q.adapter.engine.Split(now, q.tq)
		return
	}
	r.want(now)
}

// raise raises the events that the initiator of a direction left to the driver. One that died may not have
// been able to say so: then the receiver's event is raised too, which at worst makes it look in vain.
func (r *loan) raise(role int) {
	q, p := r.ends[role], r.ends[1-role]
	bits := r.record.Way[role].TakeRaised()
	if q.client.gone {
		bits |= direct.RaiseRecv
	}
	if bits&direct.RaiseSend != 0 && q.send.channel != nil && !q.send.failed {
		q.send.fire()
	}
	if bits&direct.RaiseRecv != 0 && p.recv.channel != nil && !p.recv.failed {
		p.recv.fire()
	}
}

// void cancels the claims of a dead program on the CQ, and has its waiters look at what was behind them.
func (q *cq) void(owner uint32) int {
	n := q.ring.Shared().Void(owner)
	if n > 0 && !q.failed {
		q.fire()
	}
	return n
}
