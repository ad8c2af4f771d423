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
	// firstWait is how long a pair rests in the engine before it is lent again, and
	// maxWait the most; each lending that moved fewer than worthLending messages
	// doubles it.
	firstWait    = 20 * time.Microsecond
	maxWait      = 10 * time.Millisecond
	worthLending = 64
	// firstLook and maxLook are how soon a pair that was not at rest is looked at
	// again by itself. The first lookAlways of those that wait are looked at by every
	// turn of the loop as well.
	firstLook  = 100 * time.Microsecond
	maxLook    = 100 * time.Millisecond
	lookAlways = 8
	// recallLook is how often a program that is inside of an operation is looked at,
	// and recallTime how long it may stay there: then its connection is ended, as that
	// of a program whose copier hangs.
	recallLook = 20 * time.Microsecond
	recallTime = 5 * time.Second
)

type loanState uint8

const (
	atHome   loanState = iota // in the engine
	lent                      // in the hands of the programs
	recalled                  // taken back; a program may be inside of an operation still
)

// pair is two QPs of attached programs that are connected to each other, and may
// be lent to them.
type loan struct {
	host   *Host
	ends   [2]*qp // ends[i] initiates direction i
	record *direct.Record
	place  Place
	users  int // QPs whose programs may look at the record
	owners [2]uint32
	known  [2]int // arenas of the other that each was introduced to

	watched bool       // in the list of those whose programs have requests waiting
	stall   clock.Time // when to look whether they go on
	seen    [2]uint32  // how far they were then
	tried   [2]uint32  // their operations
	stuck   clock.Time // since when they have not gone on

	state  loanState
	since  clock.Time // recalled
	warned bool       // a program was told to go
	begun  uint64     // messages moved before the lending
	wait   time.Duration

	queued bool // in the list of those that wait to be lent
	after  clock.Time
	look   time.Duration
	due    clock.Time

	counted [2][direct.Counts]direct.Tally
}

// pairs are the pairs of a host that something is to be done about.
type loans struct {
	recalled []*loan
	check    clock.Time // when to look at those
	waiting  []*loan    // to be lent
	due      clock.Time
	watched  []*loan // with requests in the hands of programs
	owners   uint32
	leases   uint32
}

// mark notes of two QPs that have come to the local path whether they may be lent; those
// that were before are again.
func (h *Host) mark(q, p *qp) {
	if q.loan != nil {
		h.offer(q)
		return
	}
	may := mayLend(q, p)
	q.lendable, p.lendable = may, may
}

// offer makes a pair of a QP on the local path and its peer, where their programs may
// have it. That is when one of them is used for the first time: what they have to be told
// costs as much as the rest of connecting, and many connections are idle for long.
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

// sends reports whether q may send. One end of a connection that only receives may stay in RTR for
// good, as perftest's servers of bandwidth do: its direction is not lent.
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

// end forgets a pair that is at home; one of its QPs ends or is connected anew.
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

// dropRecords gives the records of a QP that is destroyed back. A program may look
// at the record of a pair as long as it has the QP: it learns late that the pair
// has ended, or never.
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

// dueAt is when the loop must look at pairs by itself.
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

// step goes on with pairs: at the end of a turn of the loop, when completions have
// been delivered.
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
