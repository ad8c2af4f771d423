package port

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

const (
	// stalledLives is for how many lifetimes the packets of a stalled class are lost, as those of a virtual lane are (IBA 18.2.5.4).
	stalledLives = 8
	// lostAtOnce is how many packets of a stalled class are lost in a turn.
	lostAtOnce = 32
	// stalledTurn is how far such turns are apart at most.
	stalledTurn = 50 * time.Microsecond
)

// Lifetime is how long packets may be at the head of their traffic class (WinOF-2 Ethernet, Head of Queue Lifetime Limit), after IBA
// 18.2.5.4: a packet that has been there for longer is lost. The zero value: for ever.
type Lifetime struct {
	// Classes are those that have a limit, bit c for class c.
	Classes uint8
	// Limit is for how long.
	Limit time.Duration
	// StallCount is after how many packets lost in a row all of the class are lost, for eight lifetimes; 0: never.
	StallCount int
}

// HeadLifetime returns the limit that a value of TCHeadOfQueueLifeTimeLimit means: 4.096 us times 2 to the power of it; 0, for ever,
// if it is above 19 (IBA 14.2.5.6: HOQLife).
func HeadLifetime(value int) time.Duration {
	if value > 19 {
		return 0
	}
	return 4096 * time.Nanosecond << value
}

// lifetime is a Lifetime at work.
type lifetime struct {
	cfg     Lifetime
	since   [classes]clock.Time // when the packet at the head of a class came there; 0: none is there
	row     [classes]int        // packets lost in a row
	stalled [classes]clock.Time // till when all are lost
	at      clock.Time          // when age has something to do
	lost    [classes]uint64
	out     []frame.Out
}

// SetLifetime sets how long packets may be at the head of their class. The error is a *ConfigError.
func (p *Port) SetLifetime(l Lifetime) error {
	if l.Limit < 0 || l.StallCount < 0 {
		return &ConfigError{"Lifetime", uint64(l.StallCount), fmt.Sprintf("no negative numbers: %v", l.Limit)}
	}
	if l.Limit == 0 {
		l.Classes = 0
	}
	x := &p.lifetime
	lost := x.lost
	*x = lifetime{cfg: l, lost: lost, out: x.out, at: clock.Never}
	if l.Classes != 0 && x.out == nil {
		x.out = make([]frame.Out, lostAtOnce)
	}
	return nil
}

// Lifetime returns how long packets may be at the head of their class.
func (p *Port) Lifetime() Lifetime { return p.lifetime.cfg }

// Discarded returns how many packets of the class of each priority were lost instead of sent, because they had waited for too long.
func (p *Port) Discarded() (lost [frame.Priorities]uint64) {
	for i, c := range p.Scheduler.traffic.Class {
		lost[i] = p.lifetime.lost[c]
	}
	return lost
}

// age loses packets that have been at the head of their class for too long. Nothing is handed out: their functions get them back at
// once.
func (p *Port) age(now clock.Time) {
	x, s := &p.lifetime, &p.Scheduler
	if !s.checked {
		s.settle()
	}
	pending := p.pending()
	x.at = clock.Never
	for set := x.cfg.Classes; set != 0; set &= set - 1 {
		c := bits.TrailingZeros8(set)
		waits := pending & s.members[c]
		if waits == 0 {
			x.since[c], x.row[c] = 0, 0
			continue
		}
		if x.since[c] == 0 {
			x.since[c] = max(now, 1)
		}
		most := 1
		switch {
		case now < x.stalled[c]:
			most = lostAtOnce
		case now < x.since[c].Add(x.cfg.Limit):
			x.at = clock.Min(x.at, x.since[c].Add(x.cfg.Limit))
			continue
		}
		priority := s.turn(c, waits)
		n := p.pull(now, priority, x.out[:most])
		x.lost[c] += uint64(n)
		x.since[c] = max(now, 1)
		if x.row[c] += n; x.cfg.StallCount > 0 && x.row[c] >= x.cfg.StallCount && now >= x.stalled[c] {
			x.stalled[c], x.row[c] = now.Add(stalledLives*x.cfg.Limit), 0
		}
		if now < x.stalled[c] {
			x.at = clock.Min(x.at, now.Add(stalledTurn))
		} else {
			x.at = clock.Min(x.at, x.since[c].Add(x.cfg.Limit))
		}
	}
}

// left notes that packets of a priority have left.
func (x *lifetime) left(now clock.Time, class uint8) {
	x.since[class], x.row[class] = max(now, 1), 0
}
