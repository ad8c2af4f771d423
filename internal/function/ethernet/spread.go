package ethernet

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/wire/eth"
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
}

// startSpreading chooses the processors and fills in the table.
func (f *Function) startSpreading() {
	c := &f.cfg
	f.hash, f.types, f.balanced = rss.NewToeplitz(&rss.DefaultKey), rss.All, clock.Never
	at := rss.Placement{
		BaseGroup: c.RssBaseProcGroup, BaseNumber: c.RssBaseProcNumber, MaxNumber: c.RssMaxProcNumber, MaxProcessors: c.MaxRSSProcessors,
		Queues: c.NumRSSQueues, Node: c.NumaNodeID, Profile: rss.Profile(c.RSSProfile),
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
	f.processors = at.Choose(machine)
	f.used = len(f.processors)
	f.first = max(0, slices.IndexFunc(f.processors, func(p rss.Processor) bool { return p.Number == c.DefaultRecvRingProcessor }))
	if at.Profile == rss.Conservative {
		f.used = 1
	}
	f.table.Spread(f.used)
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

// hashOf returns the hash of a received frame, of type 0 for one that RSS does not spread.
func (f *Function) hashOf(h *eth.Headers, b []byte) (hash uint32, kind rss.Types) {
	if f.spreads(h) {
		hash, kind = f.hash.Of(h, b, f.types)
	}
	return hash, kind
}

// spreads reports whether RSS spreads frames like this one (WinOF 5.50, 4.6.6: UseRSSForUDP, UseRSSForRawIP).
func (f *Function) spreads(h *eth.Headers) bool {
	switch {
	case h.Version == 0 || f.cfg.RSS == 0:
		return false
	case h.Data != 0 && h.Protocol == eth.ProtocolTCP:
		return true
	case h.Protocol == eth.ProtocolUDP:
		return f.cfg.UseRSSForUDP != 0
	}
	return f.cfg.UseRSSForRawIP != 0
}

// queueOf returns the receive queue of a hash. Frames without one are for that of DefaultRecvRingProcessor.
func (f *Function) queueOf(hash uint32, kind rss.Types) int {
	if kind == 0 {
		return f.first
	}
	f.table.Count(hash)
	return f.table.Queue(hash)
}

// The kinds of frames that RSS monitoring tells apart, in the order of the counters of "Mellanox Adapter Rss Counters"
// (WinOF 5.50, 4.9.4.4.2): without a hash, then with one. Frames in tunnels are not looked into.
const (
	kindIPv4 = iota
	kindIPv4TCP
	kindIPv4UDP
	kindIPv6
	kindIPv6TCP
	kindIPv6UDP
	kindMisc
	hashed // the same kinds, with a hash
	kinds  = 2 * hashed
)

// kindOf returns the kind of a frame: by its headers if it has no hash, else by what was hashed.
func kindOf(h *eth.Headers, t rss.Types) int {
	switch t {
	case 0:
		return kindWithout(h)
	case rss.IPv4:
		return hashed + kindIPv4
	case rss.TCPIPv4:
		return hashed + kindIPv4TCP
	case rss.UDPIPv4:
		return hashed + kindIPv4UDP
	case rss.IPv6, rss.IPv6Ex:
		return hashed + kindIPv6
	case rss.TCPIPv6, rss.TCPIPv6Ex:
		return hashed + kindIPv6TCP
	case rss.UDPIPv6, rss.UDPIPv6Ex:
		return hashed + kindIPv6UDP
	}
	return hashed + kindMisc
}

func kindWithout(h *eth.Headers) int {
	kind := kindMisc
	switch h.Version {
	case 4:
		kind = kindIPv4
	case 6:
		kind = kindIPv6
	default:
		return kind
	}
	if h.Data != 0 {
		switch h.Protocol {
		case eth.ProtocolTCP:
			kind += kindIPv4TCP - kindIPv4
		case eth.ProtocolUDP:
			kind += kindIPv4UDP - kindIPv4
		}
	}
	return kind
}

// RSSCounters returns how many frames of each kind for a receive queue had no hash and how many had one, in the order of the
// counters' set, if RssMonitoringEnabled is 1.
func (f *Function) RSSCounters(q int) (without, with [hashed]uint64) {
	k := &f.receive[q].kinds
	return [hashed]uint64(k[:hashed]), [hashed]uint64(k[hashed:])
}
