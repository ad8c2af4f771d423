package team

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/lan"
	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/internal/team/carrier"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// pace is how often each flow sends a frame each way, and seenGap is how long none may arrive of a flow when a link is lost whose loss
	// is seen.
	pace    = 10 * time.Millisecond
	seenGap = 50 * time.Millisecond
	flows   = 8
)

// site is a team of two members at a switch of ours, which has their links as a bundle where the type wants that, and a peer there, in
// virtual time. With SFT each member is at a switch of its own, x and y, which are at that one.
type site struct {
	*testing.T
	*lan.Network
	team    *Team
	now     clock.Time
	members [2]*lan.Jack
	peer    *lan.Jack
	knows   eth.MAC         // where the peer finds the station
	cut     [2]bool         // lines that lose all frames while they are up
	left    [2]bool         // members that there are no more
	last    [2][flows]int64 // when a frame of a flow has arrived last: at the peer, and at the team
	longest time.Duration   // between two of a flow
}

func newSite(t *testing.T, kind Type) *site {
	const rate = 1e9
	port := ethernet.PortConfig{Rate: rate, Trust: ethernet.TrustDSCP, PVID: 1}
	cfg := lan.Config{Timing: true}
	for i, name := range []string{"a", "b", "peer"} {
		wire := ethernet.PortConfig{Rate: rate, Trust: ethernet.TrustDSCP}
		cfg.Nodes = append(cfg.Nodes, lan.Node{Name: name, Station: &ethernet.StationConfig{Wire: wire, Waiting: 1 << 20}})
		to := lan.Link{A: ethernet.End{Node: i}, B: ethernet.End{Node: 3, Port: i}}
		if kind == SFT && i < 2 {
			cfg.Links = append(cfg.Links, lan.Link{A: to.A, B: ethernet.End{Node: 4 + i}})
			to.A = ethernet.End{Node: 4 + i, Port: 1}
		}
		cfg.Links = append(cfg.Links, to)
	}
	s := lan.Node{Name: "s", Ports: []ethernet.PortConfig{port, port, port}}
	if kind.aggregates() {
		s.Bundles = [][]int{{0, 1}}
	}
	if kind == LACP {
		s.LACP = []lan.LACP{{On: true, Fast: true}}
	}
	cfg.Nodes = append(cfg.Nodes, s)
	if kind == SFT {
		cfg.Nodes = append(cfg.Nodes, lan.Node{Name: "x", Ports: []ethernet.PortConfig{port, port}},
			lan.Node{Name: "y", Ports: []ethernet.PortConfig{port, port}})
	}
	n, err := lan.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	x := &site{T: t, Network: n, knows: stationMAC}
	x.team = teamOf(t, kind, 2, func(c *Config) { c.Members[0].Primary, c.Fast = true, kind == LACP })
	for i, name := range []string{"a", "b", "peer"} {
		j, err := n.Plug(0, name, "a test")
		if err != nil {
			t.Fatal(err)
		}
		if i < len(x.members) {
			x.members[i] = j
		} else {
			x.peer = j
		}
	}
	return x
}

// leave has a frame of the team's leave by a member.
func (x *site) leave(i int, f []byte) {
	if f != nil && i >= 0 && !x.cut[i] {
		x.members[i].Transmit(x.now, f)
	}
}

// arrived notes a frame of a flow at one end.
func (x *site) arrived(end int, f []byte) {
	if kindOf(f) != eth.TypeIPv4 {
		return
	}
	p, now := binary.BigEndian.Uint16(f[eth.EthernetLen+eth.IPv4Len:]), int64(x.now)
	if x.last[end][p] != 0 {
		x.longest = max(x.longest, time.Duration(now-x.last[end][p]))
	}
	x.last[end][p] = now
}

// hears is what the team does with a frame at a member: a question for the station it answers.
func (x *site) hears(i int, f []byte) {
	if x.cut[i] || !x.team.Receive(x.now, i, f) {
		return
	}
	if kindOf(f) == eth.TypeARP && eth.MAC(f) == eth.Broadcast {
		answer := arp(eth.ARPReply, strangeMAC, stationMAC, stationV4, peerV4)
		x.leave(x.team.Send(x.now, answer, len(answer)), answer)
		return
	}
	x.arrived(1, f)
}

// run lets all send and receive for a while.
func (x *site) run(d time.Duration) {
	x.Helper()
	for end := x.now.Add(d); x.now < end; {
		for i, j := range x.members {
			if !x.left[i] {
				x.team.SetLink(x.now, i, j.State().Up, gigabit)
			}
		}
		x.team.Advance(x.now)
		for i, f := x.team.Frame(x.now); f != nil; i, f = x.team.Frame(x.now) {
			x.leave(i, f)
		}
		for p := range uint16(flows) {
			f := sentFrom(p)
			x.leave(x.team.Send(x.now, f, len(f)), f)
			to := datagram(strangeMAC, x.knows, netip.AddrPortFrom(peerV4, p), netip.AddrPortFrom(stationV4, 4791))
			x.peer.Transmit(x.now, to)
		}
		next := x.now.Add(pace)
		for at := x.Network.Deadline(); at <= next; at = x.Network.Deadline() {
			x.now = max(x.now, at)
			x.Advance(x.now)
		}
		x.now = next
		x.Advance(next)
		for i, j := range x.members {
			for j.Waiting() > 0 {
				x.hears(i, j.Next(x.now))
			}
		}
		for x.peer.Waiting() > 0 {
			var n notice
			f := x.peer.Next(x.now)
			if kindOf(f) == eth.TypeARP && n.parse(f) && n.addr == stationV4 {
				x.knows = n.mac
			}
			x.arrived(0, f)
		}
	}
}

// do gives the network a command.
func (x *site) do(words ...string) {
	x.Helper()
	if _, mine, err := x.Command(x.now, words); !mine || err != nil {
		x.Fatal(words, err)
	}
}

// gap runs for a while, and wants no longer gap of any flow than this.
func (x *site) gap(when string, d, most time.Duration) {
	x.Helper()
	x.longest = 0
	x.run(d)
	if x.Logf("%s: %v", when, x.longest); x.longest > most {
		x.Errorf("%s: nothing of a flow arrived for %v, want %v at most", when, x.longest, most)
	}
	for end := range x.last {
		for p, at := range x.last[end] {
			if clock.Time(at) < x.now-clock.Time(2*pace) {
				x.Fatalf("%s: flow %d does not arrive at end %d any more", when, p, end)
			}
		}
	}
}

// TestGap: whatever the type, at a switch of ours, which aggregates their links where it is to, no flow stands still for 50 ms in either
// direction when a member's link is lost and comes back, is disabled or leaves; and with LACP for three periods at most when a line
// loses everything without the loss of a link. With SFT a switch may be lost. A switch with a bundle that is static knows links alone.
func TestGap(t *testing.T) {
	for kind := AFT; kind <= SLA; kind++ {
		t.Run(kind.String(), func(t *testing.T) {
			x, settles := newSite(t, kind), 2*carrier.Proves
			if kind == LACP {
				settles = lacp.ShortTimeout + lacp.AggregateWait + mostMoving
			}
			x.peer.Transmit(x.now, arp(eth.ARPRequest, eth.Broadcast, strangeMAC, peerV4, stationV4))
			x.run(settles)
			x.gap("before", time.Second, seenGap)
			for _, line := range []string{"a", "b"} {
				x.do("unlink", line)
				x.gap(line+" lost", settles, seenGap)
				x.do("relink", line)
				x.gap(line+" back", settles, seenGap)
			}
			switch kind {
			case SLA:
				return
			case SFT: // a switch without power has no links
				x.do("unlink", "a")
				x.do("unlink", "x[2]")
				x.gap("switch x lost", settles, seenGap)
				x.do("relink", "x[2]")
				x.do("relink", "a")
				x.gap("switch x back", settles, seenGap)
			}
			x.team.SetDisabled(x.now, 0, true)
			x.gap("a disabled", settles, seenGap)
			x.team.SetDisabled(x.now, 0, false)
			x.gap("a enabled", settles, seenGap)
			if kind == LACP {
				x.cut[0] = true
				x.gap("a cut", settles, lacp.ShortTimeout+pace)
				x.cut[0] = false
				x.gap("a whole", settles, seenGap)
			}
			x.leave(0, x.team.Farewell(0))
			x.team.Leave(x.now, 0)
			x.left[0], x.cut[0] = true, true
			x.gap("without a", settles, seenGap)
		})
	}
}
