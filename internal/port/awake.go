package port

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/clock/due"
	"github.com/softvpi/softvpi/internal/wakeup"
)

// Sleeper is a Function that need not be asked for anything while it has nothing to do.
type Sleeper interface {
	Function
	// SetBell gives it its bell. It rings it whenever Rests, Pending or Deadline may have changed because of anything but a call of the
	// port's, and may ring it for nothing.
	SetBell(*wakeup.Bell)
	// Rests reports whether it has nothing to do before its Deadline, nothing to send and nothing handed out, and whether Advance before
	// that would change nothing.
	Rests() bool
}

// restsAfter is how many turns without anything to do a station is asked before it sleeps: falling asleep and waking up cost about as
// much as so few turns, and who has just had something to do most likely has more.
const restsAfter = 256

// roster says which stations a port's turn asks. Those that sleep are woken by their bells, which also the port rings for what arrives,
// and when their deadlines come. The others are in the order of all stations, so that turns are what they are if all are asked.
type roster struct {
	awake []*Station
	due   due.Times // of those asleep, by their places among all stations
	room  int       // for how many there is in due
	// newcomers says that stations have come that followFlow has told nothing.
	newcomers bool
}

// enlist puts all stations on the roster, awake: one has come or gone.
func (p *Port) enlist() {
	r := &p.roster
	r.room, r.due, r.newcomers = 0, due.Times{}, true
	for i, s := range p.stations {
		s.index = i
	}
	clear(r.awake)
	r.awake = append(r.awake[:0], p.stations...)
	for _, s := range p.stations {
		s.bell.Ring()
		s.rested = 0
	}
}

// rest lets a station sleep that has had nothing to do for some turns.
func (p *Port) rest(s *Station) {
	if s.sleeper == nil || len(p.stations) == 1 {
		return
	}
	if !s.sleeper.Rests() {
		s.rested = 0
		return
	}
	if s.rested++; s.rested < restsAfter {
		return
	}
	r := &p.roster
	if r.room == 0 {
		r.room = len(p.stations)
		r.due = due.New(r.room)
	}
	at := clock.Never
	if !s.off {
		at = s.function.Deadline()
	}
	r.due.Set(s.index, at)
	i, _ := r.find(s.index)
	r.awake = slices.Delete(r.awake, i, i+1)
	s.bell.Sleep()
	if s.Sleeps != nil {
		s.Sleeps(true)
	}
}

// wake puts a station on the list of those that are asked.
func (p *Port) wake(s *Station) {
	if s.rested = 0; s.gone {
		return
	}
	r := &p.roster
	if i, there := r.find(s.index); !there {
		r.awake = slices.Insert(r.awake, i, s)
	}
	if r.room > s.index {
		r.due.Set(s.index, clock.Never)
	}
	if s.Sleeps != nil {
		s.Sleeps(false)
	}
}

// find returns where the station with a place among all is, or belongs, among those awake.
func (r *roster) find(index int) (int, bool) {
	return slices.BinarySearchFunc(r.awake, index, func(s *Station, index int) int { return s.index - index })
}

// after returns where the station is that follows one that was at i, whatever has happened meanwhile.
func (r *roster) after(i int, s *Station) int {
	if i < len(r.awake) && r.awake[i] == s {
		return i + 1
	}
	i, _ = r.find(s.index + 1)
	return i
}

// wakeDue wakes the stations whose deadlines have come.
func (p *Port) wakeDue(now clock.Time) {
	for r := &p.roster; r.room > 0 && r.due.First() <= now; {
		p.stations[r.due.Next()].bell.Ring()
	}
}

// Asleep reports whether the station is asked for nothing, because it has nothing to do.
func (s *Station) Asleep() bool { return s.bell.Asleep() }

// Ring wakes the station, if it sleeps: somebody has something for its function to do.
func (s *Station) Ring() { s.bell.Ring() }

// Overslept returns a station that sleeps though it has something to do now, which is a bug of its function; nil: none does. It asks all.
func (p *Port) Overslept() *Station {
	for _, s := range p.stations {
		if s.bell.Asleep() && (!s.sleeper.Rests() || !s.off && s.oversleeps()) {
			return s
		}
	}
	return nil
}

// oversleeps reports whether a station that sleeps has something to send, or a deadline of which the port does not know.
func (s *Station) oversleeps() bool {
	return s.function.Pending() != 0 || s.function.Deadline() < s.port.roster.due.Get(s.index)
}

// IdleTurn is Advance for who knows that there is nothing to do, and that nothing is due: stations come closer to falling asleep.
func (p *Port) IdleTurn() {
	for i := 0; i < len(p.roster.awake); {
		s := p.roster.awake[i]
		p.rest(s)
		i = p.roster.after(i, s)
	}
}
