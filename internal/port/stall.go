package port

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/pause"
)

// Watch is how long the receive path may stand still: nobody takes anything of what waits (WinOF-2 Ethernet, Receive Path Activity
// Monitoring). 0: for ever.
type Watch struct {
	// Watermark is after what time that is counted, and Timeout after what time flow control goes off, so that pauses do not spread
	// through the network, until something is taken.
	Watermark, Timeout time.Duration
}

// Stalls are what a watch has seen.
type Stalls struct {
	States          uint64 // times that packets began to wait in dropless mode
	Minor, Critical uint64 // times that the receive path stood still for longer than Watermark, and than Timeout
}

// watch is a Watch at work.
type watch struct {
	cfg      Watch
	counted  Stalls
	stands   bool
	since    clock.Time
	taken    uint64
	minor    bool // it is counted of this stall
	critical bool
	wanted   pause.Config // when nothing stands still
}

// SetWatch sets how long the receive path may stand still.
func (p *Port) SetWatch(w Watch) { p.watch.cfg = w }

// Stalls returns what the watch of the receive path has counted.
func (p *Port) Stalls() Stalls { return p.watch.counted }

// Stalled reports whether flow control is off because the receive path stands still.
func (p *Port) Stalled() bool { return p.watch.critical }

// observe looks whether the receive path stands still.
func (p *Port) observe(now clock.Time) {
	w := &p.watch
	if p.flow == nil || w.cfg == (Watch{}) && !w.critical {
		return
	}
	waits, taken := p.backlog.n > 0, p.backlog.taken
	for _, s := range p.stations {
		if s.filler != nil && !s.off {
			stands, n := s.filler.Stands()
			waits, taken = waits || stands, taken+n
		}
	}
	if !waits || taken != w.taken || !w.stands {
		w.stands, w.since, w.taken, w.minor = waits, now, taken, false
		if w.critical {
			w.critical = false
			p.flow.Set(now, w.wanted)
		}
		return
	}
	if m := w.cfg.Watermark; m != 0 && !w.minor && now >= w.since.Add(m) {
		w.minor = true
		w.counted.Minor++
	}
	if t := w.cfg.Timeout; t != 0 && !w.critical && now >= w.since.Add(t) {
		w.critical = true
		w.counted.Critical++
		p.flow.Set(now, pause.Config{MAC: w.wanted.MAC, Rate: w.wanted.Rate})
		p.followFlow(now)
	}
}

// due returns when observe has something to do by itself.
func (w *watch) due() clock.Time {
	due := clock.Never
	if !w.stands {
		return due
	}
	if m := w.cfg.Watermark; m != 0 && !w.minor {
		due = w.since.Add(m)
	}
	if t := w.cfg.Timeout; t != 0 && !w.critical {
		due = clock.Min(due, w.since.Add(t))
	}
	return due
}
