package ethernet

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// balanceGap is the time between two looks at how queues are loaded.
const balanceGap = 100 * time.Millisecond

// spreading is what a function keeps for receive side scaling.
type spreading struct {
	hash       *rss.Toeplitz
	types      rss.Types // that are hashed
	table      rss.Table
	set        bool            // somebody has set the table: it stays
	used       int             // queues that the table has
	processors []rss.Processor // of the receive queues
	balanced   clock.Time      // when the queues' loads are looked at next
	first      int             // the queue of frames without a hash
	counting   bool            // RSS monitoring counts
}

// startSpreading chooses the processors and fills in the table.
func (f *Function) startSpreading() {
	c := &f.cfg
	f.hash, f.types, f.balanced = rss.NewToeplitz(&rss.DefaultKey), rss.All, clock.Never
	at := rss.Placement{
		BaseGroup: c.RssBaseProcGroup, BaseNumber: c.RssBaseProcNumber, MaxNumber: c.RssMaxProcNumber, MaxProcessors: c.MaxRSSProcessors,
		Queues: min(c.NumRSSQueues, c.MaxNumRssCpus), Node: c.NumaNodeID, Profile: rss.Profile(c.RSSProfile),
	}
	if c.RSS == 0 {
		at.Queues = 1
	}
	machine := c.Machine
	if len(machine) == 0 {
		machine = make([]rss.Processor, at.MaxProcessors+c.RssBaseProcNumber)
		for i := range machine {
			machine[i].Number = i
		}
	}
	f.processors = c.Virtual.choose(at, machine, c.DefaultRecvRingProcessor)
	f.used = len(f.processors)
	f.first = max(0, slices.IndexFunc(f.processors, func(p rss.Processor) bool { return p.Number == c.DefaultRecvRingProcessor }))
	if at.Profile == rss.Conservative {
		f.used = 1
	}
	f.table.Spread(f.used)
	f.counting = c.RssMonitoringEnabled != 0 && c.RssCountersActivatedAtStartup != 0
	if c.RSS != 0 && !at.Profile.Static() {
		f.balanced = 0
	}
}

// Processors returns the processors that receive queues are for, by their numbers: those of a thread for each.
func (f *Function) Processors() []rss.Processor { return f.processors }

// Table returns the queue of each entry of the indirection table.
func (f *Function) Table() []uint8 { return f.table.Entries() }

// SetTable replaces the indirection table, which then stays as it is. The error is a *rss.TableError; with *RSS 0 the table
// cannot be changed (WinOF 5.50, 4.6.5).
func (f *Function) SetTable(queues []uint8) error {
	if f.cfg.RSS == 0 {
		return &rss.TableError{Field: "*RSS", Got: 0, Want: "1, for a table that can be changed"}
	}
	err := f.table.Set(queues, len(f.receive))
	f.set = f.set || err == nil
	return err
}

// SetHash replaces the key and the types of hashes. With type 0 no frame has a hash, and all go to the first queue.
func (f *Function) SetHash(key *rss.Key, types rss.Types) {
	f.hash, f.types = rss.NewToeplitz(key), types&rss.All
}

// balance looks at the queues' loads, if it is time.
func (f *Function) balance(now clock.Time) {
	if now < f.balanced {
		return
	}
	f.balanced = now.Add(balanceGap)
	if f.set {
		return
	}
	if rss.Profile(f.cfg.RSSProfile) == rss.Conservative {
		if n := f.table.Sufficient(len(f.receive)); n > f.used {
			f.used = n
			f.table.Spread(n)
			return
		}
	}
	f.table.Balance(f.used)
}

// hashOf returns the hash of a received frame by the headers that innerOf gives, of type 0 for one that RSS does not spread.
func (f *Function) hashOf(h *eth.Headers, b []byte) (hash uint32, kind rss.Types) {
	if f.cfg.spreads(h) {
		hash, kind = f.hash.Of(h, b, f.types)
	}
	return hash, kind
}

// Spreads reports whether RSS spreads frames like this one, in a tunnel like the one inside.
func (c *Config) Spreads(h *eth.Headers, b []byte) bool {
	var t tunnel.Frame
	return c.spreads(c.inside(&t, h, b))
}

// spreads is Spreads by the headers that count (WinOF 5.50, 4.6.6: UseRSSForUDP, UseRSSForRawIP).
func (c *Config) spreads(h *eth.Headers) bool {
	switch {
	case h.Version == 0 || c.RSS == 0:
		return false
	case h.Data != 0 && h.Protocol == eth.ProtocolTCP:
		return true
	case h.Protocol == eth.ProtocolUDP:
		return c.UseRSSForUDP != 0
	}
	return c.UseRSSForRawIP != 0
}

// queueOf returns the receive queue of a hash. Frames without one are for that of DefaultRecvRingProcessor.
func (f *Function) queueOf(hash uint32, kind rss.Types) int {
	if kind == 0 {
		return f.first
	}
	f.table.Count(hash)
	return f.table.Queue(hash)
}
