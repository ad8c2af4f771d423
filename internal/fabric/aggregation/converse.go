package aggregation

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/clock/due"
	"github.com/softvpi/softvpi/wire/eth"
)

// Line is a link between ports of two nodes.
type Line struct {
	A, B Side
	Rate uint64 // in bits per second
}

// Side is an end of a line. Bond is nil if the node there speaks no LACP.
type Side struct {
	Bond *Bond
	Port int // of the node
}

// speaks reports whether LACP is spoken at a side.
func (s Side) speaks() bool { return s.Bond != nil && s.Bond.Index(s.Port) >= 0 }

// Converse lets systems talk over lines that are up and take no time, from 0 on, before their fabrics begin: Bonds.Before is for how long.
func Converse(lines []Line, d time.Duration) {
	c := conversation{place: map[*Bond]int{}}
	for _, l := range lines {
		c.join(l.A, l.B, l.Rate)
		c.join(l.B, l.A, l.Rate)
	}
	c.due = due.New(len(c.all))
	for i := range c.all {
		c.due.Set(i, 0)
	}
	for now := clock.Time(0); len(c.all) > 0 && now <= clock.Time(d); now = max(c.due.First(), now+1) {
		for c.due.First() <= now {
			c.turn(now, c.due.Next())
		}
	}
}

// conversation is systems that talk before their fabrics begin.
type conversation struct {
	all   []*Bond
	peers [][]Side // by system and its port
	place map[*Bond]int
	due   due.Times
}

// join adds an end of a line, if LACP is spoken there.
func (c *conversation) join(s, peer Side, rate uint64) {
	if !s.speaks() {
		return
	}
	i, there := c.place[s.Bond]
	if !there {
		i = len(c.all)
		c.place[s.Bond] = i
		c.all, c.peers = append(c.all, s.Bond), append(c.peers, make([]Side, s.Bond.System.Ports()))
	}
	k := s.Bond.Index(s.Port)
	c.peers[i][k] = peer
	s.Bond.SetUp(0, k, true, rate)
}

// turn lets a system do what is due, and its peers hear what it says.
func (c *conversation) turn(now clock.Time, i int) {
	x := c.all[i]
	x.Advance(now)
	for k, f := x.Transmit(now); f != nil; k, f = x.Transmit(now) {
		if p := c.peers[i][k]; p.speaks() {
			// What a system of ours says is no error to another.
			_ = p.Bond.Receive(now, p.Bond.Index(p.Port), f[eth.EthernetLen:])
			c.due.Set(c.place[p.Bond], now)
		}
	}
	c.due.Set(i, max(x.Deadline(), now+1))
}
