package packetdirect

import (
	"slices"

	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/verbs"
)

// MostEntries is how many entries the table of a Spread has at most.
const MostEntries = verbs.MostRSSEntries

// SpreadConfig describes a Spread. Queues is required.
type SpreadConfig struct {
	// Queues are receive queues of the adapter, at most MostEntries, each once.
	Queues []*ReceiveQueue
	// Table is the indirection table: which of Queues each entry is for. Its length is a power of two, at most MostEntries; nil: 128
	// entries, for the queues in turn.
	Table []int
	// Key is that of the Toeplitz hash; zero: Microsoft's.
	Key [40]byte
	// Fields are those that the hash is over, as far as a frame has them; 0: addresses of IPv4 and IPv6, and ports of TCP and UDP.
	Fields verbs.RSSFields
}

// Spread spreads the frames of its filters over receive queues (receive-side scaling): the lowest bits of the Toeplitz hash over a
// frame's fields choose an entry of its table. So frames of one flow go to one queue. A frame without the fields is for the first
// entry. Buffer.Hash has the hash.
type Spread struct {
	a       *Adapter
	rss     *verbs.RSS
	queues  []*ReceiveQueue
	filters filters
}

// NewSpread makes a Spread without filters. The errors are verbs.ErrInvalid naming the field, verbs.ErrExhausted, and
// verbs.ErrUnsupported with a driver that has none.
func (a *Adapter) NewSpread(c SpreadConfig) (*Spread, error) {
	if len(c.Queues) < 1 || len(c.Queues) > MostEntries {
		return nil, failed("new spread", verbs.ErrInvalid, "Queues are %d, want 1 to %d", len(c.Queues), MostEntries)
	}
	for i, q := range c.Queues {
		if q == nil || q.a != a {
			return nil, failed("new spread", verbs.ErrInvalid, "Queues[%d] is not a queue of this adapter", i)
		}
	}
	if c.Key == [40]byte{} {
		c.Key = rss.DefaultKey
	}
	if c.Fields == 0 {
		c.Fields = verbs.RSSSrcIPv4 | verbs.RSSDstIPv4 | verbs.RSSSrcIPv6 | verbs.RSSDstIPv6 | verbs.RSSSrcTCP | verbs.RSSDstTCP |
			verbs.RSSSrcUDP | verbs.RSSDstUDP
	}
	s := &Spread{a: a, queues: slices.Clone(c.Queues)}
	if c.Table == nil {
		c.Table = make([]int, MostEntries)
		for i := range c.Table {
			c.Table[i] = i % len(c.Queues)
		}
	}
	table, err := s.table(c.Table)
	if err != nil {
		return nil, err
	}
	s.rss, err = a.dev.CreateRSS(verbs.RSSConfig{Table: table, Key: c.Key, Fields: c.Fields | verbs.RSSPresent})
	if err != nil {
		return nil, err
	}
	if !a.add(func() { a.spreads[s] = true }) {
		_ = s.rss.Close()
		return nil, failed("new spread", verbs.ErrClosed, "")
	}
	return s, nil
}

// table returns the queue pairs of a table's queues.
func (s *Spread) table(entries []int) ([]*verbs.QP, error) {
	table := make([]*verbs.QP, len(entries))
	for i, k := range entries {
		if k < 0 || k >= len(s.queues) {
			return nil, failed("spread", verbs.ErrInvalid, "Table[%d] is %d, want 0 to %d", i, k, len(s.queues)-1)
		}
		table[i] = s.queues[k].qp
	}
	return table, nil
}

// SetTable gives it another indirection table, as SpreadConfig.Table, for frames that arrive from now on.
func (s *Spread) SetTable(entries []int) error {
	table, err := s.table(entries)
	if err != nil {
		return err
	}
	return s.rss.SetTable(table)
}

// AddFilter is ReceiveQueue.AddFilter for all queues.
func (s *Spread) AddFilter(f Filter) (*Steering, error) { return s.filters.add(f, s.rss.CreateFlow) }

// Close ends it with its filters. The queues remain; they cannot be closed before it. Closing twice is harmless.
func (s *Spread) Close() error {
	s.a.mu.Lock()
	_, open := s.a.spreads[s]
	delete(s.a.spreads, s)
	s.a.mu.Unlock()
	if !open {
		return nil
	}
	return s.end()
}

// has reports whether a queue is one of those that it spreads over.
func (s *Spread) has(q *queue) bool {
	return slices.ContainsFunc(s.queues, func(r *ReceiveQueue) bool { return &r.queue == q })
}

func (s *Spread) end() error {
	if err := s.filters.end(); err != nil {
		return err
	}
	return s.rss.Close()
}
