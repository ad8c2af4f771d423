package lacp

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

const (
	activity, timeout, aggregation, synchronization = lacp.Activity, lacp.Timeout, lacp.Aggregation, lacp.Synchronization
	second                                          = clock.Time(time.Second)
)

// peer is a partner's data unit to a port of one(1).
func peer(state lacp.State, change func(*lacp.PDU)) []byte {
	u := lacp.PDU{Actor: lacp.Participant{SystemPriority: 1, System: eth.MAC{2, 0, 0, 0, 0, 9}, Key: 9, Port: 1, State: state},
		Partner: lacp.Participant{SystemPriority: DefaultPriority, System: eth.MAC{2, 0, 0, 0, 0, 1}, Key: 1, PortPriority: DefaultPriority,
			Port: 1, State: activity | aggregation}}
	if change != nil {
		change(&u)
	}
	return u.Frame(eth.MAC{})[eth.EthernetLen:]
}

// at lets a system come to a time, and drops what it sends.
func at(s *System, now clock.Time) {
	for s.Deadline() <= now {
		d := s.Deadline()
		s.Advance(d)
		for _, f := s.Transmit(d); f != nil; _, f = s.Transmit(d) {
			continue
		}
	}
}

// 6.4.12, figure 6-18: each transition of the receive machine, with what it does to the partner and to the state that is told.
func TestReceiveMachine(t *testing.T) {
	in := activity | aggregation | synchronization
	for _, c := range []struct {
		name  string
		until clock.Time // after the link came up at 0, and a data unit at 1 s if heard
		heard bool
		state string
		actor lacp.State // of Defaulted and Expired
		sync  bool       // the partner's
		fast  bool       // the partner's timeout is short
	}{
		{"PORT_DISABLED to EXPIRED when the link comes", 0, false, "expired", lacp.Expired | lacp.Defaulted, false, true},
		{"EXPIRED for the short timeout", 3*second - 1, false, "expired", lacp.Expired | lacp.Defaulted, false, true},
		{"EXPIRED to DEFAULTED after it", 3 * second, false, "defaulted", lacp.Defaulted, true, true},
		{"to CURRENT with a data unit", 1 * second, true, "current", 0, true, false},
		{"CURRENT for the long timeout", 91*second - 1, true, "current", 0, true, false},
		{"CURRENT to EXPIRED after it", 91 * second, true, "expired", lacp.Expired, false, true},
		{"and to DEFAULTED", 94 * second, true, "defaulted", lacp.Defaulted, true, true},
	} {
		s := one(t, 1, 1, nil)
		s.SetUp(0, 0, true, 1e9)
		if c.heard {
			at(s, second)
			if err := s.Receive(second, 0, peer(in, nil)); err != nil {
				t.Fatal(err)
			}
		}
		at(s, c.until)
		x := s.Status(0)
		if x.Receive != c.state || x.Actor.State&(lacp.Expired|lacp.Defaulted) != c.actor ||
			x.Partner.State&synchronization != 0 != c.sync || x.Partner.State&timeout != 0 != c.fast {
			t.Errorf("%s: %s, actor %v, partner %v", c.name, x.Receive, x.Actor.State, x.Partner.State)
		}
		s.SetUp(c.until, 0, false, 1e9)
		if x := s.Status(0); x.Receive != "disabled" || x.Partner.State&synchronization != 0 {
			t.Errorf("%s: when the link goes: %s, partner %v", c.name, x.Receive, x.Partner.State)
		}
	}
}

// 6.4.9, recordPDU: whether the partner is in synchronization, by what it says of itself and of this end.
func TestRecordPDU(t *testing.T) {
	in := activity | aggregation | synchronization
	for _, c := range []struct {
		name    string
		passive bool
		state   lacp.State
		change  func(*lacp.PDU)
		sync    bool
	}{
		{"it knows this end and is in synchronization", false, in, nil, true},
		{"it is not", false, in &^ synchronization, nil, false},
		{"it knows another port", false, in, func(u *lacp.PDU) { u.Partner.Port = 2 }, false},
		{"it knows another port priority", false, in, func(u *lacp.PDU) { u.Partner.PortPriority = 1 }, false},
		{"it knows another system", false, in, func(u *lacp.PDU) { u.Partner.System[5] = 3 }, false},
		{"it knows another system priority", false, in, func(u *lacp.PDU) { u.Partner.SystemPriority = 3 }, false},
		{"it knows another key", false, in, func(u *lacp.PDU) { u.Partner.Key = 3 }, false},
		{"it thinks that this end is individual", false, in, func(u *lacp.PDU) { u.Partner.State &^= aggregation }, false},
		{"it is individual, whatever it knows", false, in &^ aggregation, func(u *lacp.PDU) { u.Partner.Key = 3 }, true},
		{"it is passive, and knows that this end is active", false, in &^ activity, nil, true},
		{"it is passive, and thinks that this end is too", false, in &^ activity, func(u *lacp.PDU) { u.Partner.State &^= activity }, false},
		{"both are passive: nobody will speak", true, in &^ activity, nil, false},
	} {
		s := one(t, 1, 1, func(x *Config) { x.Groups[0].Passive = c.passive })
		s.SetUp(0, 0, true, 1e9)
		if err := s.Receive(0, 0, peer(c.state, c.change)); err != nil {
			t.Fatal(err)
		}
		if got := s.Status(0).Partner.State&synchronization != 0; got != c.sync {
			t.Errorf("%s: in synchronization %v", c.name, got)
		}
	}
}

// 6.4.9, update_NTT: what the partner does not know is told at once, and what it knows is not told again before the period.
func TestUpdateNTT(t *testing.T) {
	in := activity | aggregation | synchronization | lacp.Collecting | lacp.Distributing
	for _, c := range []struct {
		name   string
		change func(*lacp.PDU)
		told   bool
	}{
		{"it knows all", nil, false},
		{"not the port", func(u *lacp.PDU) { u.Partner.Port = 4 }, true},
		{"not the key", func(u *lacp.PDU) { u.Partner.Key = 4 }, true},
		{"not the activity", func(u *lacp.PDU) { u.Partner.State ^= activity }, true},
		{"not the timeout", func(u *lacp.PDU) { u.Partner.State ^= timeout }, true},
		{"not the synchronization", func(u *lacp.PDU) { u.Partner.State ^= synchronization }, true},
		{"not that this end may be aggregated", func(u *lacp.PDU) { u.Partner.State ^= aggregation }, true},
		{"not that it distributes, which is no matter", func(u *lacp.PDU) { u.Partner.State ^= lacp.Distributing }, false},
	} {
		s := one(t, 1, 1, nil)
		s.SetUp(0, 0, true, 1e9)
		knows := func(u *lacp.PDU) { u.Partner.State = s.Status(0).Actor.State }
		for now := clock.Time(0); now < 10*second; now += second {
			at(s, now)
			if err := s.Receive(now, 0, peer(in, knows)); err != nil {
				t.Fatal(err)
			}
		}
		at(s, 12*second)
		err := s.Receive(12*second, 0, peer(in, func(u *lacp.PDU) {
			knows(u)
			if c.change != nil {
				c.change(u)
			}
		}))
		if _, f := s.Transmit(12 * second); err != nil || (f != nil) != c.told {
			t.Errorf("%s: told %v, %v", c.name, f != nil, err)
		}
	}
}

// 6.4.15: each state of the mux machine, what it tells, and what leads to it: the wait of 2 s, the partner's synchronization, and the
// partner's collecting. 6.4.14: ports that wait are attached together, when the last has waited.
func TestMuxMachine(t *testing.T) {
	s := one(t, 1, 2, nil)
	s.SetUp(0, 0, true, 1e9)
	want := func(now clock.Time, mux string, state lacp.State) {
		t.Helper()
		const shown = synchronization | lacp.Collecting | lacp.Distributing
		if x := s.Status(0); x.Mux != mux || x.Actor.State&shown != state {
			t.Errorf("at %v: %s, %v; want %s, %v", time.Duration(now), x.Mux, x.Actor.State, mux, state)
		}
	}
	say := func(now clock.Time, port int, state lacp.State) {
		t.Helper()
		at(s, now)
		err := s.Receive(now, port, peer(activity|aggregation|state, func(u *lacp.PDU) {
			u.Actor.Port, u.Partner.Port = uint16(port+1), uint16(port+1)
		}))
		if err != nil {
			t.Fatal(err)
		}
	}
	say(0, 0, 0)
	want(0, "waiting", 0)
	at(s, second)
	s.SetUp(second, 1, true, 1e9)
	say(second, 1, 0)
	at(s, 3*second-1)
	want(3*second-1, "waiting", 0) // for the second port
	at(s, 3*second)
	want(3*second, "attached", synchronization)
	say(4*second, 0, synchronization)
	want(4*second, "collecting", synchronization|lacp.Collecting)
	say(5*second, 0, synchronization|lacp.Collecting)
	want(5*second, "distributing", synchronization|lacp.Collecting|lacp.Distributing)
	say(6*second, 0, synchronization)
	want(6*second, "collecting", synchronization|lacp.Collecting)
	say(7*second, 0, 0)
	want(7*second, "attached", synchronization)
	say(8*second, 0, synchronization|lacp.Collecting)
	want(8*second, "distributing", synchronization|lacp.Collecting|lacp.Distributing)
	if err := s.Receive(9*second, 0, peer(activity|aggregation, func(u *lacp.PDU) { u.Actor.Key = 77 })); err != nil {
		t.Fatal(err)
	}
	want(9*second, "waiting", 0) // it was detached, and waits for the aggregator, which the other port has
	if x := s.Status(0); x.Selected != "standby" {
		t.Errorf("with another key it is %s", x.Selected)
	}
}

// 6.5.4.2: the responder sends a marker back as it came, as a response, and answers no response; 64 wait at most.
func TestMarkerResponder(t *testing.T) {
	s := one(t, 1, 2, nil)
	s.SetUp(0, 1, true, 1e9)
	m := lacp.Marker{Port: 7, System: eth.MAC{2, 0, 0, 0, 0, 9}, Transaction: 42}
	if err := s.Receive(0, 1, m.Frame(eth.MAC{})[eth.EthernetLen:]); err != nil {
		t.Fatal(err)
	}
	if s.Deadline() > 0 {
		t.Error("nobody is asked to send the response")
	}
	port, f := s.Transmit(0)
	if f == nil {
		t.Fatal("no response")
	}
	got, err := lacp.ParseMarker(f[eth.EthernetLen:])
	m.Response = true
	if err != nil || got != m || port != 1 || eth.MAC(f[6:]) != (eth.MAC{2, 0, 0, 0, 2, 1}) {
		t.Errorf("%+v by port %d from %v, %v", got, port, eth.MAC(f[6:]), err)
	}
	if err := s.Receive(0, 1, m.Frame(eth.MAC{})[eth.EthernetLen:]); err != nil {
		t.Fatal(err)
	}
	m.Response = false
	for range 100 {
		if err := s.Receive(0, 1, m.Frame(eth.MAC{})[eth.EthernetLen:]); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, f := s.Transmit(0); f != nil; _, f = s.Transmit(0) {
		n++
	}
	if n != mostAnswers {
		t.Errorf("%d responses wait", n)
	}
}

// What is wrong is refused with its field; what is no data unit of link aggregation is left alone, and one that is malformed is counted.
func TestRefused(t *testing.T) {
	mac := eth.MAC{2}
	port := []Port{{Number: 1}}
	for field, c := range map[string]Config{
		"System":                    {System: eth.MAC{1}, Groups: []Group{{Key: 1, Ports: port}}},
		"Groups[0].Key":             {System: mac, Groups: []Group{{Ports: port}}},
		"Groups[1].Key":             {System: mac, Groups: []Group{{Key: 1, Ports: port}, {Key: 1, Ports: []Port{{Number: 2}}}}},
		"Groups[0].Choice":          {System: mac, Groups: []Group{{Key: 1, Choice: 3, Ports: port}}},
		"Groups[0].Ports":           {System: mac, Groups: []Group{{Key: 1}}},
		"Groups[0].Ports[0].Number": {System: mac, Groups: []Group{{Key: 1, Ports: []Port{{}}}}},
		"Groups[1].Ports[0].Number": {System: mac, Groups: []Group{{Key: 1, Ports: port}, {Key: 2, Ports: port}}},
	} {
		var e *Error
		if _, err := New(c); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	s := one(t, 1, 1, nil)
	s.SetUp(0, 0, true, 1e9)
	if err := s.Receive(0, 0, []byte{3, 1, 0}); err != nil { // OAM
		t.Error(err)
	}
	var e *lacp.Error
	if err := s.Receive(0, 0, []byte{1, 1, 0}); !errors.As(err, &e) || s.Status(0).Errors != 1 {
		t.Errorf("%v, %+v", err, s.Status(0))
	}
	for i, name := range choiceNames {
		if c, ok := ParseChoice(name); !ok || c != Choice(i) || c.String() != name {
			t.Errorf("choice %q is %v", name, c)
		}
	}
	if _, ok := ParseChoice("best"); ok {
		t.Error("a choice that there is not is read")
	}
}

// Whatever arrives and whatever links do: no port distributes that does not collect, none does either without being told so to the
// partner, those that collect have one partner, and the deadlines lead on.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := one(t, 1, 3, func(c *Config) {
			c.Groups[0].Passive = rapid.Bool().Draw(rt, "passive")
			c.Groups[0].Fast = rapid.Bool().Draw(rt, "fast")
			c.Groups[0].Choice = Choice(rapid.IntRange(0, 2).Draw(rt, "choice"))
		})
		now := clock.Time(0)
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			i := rapid.IntRange(0, 2).Draw(rt, "port")
			switch rapid.IntRange(0, 3).Draw(rt, "event") {
			case 0:
				s.SetUp(now, i, rapid.Bool().Draw(rt, "up"), uint64(rapid.IntRange(1, 3).Draw(rt, "rate")))
			case 1:
				now = now.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(rt, "ms")) * time.Millisecond)
				for n := 0; s.Deadline() <= now; n++ {
					if n > 10_000 {
						rt.Fatalf("the deadline %v does not move on", s.Deadline())
					}
					d := s.Deadline()
					s.Advance(d)
					for _, f := s.Transmit(d); f != nil; _, f = s.Transmit(d) {
						n++
					}
				}
			default:
				b := peer(lacp.State(rapid.Byte().Draw(rt, "state")), func(u *lacp.PDU) {
					u.Actor.Key, u.Actor.Port = uint16(rapid.IntRange(1, 2).Draw(rt, "key")), uint16(i+1)
					u.Partner = s.Status(i).Actor
					if rapid.Bool().Draw(rt, "knows another") {
						u.Partner.Port++
					}
				})
				if err := s.Receive(now, i, b); err != nil {
					rt.Fatal(err)
				}
			}
			key := -1
			for i := range 3 {
				x := s.Status(i)
				collects, distributes := s.Carries(i)
				says := [2]bool{x.Actor.State&lacp.Collecting != 0, x.Actor.State&lacp.Distributing != 0}
				if distributes && !collects || says != [2]bool{collects, distributes} || collects && !x.Up {
					rt.Fatalf("port %d collects %v, distributes %v: %+v", i, collects, distributes, x)
				}
				if collects && x.Partner.State&aggregation != 0 {
					if key >= 0 && key != int(x.Partner.Key) {
						rt.Fatalf("ports with the keys %d and %d collect", key, x.Partner.Key)
					}
					key = int(x.Partner.Key)
				}
			}
		}
	})
}
