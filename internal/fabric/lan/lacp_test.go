package lan

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/wire/eth"
	wire "github.com/softvpi/softvpi/wire/lacp"
)

// aggregating is a host with two links, a0 and a1, which has an engine of LACP itself, and a host b: at the same switch or, with far, at
// another.
type aggregating struct {
	*bench
	jacks [2]*Jack
	other *Jack
	host  *lacp.System
	// silent is the link of which the host says nothing; -1: none.
	silent int
	// got are data frames that have come by each link, and at b.
	got  [2]int
	back int
}

func aggregate(t *testing.T, far bool, l LACP, change func(*lacp.Config)) *aggregating {
	t.Helper()
	b := bundled(t, far)
	b.cfg.Nodes[3].LACP = []LACP{l}
	n, err := New(0, b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	x := &aggregating{bench: &bench{t, n, 0}, silent: -1}
	ports := []lacp.Port{{Number: 1, MAC: mac(1)}, {Number: 2, MAC: mac(3)}}
	c := lacp.Config{System: mac(1), Groups: []lacp.Group{{Key: 15, Fast: true, Ports: ports}}}
	if change != nil {
		change(&c)
	}
	if x.host, err = lacp.New(c); err != nil {
		t.Fatal(err)
	}
	x.jacks = [2]*Jack{x.plug("a0"), x.plug("a1")}
	x.other = x.plug("b")
	return x
}

// run lets time pass for the network and the host.
func (x *aggregating) run(d time.Duration) {
	x.Helper()
	for until := x.now.Add(d); x.now < until; {
		for i, j := range x.jacks {
			x.host.SetUp(x.now, i, j.State().Up, 1e9)
		}
		x.host.Advance(x.now)
		for i, f := x.host.Transmit(x.now); f != nil; i, f = x.host.Transmit(x.now) {
			if i != x.silent {
				x.jacks[i].Transmit(x.now, f)
			}
		}
		x.to(clock.Min(x.now.Add(5*time.Millisecond), until))
		x.take()
	}
}

// take takes what has come.
func (x *aggregating) take() {
	x.Helper()
	for i, j := range x.jacks {
		for j.Waiting() > 0 {
			f := j.Next(x.now)
			if eth.EtherType(binary.BigEndian.Uint16(f[12:])) != wire.EtherType {
				x.got[i]++
				continue
			}
			if eth.MAC(f) != wire.SlowProtocols {
				x.Errorf("a data unit to %v", eth.MAC(f))
			}
			if i != x.silent {
				if err := x.host.Receive(x.now, i, f[eth.EthernetLen:]); err != nil {
					x.Error(err)
				}
			}
		}
	}
	for x.other.Waiting() > 0 {
		if f := x.other.Next(x.now); eth.EtherType(binary.BigEndian.Uint16(f[12:])) == wire.EtherType {
			x.Error("a data unit of LACP is forwarded")
		}
		x.back++
	}
}

// flows sends a packet of each of 64 flows to the host, and returns how many come by each link.
func (x *aggregating) flows() (first, second int) {
	x.Helper()
	x.got = [2]int{}
	for i := range 64 {
		x.other.Transmit(x.now, flow(2, 1, 50_000+i))
	}
	x.run(50 * time.Millisecond)
	return x.got[0], x.got[1]
}

// The links of a host that speaks LACP are used when both ends have agreed, not before: flows take all of them, those of a link that is
// lost move to the other at once, and both are used again some time after it is back. So it is whoever is passive, and at any switch.
func TestLinksAggregateByLACP(t *testing.T) {
	for name, c := range map[string]struct {
		far  bool
		lacp LACP
	}{
		"active": {false, LACP{On: true}}, "passive": {false, LACP{On: true, Passive: true}}, "fast, over another switch": {true, LACP{On: true, Fast: true}},
	} {
		t.Run(name, func(t *testing.T) {
			x := aggregate(t, c.far, c.lacp, nil)
			if first, second := x.flows(); first+second != 0 {
				t.Errorf("%d frames before anything is agreed", first+second)
			}
			x.jacks[0].Transmit(x.now, packet(1, 99, 0, 64))
			x.run(10 * time.Millisecond)
			if x.back != 0 {
				t.Error("a frame of the host is taken before anything is agreed")
			}
			x.run(10 * time.Second)
			for i := range 2 {
				if collects, distributes := x.host.Carries(i); !collects || !distributes {
					t.Fatalf("after 10 s link %d of the host: %v", i, x.host.Status(i))
				}
			}
			x.jacks[1].Transmit(x.now, packet(1, 99, 0, 64))
			x.run(10 * time.Millisecond)
			if x.back != 1 {
				t.Errorf("%d frames of the host are taken", x.back)
			}
			if first, second := x.flows(); first+second != 64 || first < 12 || second < 12 {
				t.Errorf("of 64 flows %d and %d", first, second)
			}
			x.do("unlink a1")
			if first, second := x.flows(); first != 64 || second != 0 {
				t.Errorf("with the second link out %d and %d", first, second)
			}
			x.do("relink a1")
			if first, second := x.flows(); first != 64 || second != 0 {
				t.Errorf("at once when it is back %d and %d", first, second)
			}
			x.run(10 * time.Second)
			if first, second := x.flows(); first+second != 64 || second < 12 {
				t.Errorf("some time later %d and %d", first, second)
			}
			for _, want := range []string{"s[1] to a0: distributing, current, with 02:00:00:00:00:01 key 15 port 1", "s[2] to a1: distributing", "key 1 port 2"} {
				if text := x.do("lacp s"); !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if text := x.do("port s[1]"); !strings.Contains(text, "LACP                   distributing, current") {
				t.Errorf("the state is not in\n%s", text)
			}
		})
	}
}

// A link of which nothing is heard, and one with another key, are not used beside one whose partner speaks; where no partner speaks one
// link is used by itself.
func TestLinksThatDoNotAgree(t *testing.T) {
	x := aggregate(t, false, LACP{On: true}, nil)
	x.silent = 1
	x.run(10 * time.Second)
	x.jacks[0].Transmit(x.now, packet(1, 99, 0, 64))
	x.run(10 * time.Millisecond)
	if first, second := x.flows(); first != 64 || second != 0 {
		t.Errorf("with a silent link %d and %d", first, second)
	}
	if text := x.do("lacp all"); !strings.Contains(text, "s[2] to a1: standby, waiting, defaulted, with a partner that is silent") {
		t.Errorf("the silent link is not in\n%s", text)
	}

	x = aggregate(t, false, LACP{On: true}, func(c *lacp.Config) {
		p := c.Groups[0].Ports
		c.Groups = []lacp.Group{{Key: 15, Ports: p[:1]}, {Key: 16, Ports: p[1:]}}
	})
	x.run(10 * time.Second)
	x.jacks[0].Transmit(x.now, packet(1, 99, 0, 64))
	x.run(10 * time.Millisecond)
	if first, second := x.flows(); first != 64 || second != 0 {
		t.Errorf("with another key %d and %d", first, second)
	}
	x.back = 0
	x.jacks[1].Transmit(x.now, packet(1, 99, 0, 64))
	x.run(10 * time.Millisecond)
	if x.back != 0 {
		t.Error("a frame is taken from the link with another key")
	}
	if s := x.State(x.now, ethernet.End{Node: 3, Port: 1}); s.Refused == 0 {
		t.Error("it is not counted as refused")
	}

	x = aggregate(t, false, LACP{On: true, Passive: true}, func(c *lacp.Config) { c.Groups[0].Passive = true })
	x.run(10 * time.Second)
	x.jacks[0].Transmit(x.now, packet(1, 99, 0, 64))
	x.run(10 * time.Millisecond)
	if first, second := x.flows(); first != 64 || second != 0 {
		t.Errorf("where nobody speaks %d and %d", first, second)
	}
}

// A marker comes back as a response, by the link that it came by.
func TestMarkersAreAnswered(t *testing.T) {
	x := aggregate(t, false, LACP{On: true}, nil)
	x.run(10 * time.Second)
	m := wire.Marker{Port: 2, System: mac(1), Transaction: 77}
	x.jacks[1].Transmit(x.now, m.Frame(mac(3)))
	x.to(x.now.Add(time.Millisecond))
	for x.jacks[1].Waiting() > 0 {
		f := x.jacks[1].Next(x.now)
		if got, err := wire.ParseMarker(f[eth.EthernetLen:]); err == nil && got.Response && got.Transaction == 77 {
			return
		}
	}
	t.Error("no response")
}

// The command names who is wrong.
func TestLACPCommandRefuses(t *testing.T) {
	x := aggregate(t, true, LACP{On: true}, nil)
	for args, want := range map[string]string{"a0": `node "a0"`, "t": `switch "t" does not speak LACP`, "nobody": `node "nobody"`} {
		if _, _, err := x.Command(x.now, []string{"lacp", args}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lacp %s: %v", args, err)
		}
	}
}
