package aggregation

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

func mac(n byte) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, n} }

const (
	double, single, middle = 0, 1, 2 // nodes: the host with two links, that with one, the switch
	rate                   = 10e9
)

// pair is a switch with a host of two links, at its ports 0 and 1, and one of one link, in virtual time.
type pair struct {
	*testing.T
	fabric  ethernet.Fabric
	bonds   *Bonds
	now     clock.Time
	got     [2]int // frames that have come to each host
	changes int
}

// newPair lets the switch, and the host with two links, speak LACP as they are told; keys are those of its links, if it does.
func newPair(t *testing.T, sw, host LACP, keys ...uint16) *pair {
	t.Helper()
	x := &pair{T: t}
	port := ethernet.PortConfig{Rate: rate, Delay: time.Microsecond}
	for _, links := range []int{2, 1} {
		s, err := ethernet.NewStation(&x.fabric.Store, ethernet.StationConfig{Wire: port, Links: links})
		if err != nil {
			t.Fatal(err)
		}
		x.fabric.AddStation(s)
	}
	s, err := ethernet.New(&x.fabric.Store, ethernet.Config{MAC: mac(9)}, []ethernet.PortConfig{port, port, port}, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	x.fabric.AddSwitch(s)
	for p, at := range []ethernet.End{{Node: double}, {Node: double, Port: 1}, {Node: single}} {
		if err := x.fabric.Connect(ethernet.End{Node: middle, Port: p}, at); err != nil {
			t.Fatal(err)
		}
	}
	x.fabric.Deliver = func(_ clock.Time, at ethernet.End, f ethernet.Ref) {
		if eth.EtherType(binary.BigEndian.Uint16(x.fabric.Store.Head(f)[12:])) == lacp.EtherType {
			t.Errorf("a data unit of LACP comes to host %d", at.Node)
		}
		x.got[at.Node]++
		x.fabric.Store.Drop(f)
	}
	x.bonds = New(&x.fabric)
	x.bonds.Changed = func(clock.Time, ethernet.End) { x.changes++ }
	x.add(middle, 9, Group{LACP: sw, Key: 7, Ports: []int{0, 1}})
	var groups []Group
	for p, key := range keys {
		if p > 0 && key == keys[0] {
			groups[0].Ports = append(groups[0].Ports, p)
		} else {
			groups = append(groups, Group{LACP: host, Key: key, Ports: []int{p}})
		}
	}
	x.add(double, 1, groups...)
	x.bonds.Begin(0)
	return x
}

func (x *pair) add(node int, address byte, groups ...Group) {
	x.Helper()
	if len(groups) == 0 || !groups[0].On {
		return
	}
	if _, err := x.bonds.Add(node, mac(address), groups); err != nil {
		x.Fatal(err)
	}
}

// run lets time pass.
func (x *pair) run(d time.Duration) {
	until := x.now.Add(d)
	for at := x.next(); at <= until; at = x.next() {
		x.now = max(x.now, at)
		x.bonds.Advance(x.now)
		x.fabric.Advance(x.now)
	}
	x.now = until
}

func (x *pair) next() clock.Time { return clock.Min(x.bonds.Deadline(), x.fabric.Deadline()) }

// cut takes the cable of a link of the host out, or puts it back in.
func (x *pair) cut(link int, out bool) {
	at := ethernet.End{Node: double, Port: link}
	x.fabric.SetUp(x.now, at, !out)
	x.bonds.Follow(x.now, at)
	x.bonds.Follow(x.now, x.fabric.Peer(at))
}

// flows sends a packet of each of 64 flows between the two hosts, and returns how many leave by each link of the bundle, and how many of
// them come.
func (x *pair) flows(from int) (first, second, come int) {
	x.Helper()
	sender, to := ethernet.End{Node: middle}, double
	if from == double {
		sender, to = ethernet.End{Node: double}, single
	}
	count := func(link int) int {
		sender.Port = link
		n := 0
		for _, c := range x.fabric.Port(sender).Counters(x.now).Priority {
			n += int(c.OutFrames)
		}
		return n
	}
	first, second, come = -count(0), -count(1), -x.got[to]
	for i := range 64 {
		b := make([]byte, 64)
		(&eth.Ethernet{Dst: mac(byte(1 + to)), Src: mac(byte(1 + from)), Type: eth.TypeIPv4}).Put(b)
		eth.IPv4(b[eth.EthernetLen:]).Encode(0, 50, 0, 64, eth.ProtocolUDP, [4]byte{10, 0, 0, byte(from)}, [4]byte{10, 0, 0, byte(to)})
		eth.UDP(b[eth.EthernetLen+eth.IPv4Len:]).Encode(uint16(50_000+i), 4791, 30)
		for r := x.fabric.Store.Put(b, 0); !x.fabric.Send(x.now, from, r); {
			x.run(time.Microsecond)
		}
	}
	x.run(time.Millisecond)
	return first + count(0), second + count(1), come + x.got[to]
}

// wants compares what flows did in a direction: by how many links they left, and whether they came.
func (x *pair) wants(when string, from, links int, comes bool) {
	x.Helper()
	first, second, come := x.flows(from)
	used := min(first, 1) + min(second, 1)
	if used != links || comes != (come == 64) || comes && first+second != 64 && from == double {
		x.Errorf("%s, from host %d: %d and %d frames leave by the links, %d of 64 come; want %d links, all come: %v", when, from, first, second,
			come, links, comes)
	}
}

// Links of a host and a switch that both speak LACP carry frames in both directions when they have agreed, not before. Flows of one that is
// cut move to the other at once, and return some time after it is back. One of the two may be passive.
func TestBothEndsAggregate(t *testing.T) {
	for _, c := range []struct{ sw, host LACP }{
		{LACP{On: true}, LACP{On: true}},
		{LACP{On: true, Passive: true}, LACP{On: true, Fast: true}},
		{LACP{On: true, Fast: true}, LACP{On: true, Passive: true}},
	} {
		x := newPair(t, c.sw, c.host, 1, 1)
		x.wants("at first", single, 0, false)
		x.wants("at first", double, 0, false)
		x.run(10 * time.Second)
		if x.changes == 0 {
			t.Error("nobody is told of links that carry frames")
		}
		x.wants("agreed", single, 2, true)
		x.wants("agreed", double, 2, true)
		x.cut(1, true)
		x.wants("cut", single, 1, true)
		x.wants("cut", double, 1, true)
		x.cut(1, false)
		x.wants("at once when it is back", single, 1, true)
		x.run(10 * time.Second)
		x.wants("back", single, 2, true)
		x.wants("back", double, 2, true)
	}
}

// A link whose other end has another key stands by at both ends. Where nobody speaks first, one link is used at both by itself. A host
// that knows no LACP sends over all links, and what comes by those that stand by is refused.
func TestLinksThatStandBy(t *testing.T) {
	on, passive := LACP{On: true}, LACP{On: true, Passive: true}
	for name, c := range map[string]struct {
		sw, host LACP
		keys     []uint16
		sends    int  // links over which the host does
		comes    bool // all that it sends
	}{
		"another key":     {on, on, []uint16{1, 2}, 1, true},
		"nobody speaks":   {passive, passive, []uint16{1, 1}, 1, true},
		"no LACP":         {on, LACP{}, nil, 2, false},
		"no LACP, either": {LACP{}, LACP{}, nil, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newPair(t, c.sw, c.host, c.keys...)
			if c.host == (LACP{}) {
				x.fabric.Switch(double).Slow = func(clock.Time, int, []byte) bool { return true }
			}
			x.run(20 * time.Second)
			links := 1
			if !c.sw.On {
				links = 2
			}
			x.wants("settled", single, links, true)
			x.wants("settled", double, c.sends, c.comes)
		})
	}
}

// A link that loses all frames leaves the bundle when the partner has been silent for long enough, although it is up, and comes back.
func TestLinkOfASilentPartnerLeaves(t *testing.T) {
	fast := LACP{On: true, Fast: true}
	x := newPair(t, fast, fast, 1, 1)
	x.fabric.Random = func() uint64 { return 0 }
	x.run(10 * time.Second)
	lose := func(share float64) {
		x.fabric.SetLoss(ethernet.End{Node: double, Port: 1}, share)
		x.fabric.SetLoss(ethernet.End{Node: middle, Port: 1}, share)
	}
	lose(1)
	x.run(time.Second)
	x.wants("lossy for a second", double, 2, false)
	x.run(10 * time.Second)
	x.wants("lossy for long", double, 1, true)
	x.wants("lossy for long", single, 1, true)
	lose(0)
	x.run(10 * time.Second)
	x.wants("whole again", double, 2, true)
}

// Systems that have talked before the fabric's time begins go on where they are: links that have agreed stay, and their timers run from
// then.
func TestSystemsThatHaveTalked(t *testing.T) {
	x := newPair(t, LACP{}, LACP{})
	x.bonds = New(&x.fabric)
	x.bonds.Before = 10 * time.Second
	x.add(middle, 9, Group{LACP: LACP{On: true}, Key: 7, Ports: []int{0, 1}})
	x.add(double, 1, Group{LACP: LACP{On: true, Fast: true}, Key: 1, Ports: []int{0, 1}})
	sw, host := x.bonds.All()[0], x.bonds.All()[1]
	Converse([]Line{{Side{sw, 0}, Side{host, 0}, rate}, {Side{sw, 1}, Side{host, 1}, rate}, {Side{sw, 2}, Side{nil, 0}, rate}},
		x.bonds.Before)
	x.bonds.Begin(0)
	x.wants("at first", single, 2, true)
	x.wants("at first", double, 2, true)
	x.run(100 * time.Second)
	x.wants("later", double, 2, true)
	for _, b := range x.bonds.All() {
		if s := b.Status(0); s.Timeouts > 0 || s.Heard < 6 { // three of them every 30 s
			t.Errorf("node %d has heard %d, with %d timeouts", b.Node, s.Heard, s.Timeouts)
		}
	}
}
