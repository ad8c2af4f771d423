package lan

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/state"
	"github.com/softvpi/softvpi/internal/pause"
)

// set returns the priorities of a set.
func set(s uint8) (all []int) {
	for ; s != 0; s &= s - 1 {
		all = append(all, bits.TrailingZeros8(s))
	}
	return all
}

// endName names a port as commands do.
func (n *Network) endName(e ethernet.End) string {
	if e.Node < 0 {
		return ""
	}
	if n.Host(e.Node) {
		return n.Name(e.Node)
	}
	return fmt.Sprintf("%s[%d]", n.Name(e.Node), e.Port+1)
}

// ports returns how many ports of a node others see: a host has one.
func (n *Network) ports(node int) int {
	if n.Host(node) {
		return 1
	}
	return n.fabric.Switch(node).Ports()
}

// State returns what a port is like.
func (n *Network) State(now clock.Time, at ethernet.End) state.Port {
	p := n.fabric.Port(at)
	cfg, c := p.Config(), p.Counters(now)
	s := state.Port{Node: n.Name(at.Node), Port: at.Port + 1, Peer: n.endName(n.fabric.Peer(at)), Host: n.Host(at.Node), Up: p.Up(),
		Lossless: set(cfg.Lossless), FlowControl: flowText(p.Pauses()),
		Loss: n.fabric.Loss(at), Storming: set(p.Storming()), Flooded: c.Flooded, Lost: c.Dropped.Lost,
		Ignored: c.Ignored, TooLong: c.Dropped.TooLong, PausesSent: c.Global.Sent,
		PausesReceived: c.Global.Received, PausedTime: c.Global.ReceivedTime,
		PausingTime: c.Global.SentTime}
	if n.timing {
		s.Rate = cfg.Rate
	}
	if cfg.Limit < cfg.MTU {
		s.MTU = cfg.Limit
	}
	if j := n.jacks[at.Node]; j != nil {
		s.Program, s.Refused = j.Program, j.Refused
	}
	if s.Host {
		s.Take = n.fabric.Station(at.Node).Take()
	} else {
		s.PVID = cfg.PVID
		if cfg.Tagged != (bridge.VLANs{}) {
			s.Trunk = cfg.Tagged.String()
		}
	}
	if !s.Host {
		s.Settings = priorityTexts(p)
	}
	s.Neighbour, s.DCBX = n.neighbourText(at)
	s.LACP = n.aggregationText(at)
	paused, pausing := p.Paused(now)
	s.Paused, s.Pausing = set(paused), set(pausing)
	s.Refused += c.Dropped.Sum() - c.Dropped.TooLong
	for i := range c.Priority {
		add(&s, &c.Priority[i], i, p)
	}
	return s
}

// add adds the counters of a priority.
func add(s *state.Port, c *ethernet.PriorityCounters, i int, p *ethernet.Port) {
	_, queued := p.Queued(uint8(i))
	s.InFrames += c.InFrames
	s.InBytes += c.InBytes
	s.OutFrames += c.OutFrames
	s.OutBytes += c.OutBytes
	s.Marked += c.Marked
	s.Queued += queued
	s.Peak = max(s.Peak, c.PeakQueue)
	s.QueueDrops += c.QueueDrops
	s.BufferDrops += c.BufferDrops
	s.HeadroomDrops += c.HeadroomDrops
	s.PausesSent += c.Pause.Sent
	s.PausesReceived += c.Pause.Received
	s.PausedTime += c.Pause.ReceivedTime
	s.PausingTime += c.Pause.SentTime
	s.Storms += c.Storms
	x := state.Priority{Priority: i, InFrames: c.InFrames, InBytes: c.InBytes, OutFrames: c.OutFrames, OutBytes: c.OutBytes, Queued: queued,
		Peak: c.PeakQueue, Marked: c.Marked, Drops: c.QueueDrops + c.BufferDrops + c.HeadroomDrops, Sent: c.Pause.Sent,
		Received: c.Pause.Received}
	if x != (state.Priority{Priority: i}) {
		s.Priorities = append(s.Priorities, x)
	}
}

// Each calls do for every port: those of switches, and the ends of hosts' links.
func (n *Network) Each(do func(ethernet.End)) {
	for i := range n.cfg.Nodes {
		for p := range n.ports(i) {
			do(ethernet.End{Node: i, Port: p})
		}
	}
}

// counterLines are a port's counters, for people.
func counterLines(s *state.Port) string {
	var b strings.Builder
	line := func(name string, v any) { fmt.Fprintf(&b, "  %-22s %v\n", name, v) }
	state := "down"
	if s.Up {
		state = "up"
	}
	fmt.Fprintf(&b, "%s to %s: %s%s\n", endOf(s.Node, s.Port, s.Host), s.Peer, state, settings(s))
	if s.Neighbour != "" {
		line("neighbour", s.Neighbour)
	}
	if s.DCBX != "" {
		line("DCBX", s.DCBX)
	}
	if s.LACP != "" {
		line("LACP", s.LACP)
	}
	line("frames received", s.InFrames)
	line("bytes received", s.InBytes)
	line("frames sent", s.OutFrames)
	line("bytes sent", s.OutBytes)
	line("frames flooded", s.Flooded)
	line("marked", s.Marked)
	line("queue", fmt.Sprintf("%d bytes, %d at most", s.Queued, s.Peak))
	line("dropped", fmt.Sprintf("%d at queues, %d in the buffer, %d in headroom", s.QueueDrops, s.BufferDrops, s.HeadroomDrops))
	line("lost on the link", s.Lost)
	line("too long", s.TooLong)
	line("refused", s.Refused)
	line("pauses", fmt.Sprintf("%d sent, %d received, %d ignored", s.PausesSent, s.PausesReceived, s.Ignored))
	line("paused", fmt.Sprintf("%v, the other end %v", s.PausedTime.Round(time.Microsecond), s.PausingTime.Round(time.Microsecond)))
	line("storms", s.Storms)
	for _, p := range s.Priorities {
		line(fmt.Sprintf("priority %d", p.Priority), fmt.Sprintf("%d in, %d out, %d bytes queued, %d marked, %d dropped, pauses %d sent, %d received",
			p.InFrames, p.OutFrames, p.Queued, p.Marked, p.Drops, p.Sent, p.Received))
	}
	return b.String()
}

func endOf(node string, port int, host bool) string {
	if host {
		return node
	}
	return fmt.Sprintf("%s[%d]", node, port)
}

// settings says what is not usual about a port.
func settings(s *state.Port) string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if s.Rate > 0 {
		add("%s", rateText(s.Rate))
	}
	if s.MTU > 0 {
		add("MTU %d", s.MTU)
	}
	if s.FlowControl != "" {
		add("%s", s.FlowControl)
	}
	if s.Loss > 0 {
		add("loses %.3g%%", 100*s.Loss)
	}
	if len(s.Storming) > 0 {
		add("pauses %s for no reason", list(s.Storming))
	}
	if s.Take > 0 {
		add("takes %s", rateText(s.Take))
	}
	if s.Program != "" {
		add("%s", s.Program)
	}
	if len(all) == 0 {
		return ""
	}
	return ", " + strings.Join(all, ", ")
}

// flowText says which pauses a port obeys and sends.
func flowText(obeys, asks pause.Scope) string {
	text := func(s pause.Scope) string {
		if s.Mode == pause.Global {
			return "global pauses"
		}
		return "PFC " + list(set(s.Priorities))
	}
	switch {
	case obeys == asks && asks.Mode == pause.None:
		return ""
	case obeys == asks:
		return text(asks)
	case asks.Mode == pause.None:
		return "obeys " + text(obeys)
	case obeys.Mode == pause.None:
		return "sends " + text(asks)
	}
	return "obeys " + text(obeys) + ", sends " + text(asks)
}

func list(all []int) string {
	var texts []string
	for _, i := range all {
		texts = append(texts, strconv.Itoa(i))
	}
	return strings.Join(texts, ",")
}

// rateText returns a rate as people write it.
func rateText(r uint64) string {
	for _, u := range rates {
		if r >= u.size {
			return fmt.Sprintf("%.4g %s", float64(r)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d b/s", r)
}

var rates = []struct {
	name string
	size uint64
}{{"Tb/s", 1e12}, {"Gb/s", 1e9}, {"Mb/s", 1e6}, {"Kb/s", 1e3}}
