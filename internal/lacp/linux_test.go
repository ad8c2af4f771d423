package lacp

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// recorded is a data unit of a recording.
type recorded struct {
	at   clock.Time
	port int // of Linux
	unit lacp.PDU
	own  bool // Linux has sent it
}

// bonding returns what Linux's bonding driver (fast, active, two links) and a partner that answers it said to each other. After 24 s the
// partner says nothing more on the second link.
func bonding(t *testing.T) (all []recorded) {
	f, err := os.Open("../../wire/lacp/testdata/bonding.pcap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var first time.Time
	for {
		b, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = info.Timestamp
		}
		u, err := lacp.Parse(b[eth.EthernetLen:])
		if err != nil {
			t.Fatal(err)
		}
		x := recorded{at: clock.Time(info.Timestamp.Sub(first)), unit: u}
		x.own, x.port = u.Actor.Key == 15, int(u.Actor.Port)-1 // both ends number the links alike
		all = append(all, x)
	}
}

// states returns the states that a port says it is in, each once in a row.
func states(all []lacp.State, s lacp.State) []lacp.State {
	if n := len(all); n > 0 && all[n-1] == s {
		return all
	}
	return append(all, s)
}

// With the partner of a recording the engine says what Linux's bonding driver said to it: the same states in the same order, through the
// start without a partner, the aggregation of both links, and the loss of one partner; and each of them at about the same time. Linux
// begins to collect and distribute together (coupled control), the engine step by step: that state between is left out.
func TestEngineSaysWhatLinuxSays(t *testing.T) {
	frames := bonding(t)
	s, err := New(Config{System: eth.MAC{2, 0, 0, 0, 0x99, 1}, Priority: 0xffff, Groups: []Group{{Key: 15, Fast: true, Ports: []Port{
		{Number: 1, Priority: 0xff}, {Number: 2, Priority: 0xff}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var last [2]clock.Time              // Linux's last word on each link: on the second there is none after the partner was found silent
	const late = 500 * time.Millisecond // it counts tenths of a second, so that its timers end late
	for _, x := range frames {
		if x.own {
			last[x.port] = x.at
		}
	}
	var linux, engine [2][]lacp.State
	var since [2]map[lacp.State][2]clock.Time // when Linux and the engine said so first
	since[0], since[1] = map[lacp.State][2]clock.Time{}, map[lacp.State][2]clock.Time{}
	transmit := func(now clock.Time) {
		for i, f := s.Transmit(now); f != nil; i, f = s.Transmit(now) {
			u, err := lacp.Parse(f[eth.EthernetLen:])
			if err != nil {
				t.Fatal(err)
			}
			const coupled = lacp.Collecting | lacp.Distributing
			if c := u.Actor.State & coupled; c != 0 && c != coupled || now > last[i].Add(-late) {
				continue
			}
			if engine[i] = states(engine[i], u.Actor.State); since[i][u.Actor.State][1] == 0 {
				since[i][u.Actor.State] = [2]clock.Time{since[i][u.Actor.State][0], now}
			}
		}
	}
	started := false
	for _, x := range frames {
		if x.own && !started { // the links of Linux came up a second before it spoke
			started = true
			for i := range 2 {
				s.SetUp(x.at.Add(-FastPeriod), i, true, 10e9)
			}
		}
		for started && s.Deadline() <= x.at {
			now := s.Deadline()
			s.Advance(now)
			transmit(now)
		}
		switch {
		case x.own:
			if linux[x.port] = states(linux[x.port], x.unit.Actor.State); since[x.port][x.unit.Actor.State][0] == 0 {
				since[x.port][x.unit.Actor.State] = [2]clock.Time{x.at, since[x.port][x.unit.Actor.State][1]}
			}
		case started:
			if err := s.Receive(x.at, x.port, x.unit.Frame(eth.MAC{})[eth.EthernetLen:]); err != nil {
				t.Fatal(err)
			}
			transmit(x.at)
		}
	}
	for i := range 2 {
		if len(linux[i]) < 3 {
			t.Fatalf("port %d: Linux has said only %v", i, linux[i])
		}
		if !slices.Equal(engine[i], linux[i]) {
			t.Errorf("port %d: the engine says\n%v, Linux\n%v", i, engine[i], linux[i])
		}
		for state, at := range since[i] {
			if d := at[1].Sub(at[0]).Abs(); d > 1500*time.Millisecond {
				t.Errorf("port %d: %v at %v, by Linux at %v", i, state, time.Duration(at[1]), time.Duration(at[0]))
			}
		}
	}
	if collects, distributes := s.Carries(0); !collects || !distributes {
		t.Errorf("the link whose partner speaks: %v", s.Status(0))
	}
	if collects, _ := s.Carries(1); collects {
		t.Errorf("the link whose partner is silent: %v", s.Status(1))
	}
}
