package device

import (
	"errors"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/transport"
)

const (
	// firstWait is how long a pair stays in the engine before it is lent again, and maxWait the maximum;
	// each lending that moved fewer than worthLending messages doubles it.
	firstWait    = 20 * time.Microsecond
	maxWait      = 10 * time.Millisecond
	worthLending = 64
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

type loanState uint8

const (
	atHome   loanState = iota // in the engine
	lent                      // lent to the programs
	recalled                  // taken back; a program may still be in the middle of an operation
)

// loan is two QPs of attached programs that are connected to each other and may be lent to them.
type loan struct {
	host   *Host
	ends   [2]*qp // ends[i] initiates direction i
	record *direct.Record
	place  Place
	users  int // QPs whose programs may access the record
	owners [2]uint32
	known  [2]int // number of the other's arenas that each was introduced to

	watched bool       // in the list of those whose programs have requests waiting
	stall   clock.Time // when to check for progress
	seen    [2]uint32  // consumer index at the last check
	tried   [2]uint32  // their operations at the last check
	stuck   clock.Time // since when there was no progress

	state  loanState
	since  clock.Time // time of the recall
	warned bool       // a program has been told to leave
	begun  uint64     // messages moved before this lending
	wait   time.Duration

	queued bool // in the list of those that wait to be lent
	after  clock.Time
	look   time.Duration
	due    clock.Time

	counted [2][direct.Counts]direct.Tally
}

// loans are the pairs of a host that need attention.
type loans struct {
	recalled []*loan
	check    clock.Time // when to check those
	waiting  []*loan    // to be lent
	due      clock.Time
	watched  []*loan // with requests lent to programs
	owners   uint32
	leases   uint32
}

// mark records for two QPs that have come to the local path whether they may be lent. Those that were lent
// before are offered again.
func (h *Host) mark(q, p *qp) {
	if q.loan != nil {
		h.offer(q)
		return
	}
	may := mayLend(q, p)
	q.lendable, p.lendable = may, may
}

// offer creates the loan for a QP on the local path and its peer, if their programs may have it. This is
// delayed until one of them is first used: introducing them costs as much as the rest of connecting, and
// many connections stay idle for long.
func (h *Host) offer(q *qp) {
	p := h.peerOf(q)
	if p == nil || !q.tq.Local() {
		return
	}
	if q.loan == nil {
		if !mayLend(q, p) {
			return
		}
		if err := h.makeLoan(q, p); err != nil {
			h.log.Debug("no direct path", "qp", q.number, "peer", p.number, "cause", err)
			return
		}
	}
	q.loan.want(h.now())
}

func mayLend(q, p *qp) bool {
	return (q.sends() || p.sends()) && q.client.direct && p.client.direct && q.client.cfg.UID == p.client.cfg.UID &&
		!q.client.gone && !p.client.gone && q.tq.Type() == command.RC && p.loan == nil
}

// sends reports whether q may send. The end of a connection that only receives may stay in RTR for good,
// as perftest's bandwidth servers do: its direction is not lent.
func (q *qp) sends() bool { return q.tq.State() == command.RTS }

func (h *Host) makeLoan(q, p *qp) error {
	at, mem, err := q.client.cfg.Direct.Share(p.client.cfg.Direct, direct.RecordSize)
	if err != nil {
		return err
	}
	record, err := direct.OpenRecord(mem)
	if err != nil {
		return err
	}
	r := &loan{host: h, ends: [2]*qp{q, p}, record: record, place: at, wait: firstWait}
	for i := range r.owners {
		h.loans.owners = h.loans.owners%(1<<30-1) + 1
		r.owners[i] = h.loans.owners
	}
	q.loan, p.loan = r, r
	q.records, p.records = append(q.records, r), append(p.records, r)
	r.users = 2
	q.client.loans[r] = struct{}{}
	p.client.loans[r] = struct{}{}
	return nil
}

// end drops a pair that is at home, because one of its QPs ends or is reconnected.
func (r *loan) end() {
	q, p := r.ends[0], r.ends[1]
	if q.loan != r {
		return
	}
	r.fold()
	q.loan, p.loan = nil, nil
	delete(q.client.loans, r)
	delete(p.client.loans, r)
}

// dropRecords releases the records of a QP that is destroyed. A program may access the record of a pair as
// long as it has the QP: it may learn late, or never, that the pair has ended.
func (q *qp) dropRecords() {
	for _, r := range q.records {
		if r.users--; r.users == 0 {
			r.ends[0].client.cfg.Direct.Unshare(r.ends[1].client.cfg.Direct, r.place)
		}
	}
	q.records = nil
}

// want puts the pair on the list of those to be lent.
func (r *loan) want(now clock.Time) {
	h := r.host
	r.after, r.look = now.Add(r.wait), firstLook
	r.due = r.after
	if !r.queued {
		r.queued = true
		h.loans.waiting = append(h.loans.waiting, r)
	}
	h.loans.due = clock.Min(h.loans.due, r.due)
}

// dueAt returns when the loop must next check the pairs.
func (s *loans) dueAt() clock.Time {
	due := s.due
	if len(s.recalled) > 0 {
		due = clock.Min(due, s.check)
	}
	for _, r := range s.watched {
		due = clock.Min(due, r.stall)
	}
	return due
}

// step handles the pairs at the end of a turn of the loop, when completions have been delivered.
func (s *loans) step(now clock.Time) (worked bool) {
	if len(s.watched) > 0 {
		s.watch(now)
	}
	if len(s.recalled) > 0 {
		worked = s.settleAll(now)
	}
	if len(s.waiting) == 0 {
		return worked
	}
	n := len(s.waiting)
	if now < s.due {
		n = min(n, lookAlways)
	}
	for i := 0; i < n; i++ {
		r := s.waiting[i]
		if now < r.after || now < r.due && i >= lookAlways {
			continue
		}
		err := r.lend(now)
		if errors.Is(err, transport.ErrNotIdle) {
			if now >= r.due {
				r.look = min(2*r.look, maxLook)
				r.due = now.Add(r.look)
			}
			continue
		}
		worked = true
		r.queued = false
		last := len(s.waiting) - 1
		s.waiting[i], s.waiting[last] = s.waiting[last], nil
		s.waiting = s.waiting[:last]
		n = min(n-1, last)
		i--
	}
	if now >= s.due || worked {
		s.due = clock.Never
		for _, r := range s.waiting {
			s.due = clock.Min(s.due, r.due)
		}
	}
	return worked
}
