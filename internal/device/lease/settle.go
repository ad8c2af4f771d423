package lease

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/path"
)

// Recall takes a pair back and reports whether it is owned by the driver.
func (r *Lease) Recall(now clock.Time) bool {
	b := r.book
	if r.DriverOwned() {
		return true
	}
	if r.ends[0].Engine.Recall(r.ends[0].QP); r.path.Take(path.Withdraw) {
		for i := range r.record.Way {
			r.record.Way[i].Recall()
		}
		r.since, r.warned = now, false
		b.recalled = append(b.recalled, r)
		b.check = now.Add(recallLook)
	}
	r.settle(now)
	return r.DriverOwned()
}

// settleAll checks the pairs that were recalled.
func (b *Book) settleAll(now clock.Time) (worked bool) {
	b.check = now.Add(recallLook)
	for _, r := range slices.Clone(b.recalled) {
		r.settle(now)
		worked = worked || r.DriverOwned()
	}
	return worked
}

// settle ends the recall of a pair once no program is in the middle of an operation on it. It never waits.
func (r *Lease) settle(now clock.Time) {
	if r.DriverOwned() {
		return
	}
	for i := range r.ends {
		p := r.ends[i].Program
		if _, inside := r.record.Way[i].Inside(); !inside || p.gone {
			continue
		}
		if !r.warned && now.Sub(r.since) > recallTime {
			r.warned = true
			p.neighbour.End(command.Errorf(command.TimedOut, "the program stood still for %v inside of an operation on the direct path",
				recallTime))
		}
		return
	}
	b := r.book
	if i := slices.Index(b.recalled, r); i >= 0 {
		b.recalled = slices.Delete(b.recalled, i, i+1)
	}
	r.home(now)
}

// home returns the pair to the engine.
func (r *Lease) home(now clock.Time) {
	var corrupt [2]bool
	for i := range r.ends {
		q, p := &r.ends[i], &r.ends[1-i]
		r.raise(i)
		if q.Send.Reclaim() != nil {
			corrupt[i] = true
		}
		voided := 0
		if q.Program.gone {
			voided = p.RecvCQ.Void(r.owners[i])
		}
		if p.Recv == nil {
			continue
		}
		index := p.Recv.Consumer()
		if voided > 0 { // the last receive was taken and did not complete
			index = r.record.Way[i].LastTaken()
		}
		if p.Recv.Reclaim(index) != nil {
			corrupt[1-i] = true
		}
	}
	if r.moved()-r.begun >= worthDelegating {
		r.wait = firstWait
	} else {
		r.wait = min(2*r.wait, maxWait)
	}
	r.fold()
	if r.over {
		return
	}
	q := &r.ends[0]
	if r.owner.Apart() {
		q.Engine.Split(q.QP)
	}
	q.Engine.Reclaim(now, q.QP)
	for i := range r.ends {
		if corrupt[i] {
			r.owner.Fail(i)
		}
	}
	if r.path.State() == path.Local {
		r.Want(now)
	}
}

// raise raises the events that the initiator of a direction left to the driver. One that died may not have
// been able to say so: then the receiver's event is raised too, which at worst makes it look in vain.
func (r *Lease) raise(role int) {
	q, p := &r.ends[role], &r.ends[1-role]
	bits := r.record.Way[role].TakeRaised()
	if q.Program.gone {
		bits |= direct.RaiseRecv
	}
	if bits&direct.RaiseSend != 0 {
		q.SendCQ.Raise()
	}
	if bits&direct.RaiseRecv != 0 {
		p.RecvCQ.Raise()
	}
}
