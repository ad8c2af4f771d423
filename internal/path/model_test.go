package path

import (
	"fmt"
	"testing"
)

// stage is how far an end's message has come.
type stage uint8

const (
	none   stage = iota
	sent         // packets are under way
	handed       // handed to the loop; the peer has not looked at it
	opened       // the peer has begun to move it
	inside       // the end's program is in the middle of an operation
)

// modelEnd is an end of a connection: an engine and a program.
type modelEnd struct {
	left   uint8   // messages that it has still to send
	at     Carrier // where its engine sends: the engine learns of the end of the local path in a turn of its own
	flight stage
}

// model is a connection with two ends. It is a value, so that all states can be kept.
type model struct {
	path Connection
	ends [2]modelEnd
}

const modelMessages = 2

func (m model) String() string { return fmt.Sprintf("%v %+v", m.path.state, m.ends) }

// quiet reports whether nothing is in progress, as the owner finds when it looks. A connection that leaves the local path
// only waits for what is half moved.
func (m *model) quiet() bool {
	for _, e := range m.ends {
		if e.flight == none || m.path.state == Leaving && e.flight == handed {
			continue
		}
		return false
	}
	return true
}

// step makes a transition as the owner does, and carries out what it asks for.
func (m *model) step(e Event) bool {
	do, ok := m.path.Step(e)
	if !ok {
		return false
	}
	for i := range m.ends {
		x := &m.ends[i]
		switch {
		case do&Join != 0:
			x.at = ByLoop
		case do&Delegate != 0:
			x.at = ByPrograms
		case do&Reclaim != 0 && do&Leave == 0:
			x.at = ByLoop
		}
	}
	return true
}

// move is something that happens in the model.
type move struct {
	name string
	to   model
}

// progress returns what happens by itself: what is under way ends, and ends learn of changes.
func (m model) progress() (all []move) {
	add := func(name string, change func(*model)) {
		n := m
		change(&n)
		all = append(all, move{name, n})
	}
	for i, x := range m.ends {
		name := fmt.Sprint("end ", i)
		switch {
		case x.flight == sent, x.flight == inside:
			add(name+" finishes", func(n *model) { n.ends[i].flight = none; n.ends[i].left-- })
		case x.flight == handed && m.path.Carrier() == ByLoop && m.path.state != Leaving:
			add(name+" is opened", func(n *model) { n.ends[i].flight = opened })
		case x.flight == opened && m.path.Carrier() == ByLoop:
			add(name+" finishes", func(n *model) { n.ends[i].flight = none; n.ends[i].left-- })
		}
		if x.at != m.path.Carrier() && m.path.Carrier() == ByPackets {
			add(name+" turns to packets", func(n *model) { // what was not finished starts over
				n.ends[i].at = ByPackets
				if f := n.ends[i].flight; f == handed || f == opened {
					n.ends[i].flight = none
				}
			})
		}
	}
	events := []Event{}
	if m.quiet() {
		events = append(events, Quiet)
	}
	if m.ends[0].flight != inside && m.ends[1].flight != inside {
		events = append(events, Returned)
	}
	for _, e := range events {
		n := m
		if n.step(e) {
			all = append(all, move{e.String(), n})
		}
	}
	return all
}

// moves returns all that can happen: progress, what the ends begin, and what the owner is told or finds.
func (m model) moves() []move {
	all := m.progress()
	for i, x := range m.ends {
		if x.left == 0 || x.flight != none {
			continue
		}
		n := m
		switch {
		case m.path.Begins() && x.at == m.path.Carrier() && x.at == ByPackets:
			n.ends[i].flight = sent
		case m.path.Begins() && x.at == m.path.Carrier() && x.at == ByLoop:
			n.ends[i].flight = handed
		case m.path.state == Delegated:
			n.ends[i].flight = inside
		default:
			continue
		}
		all = append(all, move{fmt.Sprint("end ", i, " begins"), n})
	}
	for _, e := range []Event{Permit, Demand, Busy, Long, Expire, Offer, Refuse, Recall, Break} {
		if (e == Busy || e == Long) && m.quiet() {
			continue
		}
		n := m
		if n.step(e) {
			all = append(all, move{e.String(), n})
		}
	}
	return all
}

// live returns where a message under way can still make progress.
func (m *model) live(x *modelEnd) (Carrier, bool) {
	switch x.flight {
	case sent:
		return ByPackets, true
	case handed, opened:
		return ByLoop, m.path.Carrier() == ByLoop
	case inside:
		return ByPrograms, true
	}
	return 0, false
}

// check returns what is wrong with a state of the model.
func (m *model) check() string {
	a, aLive := m.live(&m.ends[0])
	b, bLive := m.live(&m.ends[1])
	if aLive && bLive && a != b {
		return "messages are on two paths"
	}
	if c := m.path.Carrier(); aLive && a != c || bLive && b != c {
		return "a message is not on the connection's path"
	}
	return ""
}

// explore calls visit for every state of the model that can be reached, with the way to it.
func explore(visit func(m model, way func() string)) int {
	type origin struct {
		from model
		name string
	}
	first := model{}
	for i := range first.ends {
		first.ends[i].left = modelMessages
	}
	seen := map[model]origin{first: {}}
	queue := []model{first}
	for len(queue) > 0 {
		m := queue[0]
		queue = queue[1:]
		visit(m, func() (s string) {
			for x := m; x != first; x = seen[x].from {
				s = seen[x].name + "; " + s
			}
			return s
		})
		for _, next := range m.moves() {
			if _, known := seen[next.to]; !known {
				seen[next.to] = origin{m, next.name}
				queue = append(queue, next.to)
			}
		}
	}
	return len(seen)
}

// TestModel_MessagesAreOnOnePath: whatever the two ends, their programs and the owner do, in any order, all messages
// that can make progress are on the path of the connection.
func TestModel_MessagesAreOnOnePath(t *testing.T) {
	reached := map[State]bool{}
	n := explore(func(m model, way func() string) {
		reached[m.path.state] = true
		if wrong := m.check(); wrong != "" {
			t.Fatalf("%s: %v, after %s", wrong, m, way())
		}
	})
	if len(reached) != int(states) {
		t.Errorf("%d of %d states are reached: %v", len(reached), states, reached)
	}
	t.Logf("%d states of the model", n)
}

// TestModel_DemandLeadsToTheWire: from whatever has happened, a demand for packets leads to the wire, for both ends, without
// further help: by the end of what is in progress alone, in any order.
func TestModel_DemandLeadsToTheWire(t *testing.T) {
	good := map[model]bool{}
	var leads func(m model, open map[model]bool) string
	leads = func(m model, open map[model]bool) string {
		if good[m] {
			return ""
		}
		if open[m] {
			return fmt.Sprintf("goes round in circles at %v", m)
		}
		next := m.progress()
		if len(next) == 0 && (m.path.state != Wire || m.ends[0].at != ByPackets || m.ends[1].at != ByPackets) {
			return fmt.Sprintf("stays in %v", m)
		}
		open[m] = true
		for _, n := range next {
			if wrong := leads(n.to, open); wrong != "" {
				return n.name + "; " + wrong
			}
		}
		delete(open, m)
		good[m] = true
		return ""
	}
	explore(func(m model, way func() string) {
		m.step(Demand)
		if wrong := leads(m, map[model]bool{}); wrong != "" {
			t.Fatalf("%s, after %s demand", wrong, way())
		}
	})
}

// TestModel_DemandIsKept: a demand for packets stays in force, whatever else happens, until it is withdrawn: no message
// begins anywhere but on the wire.
func TestModel_DemandIsKept(t *testing.T) {
	for s := range states {
		c := Connection{s}
		c.Step(Demand)
		seen := map[State]bool{}
		var follow func(c Connection)
		follow = func(c Connection) {
			if seen[c.state] {
				return
			}
			seen[c.state] = true
			if c.Begins() && c.Carrier() != ByPackets || c.state == Delegated {
				t.Fatalf("from %v after a demand to %v", s, c.state)
			}
			for e := range events {
				if next := c; e != Permit {
					next.Step(e)
					follow(next)
				}
			}
		}
		follow(c)
	}
}
