// Package lease delegates connections to the programs at their ends. If both are attached programs of one user,
// the direct path (package direct) lets each of them carry out its own requests in the memory of its peer;
// the driver delegates the pair of queue pairs while it is at rest, and takes it back when something needs the
// engine: a command, a policy, a request that a program leaves, or the end of a program.
//
// A Lease is one such pair, a Program what takes part in the direct path, and a Book has the leases of a host
// that need attention. All are used under the loop lock of the host, and none of them waits: a program in the
// middle of an operation is checked again later.
package lease

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/transport"
)

const (
	// firstWait is how long a pair stays in the engine before it is delegated again, and maxWait the maximum;
	// each delegation that moved fewer than worthDelegating messages doubles it.
	firstWait       = 20 * time.Microsecond
	maxWait         = 10 * time.Millisecond
	worthDelegating = 64
	// firstLook and maxLook are how soon a pair that was not at rest is checked again. Every turn of the
	// loop also checks the first lookAlways of those waiting.
	firstLook  = 100 * time.Microsecond
	maxLook    = 100 * time.Millisecond
	lookAlways = 8
	// recallLook is how often a program in the middle of an operation is checked, and recallTime how long
	// it may stay there: then its connection is ended, like that of a program whose copier hangs.
	recallLook = 20 * time.Microsecond
	recallTime = 5 * time.Second
)

// Lease is two queue pairs of attached programs that are connected to each other and may be delegated to them.
type Lease struct {
	book   *Book
	owner  Owner
	path   *transport.Pair // of the ends
	ends   [2]End          // ends[i] initiates direction i
	over   bool
	record *direct.Record
	place  Place
	users  int // queue pairs whose programs may access the record
	owners [2]uint32
	known  [2]acquaintance // with the other

	watched bool       // in the list of those whose programs have requests waiting
	stall   clock.Time // when to check for progress
	seen    [2]uint32  // consumer index at the last check
	tried   [2]uint32  // their operations at the last check
	stuck   clock.Time // since when there was no progress

	since  clock.Time // time of the recall
	warned bool       // a program has been told to leave
	begun  uint64     // messages moved before this delegation
	wait   time.Duration

	queued bool // in the list of those that wait to be delegated
	after  clock.Time
	look   time.Duration
	due    clock.Time

	counted [2][direct.Counts]direct.Tally
}

// acquaintance is how much of its peer a program was introduced to.
type acquaintance struct {
	arenas  int
	process uint32
}

// Sends reports whether a queue pair may send: a pair is delegated if one of its ends may.
func Sends(q *transport.QP) bool { return q.State() == command.RTS }

// Make creates the lease of two ends, owned by the driver. The error says why the programs cannot share its record.
func (b *Book) Make(owner Owner, ends [2]End) (*Lease, error) {
	q, p := &ends[0], &ends[1]
	at, mem, err := q.Program.neighbour.Share(p.Program.neighbour, direct.RecordSize)
	if err != nil {
		return nil, err
	}
	record, err := direct.OpenRecord(mem)
	if err != nil {
		return nil, err
	}
	r := &Lease{book: b, owner: owner, path: q.QP.Pair(), ends: ends, record: record, place: at, users: 2, wait: firstWait}
	for i := range r.owners {
		b.owners = b.owners%(1<<30-1) + 1
		r.owners[i] = b.owners
	}
	q.Program.leases[r] = struct{}{}
	p.Program.leases[r] = struct{}{}
	return r, nil
}

// DriverOwned reports whether the engine has the pair, and not the programs.
func (r *Lease) DriverOwned() bool { return r.path.Carrier() != path.ByPrograms }

// End ends a lease that is owned by the driver, because one of its queue pairs ends or is reconnected.
func (r *Lease) End() {
	if r.over {
		return
	}
	r.fold()
	r.over = true
	for i := range r.ends {
		delete(r.ends[i].Program.leases, r)
	}
	r.owner.Ended()
}

// Drop releases the record for one of the queue pairs, which is destroyed. A program may access the record
// as long as it has the queue pair: it may learn late, or never, that the lease has ended.
func (r *Lease) Drop() {
	if r.users--; r.users == 0 {
		r.ends[0].Program.neighbour.Unshare(r.ends[1].Program.neighbour, r.place)
	}
}

// Want puts the pair on the list of those to be delegated.
func (r *Lease) Want(now clock.Time) {
	if r.over {
		return
	}
	r.ends[0].Engine.Offer(r.ends[0].QP)
	r.after, r.look = now.Add(r.wait), firstLook
	r.due = r.after
	b := r.book
	if !r.queued {
		r.queued = true
		b.waiting = append(b.waiting, r)
	}
	b.due = clock.Min(b.due, r.due)
}
