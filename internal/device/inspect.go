package device

import (
	"maps"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/port"
)

// Inspection is the internal state of an adapter at one moment, for state dumps.
type Inspection struct {
	Info     command.AdapterInfo
	Counters Counters
	Limits   Limits
	PKeys    []uint16
	QPs      []QPInspection
	CQs      []CQInspection
	SRQs     []SRQInspection
	MRs      []MRInspection
	GIDs     []command.GID
	// Speed is that of the port's wire in bit/s; Traffic how the port divides it, and Paused the priorities at which it is silent.
	Speed   uint64
	Traffic port.Traffic
	Paused  uint8
	Queues  []EventQueueInspection
	// EmptyRounds is how many consecutive turns of the loop brought no packet while the adapter's Polling
	// is on.
	EmptyRounds uint32
	// LeftOut is how many objects are not listed because there are more of their kind than requested.
	LeftOut int
}

// QPInspection is a queue pair with all its attributes.
type QPInspection struct {
	command.QPInfo
	Handle         command.Handle
	PD             uint32 // its number
	SendCQ, RecvCQ uint32 // their numbers, from 0; without: NoQueue
	SRQ            command.Handle
	Program        string
	PID            int
}

// NoQueue is the number of a queue that a queue pair does not have.
const NoQueue = ^uint32(0)

// MRInspection is a memory region.
type MRInspection struct {
	Handle       command.Handle
	Key          uint32 // L_Key and R_Key
	PD           uint32 // its number
	Base, Length uint64
	IOVA         uint64
	Access       uint32
	Program      string
	PID          int
}

// CQInspection is a completion queue.
type CQInspection struct {
	Number   uint32
	Program  string
	PID      int
	Users    int // queues that complete to it
	Unpolled int // completions that the program has not taken
	Waiters  int
	Failed   bool
	// Count and Interval moderate its events, as chosen by its program; Held is how many completions wait
	// for them.
	Count, Held uint32
	Interval    time.Duration
}

// SRQInspection is a shared receive queue.
type SRQInspection struct {
	Handle        command.Handle
	Program       string
	PID           int
	Depth, Posted uint32
	Limit         uint32
	Users         int
	Failed        bool
}

// EventQueueInspection is the event queue of a program that uses the adapters.
type EventQueueInspection struct {
	Program string
	PID     int
	Waiting int
	Events  []command.Event // the first of the waiting events
}

// listedEvents is how many events of a queue an inspection lists.
const listedEvents = 64

// Inspect returns the internal state of an adapter. At most most objects of each kind are listed.
func (h *Host) Inspect(index uint32, most int) (Inspection, error) {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return Inspection{}, err
	}
	h.foldAll()
	s := Inspection{Info: a.info(), Counters: a.words(), Limits: a.limits, EmptyRounds: a.emptyRounds()}
	for _, k := range a.engine.PKeys() {
		s.PKeys = append(s.PKeys, uint16(k))
	}
	s.GIDs, s.Speed, s.Traffic, s.Paused = a.gids.List(), a.speed(), a.port.Scheduler.Traffic(), a.port.Scheduler.Paused()
	s.queuePairs(a, most)
	s.queues(a, most)
	return s, nil
}

func (s *Inspection) queuePairs(a *adapter, most int) {
	numbers := slices.Sorted(maps.Keys(a.byNumber))
	if len(numbers) > most {
		s.LeftOut += len(numbers) - most
		numbers = numbers[:most]
	}
	for _, n := range numbers {
		if q := a.byNumber[n]; q.tq != nil {
			s.QPs = append(s.QPs, q.inspect())
		}
	}
}

func (q *qp) inspect() QPInspection {
	x := QPInspection{
		QPInfo: q.adapter.engine.Query(q.tq), Handle: q.handle, PD: uint32(q.pd.number), SendCQ: NoQueue, RecvCQ: NoQueue,
		Program: q.client.cfg.Name, PID: q.client.cfg.PID,
	}
	if q.send != nil {
		x.SendCQ = q.send.ref
	}
	if q.recv != nil {
		x.RecvCQ = q.recv.ref
	}
	if q.srq != nil {
		x.SRQ = q.srq.handle
	}
	return x
}

// queues lists the completion, shared receive and event queues.
func (s *Inspection) queues(a *adapter, most int) {
	for _, q := range a.cqs {
		switch {
		case q == nil:
		case len(s.CQs) >= most:
			s.LeftOut++
		default:
			s.CQs = append(s.CQs, q.inspect())
		}
	}
	for _, c := range a.host.clients {
		c.srqs.Each(func(q *srq) {
			switch {
			case q.pd.adapter != a:
			case len(s.SRQs) >= most:
				s.LeftOut++
			default:
				s.SRQs = append(s.SRQs, q.inspect())
			}
		})
		c.mrs.Each(func(m *mr) {
			switch {
			case m.pd.adapter != a || m.region == nil: // the adapter was disabled
			case len(s.MRs) >= most:
				s.LeftOut++
			default:
				s.MRs = append(s.MRs, m.inspect(c))
			}
		})
		s.Queues = append(s.Queues, c.inspectEvents())
	}
}

func (q *cq) inspect() CQInspection {
	n, _ := q.ring.Unpolled() // a ring that its program corrupted counts as full
	return CQInspection{
		Number: q.ref, Program: q.client.cfg.Name, PID: q.client.cfg.PID, Users: q.uses, Unpolled: n, Waiters: len(q.waiters),
		Failed: q.failed,
		Count:  q.chosen.Count, Held: q.held, Interval: q.chosen.Interval,
	}
}

func (s *srq) inspect() SRQInspection {
	n, _ := s.ring.Pending()
	return SRQInspection{
		Handle: s.handle, Program: s.client.cfg.Name, PID: s.client.cfg.PID, Depth: s.depth, Posted: uint32(n), Limit: s.limit,
		Users: s.uses, Failed: s.failed,
	}
}

func (m *mr) inspect(c *Client) MRInspection {
	r := m.region
	return MRInspection{
		Handle: m.handle, Key: r.Key, PD: uint32(r.PD), Base: r.Base, Length: r.Length, IOVA: r.IOVA, Access: uint32(r.Access),
		Program: c.cfg.Name, PID: c.cfg.PID,
	}
}

func (c *Client) inspectEvents() EventQueueInspection {
	waiting, first := c.events.Peek(listedEvents)
	return EventQueueInspection{c.cfg.Name, c.cfg.PID, waiting, first}
}
