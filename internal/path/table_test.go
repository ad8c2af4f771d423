package path

import (
	"fmt"
	"testing"
)

// refused are the events that cannot happen in a state.
var refused = map[State][]Event{
	Wire:        {Quiet, Busy, Long, Expire, Returned},
	Waiting:     {Expire, Returned},
	Joining:     {Returned},
	Local:       {Quiet, Busy, Long, Expire, Returned},
	Offered:     {Expire, Returned},
	Delegating:  {Expire, Returned},
	Leaving:     {Busy, Long, Expire, Returned},
	Delegated:   {Quiet, Busy, Long, Expire, Returned},
	Recalling:   {Quiet, Busy, Long, Expire},
	Withdrawing: {Quiet, Busy, Long, Expire},
	Ending:      {Quiet, Busy, Long, Expire},
}

// TestTable_EveryStateAndEvent: each state and event is either in the table, or refused and changes nothing.
func TestTable_EveryStateAndEvent(t *testing.T) {
	for s := range states {
		no := map[Event]bool{}
		for _, e := range refused[s] {
			no[e] = true
		}
		for e := range events {
			c := Connection{s}
			do, ok := c.Step(e)
			if ok == no[e] {
				t.Errorf("%v, %v: accepted %v, want %v", s, e, ok, !no[e])
			}
			if !ok && (c.state != s || do != 0) {
				t.Errorf("%v, %v: refused, but leads to %v and asks for %#x", s, e, c.state, do)
			}
		}
	}
	c := Connection{Local}
	if _, ok := c.Step(events); ok || c.state != Local {
		t.Error("an unknown event was accepted")
	}
}

// TestTable_ActionsFollowFromStates: what a transition asks for is what differs between the two states: no message
// begins or begins again (Hold, Release), another carries them (Join, Leave, Delegate, Reclaim), programs are to leave
// (Withdraw); and what waits for the local path rests when a look found no way to it (Rest).
func TestTable_ActionsFollowFromStates(t *testing.T) {
	for s := range states {
		for e := range events {
			c := Connection{s}
			do, ok := c.Step(e)
			if !ok {
				continue
			}
			from, to := s.Carrier(), c.Carrier()
			want := map[Actions]bool{
				Hold:     s.Begins() && !c.Begins() && !(from == ByPrograms),
				Release:  !s.Begins() && c.Begins(),
				Join:     from == ByPackets && to == ByLoop,
				Leave:    from != ByPackets && to == ByPackets,
				Delegate: from == ByLoop && to == ByPrograms,
				Reclaim:  from == ByPrograms && to != ByPrograms,
				Withdraw: s == Delegated && c.state != Delegated,
				Rest:     c.state == Waiting && (e == Long || e == Expire),
			}
			for a, w := range want {
				if (do&a != 0) != w {
					t.Errorf("%v, %v to %v: action %#x is %v, want %v", s, e, c.state, a, do&a != 0, w)
				}
			}
			if from == ByPackets && to == ByPrograms {
				t.Errorf("%v, %v to %v: from packets to programs at once", s, e, c.state)
			}
		}
	}
}

// TestNames: each state and event has a name of its own.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for s := range states {
		seen[fmt.Sprint(s)] = true
	}
	for e := range events {
		seen[fmt.Sprint(e)] = true
	}
	if n := int(states) + int(events); len(seen) != n || seen[""] || seen["unknown"] {
		t.Errorf("%d names of %d states and events: %v", len(seen), n, seen)
	}
	if states.String() != "unknown" || events.String() != "unknown" {
		t.Error("what does not exist has a name")
	}
}
