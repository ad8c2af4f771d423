package ethernet

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet/wake"
	"github.com/softvpi/softvpi/wire/eth"
)

// duplicateGap is the time between two events about the same duplicate address.
const duplicateGap = time.Minute

// sleeping is what a function keeps for a host that sleeps.
type sleeping struct {
	asleep     bool
	patterns   []wake.Pattern
	duplicated clock.Time // when the last event about a duplicate address may be followed by another
}

// Sleep says that the host sleeps: frames are dropped, until one wakes it, which is a magic packet for the function's address or
// matches a pattern, as far as *WakeOnMagicPacket and *WakeOnPattern allow it. The error is a *wake.PatternError; the host does
// not sleep then.
func (f *Function) Sleep(patterns []wake.Pattern) error {
	for i := range patterns {
		if err := patterns[i].Check(); err != nil {
			return err
		}
	}
	f.patterns, f.asleep = append(f.patterns[:0], patterns...), true
	return nil
}

// Wake says that the host is awake.
func (f *Function) Wake() { f.asleep = false }

// Asleep reports whether the host sleeps.
func (f *Function) Asleep() bool { return f.asleep }

// sleep deals with a frame for a host that sleeps. It reports whether the host still does: a frame that wakes it is passed on.
func (f *Function) sleep(now clock.Time, b []byte) bool {
	pattern := -1
	if f.cfg.WakeOnPattern != 0 {
		pattern = wake.Matches(f.patterns, b)
	}
	if pattern < 0 && (f.cfg.WakeOnMagicPacket == 0 || !wake.Magic(b, f.cfg.MAC)) {
		f.counters.Asleep++
		return true
	}
	f.asleep = false
	f.counters.Woken++
	f.host.Raised(now, Event{Kind: Woken, Pattern: pattern})
	return false
}

// duplicate raises an event about a frame that somebody else sends with the function's address.
func (f *Function) duplicate(now clock.Time, b []byte) {
	if now < f.duplicated {
		return
	}
	f.duplicated = now.Add(duplicateGap)
	f.host.Raised(now, Event{Kind: DuplicateMAC, MAC: eth.MAC(b[6:])})
}
