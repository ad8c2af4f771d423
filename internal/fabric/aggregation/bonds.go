package aggregation

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/clock/due"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/wire/eth"
)

// LACP is how a node aggregates the links of a bundle (IEEE 802.1AX). The zero value is static: by all that are up.
type LACP struct {
	On bool
	// Passive and Fast are as of lacp.Group, and so is Choice.
	Passive, Fast bool
	Choice        lacp.Choice
}

// Group is ports of a node that may be aggregated with each other.
type Group struct {
	LACP
	// Key is as of lacp.Group.
	Key uint16
	// Ports are the node's own, from 0.
	Ports []int
}

// Bonds are the nodes of a fabric that speak LACP.
type Bonds struct {
	// Before is how long their systems have talked when the fabric's time begins.
	Before time.Duration
	// Changed is told of a port that begins or ceases to take or to send frames, after it has; nil: nobody is.
	Changed func(now clock.Time, at ethernet.End)

	fabric *ethernet.Fabric
	all    []*Bond
	of     map[int]int // by node: the place in all
	due    due.Times
}

// Bond is a node that speaks LACP.
type Bond struct {
	*lacp.System
	// Node is its number in the fabric, and Ports are the node's, by those of the system.
	Node  int
	Ports []int
	index [ethernet.MostPorts]int8 // of the system, by those of the node; -1: it speaks none there
}

// New returns the bonds of a fabric, so far none.
func New(f *ethernet.Fabric) *Bonds { return &Bonds{fabric: f, of: map[int]int{}} }

// Add lets a node speak LACP by a MAC, once it begins. Ports have their numbers at the node, and 1 more in data units. The error is a
// *lacp.Error.
func (b *Bonds) Add(node int, mac eth.MAC, groups []Group) (*Bond, error) {
	x := &Bond{Node: node}
	for i := range x.index {
		x.index[i] = -1
	}
	c := lacp.Config{System: mac}
	for _, g := range groups {
		own := lacp.Group{Key: g.Key, Passive: g.Passive, Fast: g.Fast, Choice: g.Choice}
		for _, p := range g.Ports {
			x.index[p] = int8(len(x.Ports))
			x.Ports = append(x.Ports, p)
			own.Ports = append(own.Ports, lacp.Port{Number: uint16(p + 1), MAC: mac})
		}
		c.Groups = append(c.Groups, own)
	}
	var err error
	if x.System, err = lacp.New(c); err != nil {
		return nil, err
	}
	b.of[node] = len(b.all)
	b.all = append(b.all, x)
	return x, nil
}

// Begin lets all nodes speak. Ports carry nothing until a partner, or its silence, is known.
func (b *Bonds) Begin(now clock.Time) {
	b.due = due.New(len(b.all))
	for i, x := range b.all {
		b.fabric.Switch(x.Node).Slow = func(now clock.Time, port int, frame []byte) bool { return b.hear(now, i, port, frame) }
		for _, p := range x.Ports {
			b.Follow(now, ethernet.End{Node: x.Node, Port: p})
		}
		b.settle(now, i)
	}
}

// All returns the nodes that speak LACP.
func (b *Bonds) All() []*Bond { return b.all }

// Of returns that of a node; nil: it speaks none.
func (b *Bonds) Of(node int) *Bond {
	if i, ok := b.of[node]; ok {
		return b.all[i]
	}
	return nil
}

// Index returns which port of the system a port of the node is; -1: it speaks no LACP there.
func (x *Bond) Index(port int) int {
	if port < 0 || port >= len(x.index) {
		return -1
	}
	return int(x.index[port])
}

// hear hands a frame of a slow protocol to the system of a node; false: it is for nobody there.
func (b *Bonds) hear(now clock.Time, i, port int, frame []byte) bool {
	x := b.all[i]
	k := x.Index(port)
	if k < 0 {
		return false
	}
	if x.Receive(now.Add(b.Before), k, frame[eth.EthernetLen:]) == nil { // otherwise it has counted it
		b.settle(now, i)
	}
	return true
}

// Follow tells the system of a node that the link of a port has come or gone, or has another rate.
func (b *Bonds) Follow(now clock.Time, at ethernet.End) {
	i, ok := b.of[at.Node]
	if !ok {
		return
	}
	x := b.all[i]
	if k := x.Index(at.Port); k >= 0 {
		p := b.fabric.Port(at)
		x.SetUp(now.Add(b.Before), k, p.Up(), p.Config().Rate)
		b.settle(now, i)
	}
}

// settle sends what a system has to say, and lets its ports carry what they are to.
func (b *Bonds) settle(now clock.Time, i int) {
	x, then := b.all[i], now.Add(b.Before)
	for k, f := x.Transmit(then); f != nil; k, f = x.Transmit(then) {
		if r := b.fabric.Store.Put(f, 0); r != 0 {
			b.fabric.Port(ethernet.End{Node: x.Node, Port: x.Ports[k]}).Express(now, r)
			b.fabric.Wake(x.Node)
		}
	}
	for k, port := range x.Ports {
		at := ethernet.End{Node: x.Node, Port: port}
		p := b.fabric.Port(at)
		takes, sends := p.Member()
		collects, distributes := x.Carries(k)
		p.SetMember(collects, distributes)
		if b.Changed != nil && (collects != takes || distributes != sends) {
			b.Changed(now, at)
		}
	}
	next := x.Deadline()
	if next != clock.Never {
		next = next.Add(-b.Before)
	}
	b.due.Set(i, next)
}

// Advance lets systems have their turn that is due.
func (b *Bonds) Advance(now clock.Time) {
	for b.Deadline() <= now {
		i := b.due.Next()
		b.all[i].Advance(now.Add(b.Before))
		b.settle(now, i)
	}
}

// Deadline returns when a system wants its turn.
func (b *Bonds) Deadline() clock.Time {
	if len(b.all) == 0 {
		return clock.Never
	}
	return b.due.First()
}
