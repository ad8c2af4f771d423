package dcb

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
)

// flight is a frame on its way to one of two agents.
type flight struct {
	to    int
	at    clock.Time
	frame []byte
}

// pair are two agents with a wire between them.
type pair struct {
	agents [2]*Agent
	now    clock.Time
	flying []flight
	// fate says after which time a frame arrives; negative: never.
	fate func() clock.Time
}

// step lets both send what they have, and moves on to the next time at which anything happens, at most to until.
func (p *pair) step(until clock.Time) bool {
	due := until
	for i, a := range p.agents {
		a.Advance(p.now)
		for f := a.Transmit(p.now); f != nil; f = a.Transmit(p.now) {
			if after := p.fate(); after >= 0 {
				p.flying = append(p.flying, flight{1 - i, p.now + after, f})
			}
		}
		due = clock.Min(due, a.Deadline())
	}
	for _, f := range p.flying {
		due = clock.Min(due, f.at)
	}
	p.now = max(p.now, due)
	var left []flight
	for _, f := range p.flying {
		if f.at > p.now {
			left = append(left, f)
			continue
		}
		p.agents[f.to].Receive(p.now, f.frame)
	}
	p.flying = left
	return p.now < until
}

func (p *pair) run(d clock.Time) {
	for until := p.now + d; p.step(until); {
	}
}

// anySettings draws a port's own settings.
func anySettings(t *rapid.T, name string) (l Local8021Q) {
	l = Local8021Q{Willing: rapid.Bool().Draw(t, name+" willing"), Settings: qos.Defaults(),
		Protocol: Protocol(rapid.IntRange(0, 2).Draw(t, name+" protocol"))}
	if l.ChosenETS = rapid.Bool().Draw(t, name+" ETS"); l.ChosenETS {
		share := uint8(rapid.IntRange(1, 2).Draw(t, name+" share"))
		l.Settings.ETS = qos.ETS{Class: [8]uint8{3: 1, 5: 7}, Algorithm: [8]qos.Algorithm{qos.Enhanced, qos.Enhanced},
			Bandwidth: [8]uint8{100 - 10*share, 10 * share}}
	}
	if l.ChosenPFC = rapid.Bool().Draw(t, name+" PFC"); l.ChosenPFC {
		l.Settings.PFC = uint8(rapid.IntRange(0, 2).Draw(t, name+" priorities"))
	}
	if l.ChosenApplications = rapid.Bool().Draw(t, name+" applications"); l.ChosenApplications {
		for range rapid.IntRange(0, 2).Draw(t, name+" entries") {
			l.Settings.Applications = append(l.Settings.Applications, qos.Application{Selector: qos.Port,
				Protocol: uint16(rapid.IntRange(1, 2).Draw(t, name+" port")), Priority: uint8(rapid.IntRange(3, 4).Draw(t, name+" priority"))})
		}
		qos.Sort(l.Settings.Applications)
	}
	return l
}

// spoken returns which protocol two ports speak in the end, Auto if none.
func spoken(a, b Protocol) Protocol {
	switch {
	case a == Auto && b == Auto:
		return IEEE
	case a == Auto:
		return b
	case b == Auto || a == b:
		return a
	}
	return Auto
}

// outcome is what the standards say that port a has in the end, with a peer b; lower says that its MAC is.
func outcome(a, b *Config, lower bool) (o qos.Operative, conflict bool) {
	o = a.Own()
	switch spoken(a.Protocol, b.Protocol) {
	case IEEE: // 802.1Q, 38.4.1 and 38.4.2
		if !a.Willing {
			return o, false
		}
		if b.ChosenETS {
			o.ETS, o.ETSFrom = b.Settings.ETS, qos.FromPeer
		}
		if !b.Willing || lower {
			o.PFC, o.PFCFrom = b.Settings.PFC, qos.FromPeer
			o.Applications, o.ApplicationsFrom = b.Settings.Applications, qos.FromPeer
		}
	case CEE: // DCBX 1.01, 3.2.2
		if a.Willing != b.Willing {
			if a.Willing {
				o = qos.Operative{Settings: b.Settings, ETSFrom: qos.FromPeer, PFCFrom: qos.FromPeer, ApplicationsFrom: qos.FromPeer}
			}
			return o, false
		}
		none := qos.Operative{Settings: qos.Defaults()}
		if a.Settings.ETS != b.Settings.ETS {
			o.ETS, o.ETSFrom, conflict = none.ETS, none.ETSFrom, true
		}
		if a.Settings.PFC != b.Settings.PFC {
			o.PFC, o.PFCFrom, conflict = none.PFC, none.PFCFrom, true
		}
		if !agree(a.Settings.Applications, b.Settings.Applications) {
			o.Applications, o.ApplicationsFrom, conflict = nil, none.ApplicationsFrom, true
		}
	}
	return o, conflict
}

// agree reports whether the applications of both tables have the same priorities.
func agree(a, b []qos.Application) bool {
	of := func(table []qos.Application, port uint16) (set uint8) {
		for _, x := range table {
			if x.Protocol == port {
				set |= 1 << x.Priority
			}
		}
		return set
	}
	for _, port := range []uint16{1, 2} {
		if x, y := of(a, port), of(b, port); x != 0 && y != 0 && x != y {
			return false
		}
	}
	return true
}

// carried returns a table as CEE carries it: of several priorities of an application the highest, of each once.
func carried(table []qos.Application) (out []qos.Application) {
	for _, x := range table {
		if n := len(out); n > 0 && out[n-1].Protocol == x.Protocol {
			out[n-1] = x
			continue
		}
		out = append(out, x)
	}
	return out
}

// TestAgents_Converge: whatever is lost, comes late or in another order, whoever restarts, shuts down or is configured anew
// meanwhile: when all that is over, both ports work by what the standards say for what they are then configured with.
func TestAgents_Converge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		macs := [2]eth.MAC{macA, macB}
		if rapid.Bool().Draw(t, "swapped") {
			macs = [2]eth.MAC{macB, macA}
		}
		p := &pair{}
		for i := range p.agents {
			c := config(macs[i], true)
			c.Local8021Q = anySettings(t, fmt.Sprint(i))
			p.agents[i] = New(c)
		}
		loss := rapid.IntRange(0, 90).Draw(t, "loss in percent")
		p.fate = func() clock.Time {
			if rapid.IntRange(0, 99).Draw(t, "fate") < loss {
				return -1
			}
			return clock.Time(rapid.Int64Range(0, 3*second).Draw(t, "delay"))
		}
		for range rapid.IntRange(1, 12).Draw(t, "actions") {
			a := p.agents[rapid.IntRange(0, 1).Draw(t, "agent")]
			switch rapid.IntRange(0, 4).Draw(t, "action") {
			case 0:
				a.Stop(p.now)
			case 1:
				a.Start(p.now)
			case 2:
				a.SetWire(p.now, rapid.Bool().Draw(t, "wire"))
			case 3:
				c := a.Configuration()
				protocol := c.Protocol
				c.Local8021Q = anySettings(t, "new")
				c.Protocol = protocol
				a.Configure(p.now, c)
			}
			p.run(clock.Time(rapid.Int64Range(0, 40*second).Draw(t, "time")))
		}
		p.fate = func() clock.Time { return second / 1000 }
		for _, a := range p.agents {
			a.Start(p.now)
			a.SetWire(p.now, true)
		}
		p.run(seconds(300))
		for i, a := range p.agents {
			own, peer := a.Configuration(), p.agents[1-i].Configuration()
			want, conflict := outcome(&own, &peer, string(own.MAC[:]) < string(peer.MAC[:]))
			if spoken(own.Protocol, peer.Protocol) == CEE && want.ApplicationsFrom == qos.FromPeer {
				want.Applications = carried(want.Applications)
			}
			got, s := a.Operative(), a.DCBX()
			state := Agreed
			switch {
			case spoken(own.Protocol, peer.Protocol) == Auto:
				state = Alone
			case conflict:
				state = Conflict
			}
			if !got.Equal(&want) || s.State != state || state != Alone && s.Protocol != spoken(own.Protocol, peer.Protocol) {
				t.Fatalf("port %d: %+v\nwith %+v\nworks by %+v, %+v\nwant %+v, %v", i, own.Local8021Q, peer.Local8021Q, got, s, want, state)
			}
			if s.Protocol == CEE && state != Alone && !(s.PFC.Synchronized && s.ETS.Synchronized && s.Applications.Synchronized) {
				t.Fatalf("port %d: %+v: not synchronized", i, s)
			}
		}
	})
}

// FuzzAgent_Receive: frames of anybody leave the agent working, with as many neighbours as it has room for, and settings that make
// sense.
func FuzzAgent_Receive(f *testing.F) {
	f.Add(unit(macB, nil), unit(macC, nil))
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a := New(config(macA, true))
		a.Start(0)
		for i, b := range [][]byte{x, y, x} {
			a.Receive(seconds(i), b)
			a.Advance(seconds(i))
			a.Transmit(seconds(i))
		}
		o := a.Operative()
		if len(a.Neighbours()) > mostNeighbours || o.ETS.Check() != nil || qos.CheckApplications(o.Applications) != nil {
			t.Fatalf("%+v", o)
		}
	})
}
