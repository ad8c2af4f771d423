package healing

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Settings are those of one adapter. They may change at any time.
type Settings struct {
	Every  time.Duration // between two looks: SHCheckForHangTimeInSeconds, at least a nanosecond
	Looks  int           // without progress until a part counts as stuck: CheckForHangCQMaxNoProgress, at least 1
	Active Sensor        // sensors whose errors restart: SHMPResetActiveSensorsMask
	Dump   Sensor        // sensors whose errors cause a dump: SHSensorsDumpMask
}

// DetectionTime returns how long a part may be stuck before a sensor finds it, at most.
func (s *Settings) DetectionTime(x Sensor) time.Duration {
	return time.Duration(x.looks(s.Looks)+1) * s.Every
}

// Reading says how far a part has come. A part of which nothing is read any more counts as one that has nothing to do.
type Reading struct {
	Sensor Sensor
	Part   uint32 // which of the parts that a sensor watches: the number of a queue
	Waits  bool   // there is something to do
	Done   uint64 // how much has been done so far; of a sensor of errors, how many there were
}

// Verdict is what follows from an error that a sensor has found.
type Verdict struct {
	Sensor  Sensor
	Part    uint32
	Dump    bool // write a dump
	Restart bool // restart what the sensor watches
	Stop    bool // do not: restarts have not helped
}

// part is what is known of a part.
type part struct {
	done   uint64
	stalls int  // consecutive looks at which it had something to do and had done nothing
	known  bool // done is of a look before
	read   bool // in this look
}

type place struct {
	sensor Sensor
	number uint32
}

// Checker watches one adapter. The zero value is not ready; see New.
type Checker struct {
	set    Settings
	due    clock.Time
	parts  map[place]*part
	counts map[Sensor]uint64
	found  Sensor
	begun  bool // there was a look, or a restart: errors of which nothing was read yet were there before

	restarts uint64
	internal Row // after internal errors
	out      []Verdict
}

// New returns a Checker whose first look is due one interval after now.
func New(now clock.Time, s Settings) *Checker {
	return &Checker{set: s, due: now.Add(s.Every), parts: map[place]*part{}, counts: map[Sensor]uint64{}}
}

// Set changes the settings. A longer or shorter interval counts from now on.
func (c *Checker) Set(now clock.Time, s Settings) {
	if s.Every != c.set.Every {
		c.due = now.Add(s.Every)
	}
	c.set = s
}

// Settings returns the settings.
func (c *Checker) Settings() Settings { return c.set }

// Deadline returns when the next look is due.
func (c *Checker) Deadline() clock.Time { return c.due }

// Look takes what was read of all parts when a look is due, and returns what sensors have found: each stuck part once until it
// gets on. The result is valid until the next call.
func (c *Checker) Look(now clock.Time, readings []Reading) []Verdict {
	c.due = now.Add(c.set.Every)
	c.out = c.out[:0]
	for _, r := range readings {
		at := place{r.Sensor, r.Part}
		p := c.parts[at]
		if p == nil {
			p = &part{}
			c.parts[at] = p
		}
		if p.read = true; p.looked(&r, r.Sensor.looks(c.set.Looks), !c.begun) {
			c.out = append(c.out, c.verdict(now, r.Sensor, r.Part))
		}
	}
	c.begun = true
	for at, p := range c.parts {
		if !p.read {
			delete(c.parts, at)
		}
		p.read = false
	}
	return c.out
}

// looked notes a reading, and reports whether the part is stuck now and was not before. With most 0 it is a count of errors, which
// begins at 0 if this is the first look.
func (p *part) looked(r *Reading, most int, first bool) bool {
	was := *p
	p.done, p.known = r.Done, true
	if most == 0 {
		return (was.known || first) && r.Done != was.done
	}
	if !r.Waits || !was.known || r.Done != was.done {
		p.stalls = 0
		return false
	}
	p.stalls = min(was.stalls+1, most+1)
	return p.stalls == most
}

// Report takes an error that a part has told itself, without a look.
func (c *Checker) Report(now clock.Time, s Sensor, number uint32) Verdict {
	return c.verdict(now, s, number)
}

func (c *Checker) verdict(now clock.Time, s Sensor, number uint32) Verdict {
	c.counts[s]++
	c.found |= s
	v := Verdict{Sensor: s, Part: number, Dump: c.set.Dump&s != 0, Restart: c.set.Active&s != 0}
	if s == Internal && v.Restart && !c.internal.Next(now) {
		v.Restart, v.Stop = false, true
	}
	return v
}

// Restarted says that the adapter was restarted: everything begins anew, and so do the counts of what is read.
func (c *Checker) Restarted(now clock.Time) {
	c.restarts++
	clear(c.parts)
	c.due, c.found, c.begun = now.Add(c.set.Every), 0, true
}

// Forget says that somebody else has restarted the adapter, or that it is off.
func (c *Checker) Forget() {
	clear(c.parts)
	c.found, c.begun = 0, true
}

// Restarts returns how often the adapter was restarted.
func (c *Checker) Restarts() uint64 { return c.restarts }

// Count returns how many errors a sensor has found.
func (c *Checker) Count(s Sensor) uint64 { return c.counts[s] }

// Found returns the sensors that have found an error since the last restart.
func (c *Checker) Found() Sensor { return c.found }

// Counters are those of one adapter.
type Counters struct {
	Restarts uint64
	Errors   [sensors]uint64 // that sensors have found, in the order of All
}

// Counters returns the counters as they are now.
func (c *Checker) Counters() (n Counters) {
	n.Restarts = c.restarts
	for i, s := range All {
		n.Errors[i] = c.counts[s]
	}
	return n
}

// Of returns how many errors a sensor has found.
func (n *Counters) Of(s Sensor) uint64 { return n.Errors[slices.Index(All[:], s)] }
