package lease

import (
	"fmt"
	"maps"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/direct"
)

// Program is an attached program that takes part in the direct path.
type Program struct {
	neighbour Neighbour
	uid       int
	arenas    func() int
	keys      direct.Table
	leases    map[*Lease]struct{}
	gone      bool // its process may end at any time, or has ended
}

// NewProgram returns a program of the user uid; arenas returns how many ring arenas it has at present. The
// error says what is wrong with the memory of its key table.
func NewProgram(n Neighbour, uid int, arenas func() int) (*Program, error) {
	keys, err := direct.OpenTable(n.Keys())
	if err != nil {
		return nil, fmt.Errorf("key table: %w", err)
	}
	return &Program{neighbour: n, uid: uid, arenas: arenas, keys: keys, leases: map[*Lease]struct{}{}}, nil
}

// Between reports whether pairs of two programs may be delegated: both take part, neither is nil nor has left,
// and they are of one user.
func Between(p, q *Program) bool {
	return p != nil && q != nil && p.uid == q.uid && !p.gone && !q.gone
}

// Leave records that the program's process may end at any time: nothing is delegated to it any more, and an
// operation that it is in the middle of will not go on.
func (p *Program) Leave() { p.gone = true }

// Export enters a region into the program's key table, and reports whether there was room.
func (p *Program) Export(k direct.Key) bool { return p.keys.Add(k) }

// Withdraw removes a region from the key table. Peers may still be using it: see Operations.
func (p *Program) Withdraw(adapter, key uint32) { p.keys.Remove(adapter, key) }

// Leases returns the program's leases.
func (p *Program) Leases() []*Lease { return slices.Collect(maps.Keys(p.leases)) }

// At returns those whose queue pairs complete to q.
func (p *Program) At(q Queue) (list []*Lease) {
	for r := range p.leases {
		for i := range r.ends {
			if e := &r.ends[i]; e.SendCQ == q || e.RecvCQ == q {
				list = append(list, r)
				break
			}
		}
	}
	return list
}

// Fold adds what was moved on the program's pairs to the counters of the adapters. A pair of two programs
// is folded for one of them.
func (p *Program) Fold() {
	for r := range p.leases {
		if r.ends[0].Program == p {
			r.fold()
		}
	}
}

// Operations are the operations in which peers were seen that may use memory of a program.
type Operations struct {
	list  []operation
	began clock.Time
}

type operation struct {
	lease *Lease
	way   *direct.Direction
	op    uint32
}

// Operations returns the operations of now that may use memory of the program.
func (p *Program) Operations(now clock.Time) *Operations {
	o := &Operations{began: now}
	for r := range p.leases {
		if r.DriverOwned() {
			continue
		}
		for i := range r.record.Way {
			if op, in := r.record.Way[i].Inside(); in {
				o.list = append(o.list, operation{r, &r.record.Way[i], op})
			}
		}
	}
	return o
}

// Over reports whether all of them have ended. The leases of those that do not end by themselves are
// recalled, which ends them.
func (o *Operations) Over(now clock.Time) bool {
	o.list = slices.DeleteFunc(o.list, func(o operation) bool {
		if o.lease.DriverOwned() {
			return true
		}
		op, in := o.way.Inside()
		return !in || op != o.op
	})
	if now.Sub(o.began) > recallTime {
		for _, one := range o.list {
			one.lease.Recall(now)
		}
	}
	return len(o.list) == 0
}
