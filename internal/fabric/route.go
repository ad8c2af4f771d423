package fabric

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Packet is a management datagram with its addresses. It belongs to the caller; the fabric modifies it but
// does not keep it.
type Packet struct {
	SLID, DLID ib.LID // for a directed route the permissive LID, or that of the node where its directed part begins
	SQP, DQP   ib.QPN // 0: subnet management, on virtual lane 15; else general services
	SL         uint8
	// PKey is used for general services only; 0 means the one at PKeyIndex of the sender's table. On
	// arrival PKeyIndex is an index into the receiver's table.
	PKey      ib.PKey
	PKeyIndex uint16
	MAD       [mad.Len]byte
}

// Result says what happened to a packet.
type Result uint8

// The results.
const (
	Dropped   Result = iota // nobody will answer
	Answered                // an agent of the fabric answered: the packet is now the answer, as received by the sender
	Delivered               // it reached a port where the fabric has no agent for it: the packet is as it arrived
)

// Outcome says what happened to a packet and, if it was delivered, where.
type Outcome struct {
	Result Result
	At     Place
}

// maxHops is how many switches a packet may pass. A forwarding loop would otherwise keep it forever.
const maxHops = 64

// Offsets of the fields of a directed route.
const (
	atStatus      = 4
	atHopPointer  = 6
	atHopCount    = 7
	atMKey        = 24
	atDrSLID      = 32
	atDrDLID      = 34
	atData        = 64
	atInitialPath = 128
	atReturnPath  = 192
	returning     = 0x80 // the direction bit, in the byte at atStatus
)

// Send sends a packet from a program at a port through the fabric, at once. If p.SLID is 0 it is filled
// in.
func (f *Fabric) Send(now clock.Time, from Place, p *Packet) Outcome {
	f.traps.now = now
	source := f.port(from)
	if p.MAD[1] == mad.ClassSubnetDir {
		return f.sendDirected(now, source, p)
	}
	if p.SLID == 0 {
		p.SLID = source.info.LID
	}
	general, index := !p.subnet(), p.PKeyIndex
	if general && !source.stamp(p) {
		return Outcome{}
	}
	target, in := f.routeLID(source, p)
	if target == nil || general && !f.admit(now, target, p) {
		return Outcome{}
	}
	if !f.agent(now, target, in, p) {
		return Outcome{Delivered, f.place(target)}
	}
	p.SLID, p.DLID, p.SQP, p.DQP, p.PKeyIndex = p.DLID, p.SLID, p.DQP, p.SQP, index
	if p.MAD[3] == 0 { // the agent does not answer
		return Outcome{}
	}
	if back, _ := f.routeLID(target, p); back != source {
		return Outcome{}
	}
	return Outcome{Result: Answered}
}

// step passes a packet over the port's link and returns the port at the other end; nil: it is lost there.
func (f *Fabric) step(out *port, q *Packet) *port {
	if !out.up() {
		out.count(ctrXmitDiscards, 1)
		out.count(ctrInactiveDiscards, 1)
		return nil
	}
	in := &f.ports[out.peer]
	out.sentManagement(q)
	if f.loss.on && f.lost(out) {
		return nil
	}
	in.gotManagement(q)
	return in
}

// routeLID forwards a packet by LID to its destination: target is the port with that LID, in the one where
// the packet arrived. nil: it was dropped.
func (f *Fabric) routeLID(source *port, p *Packet) (target, in *port) {
	if source.matches(p.DLID) && p.DLID != ib.LIDPermissive {
		return source, source
	}
	management := p.DQP == 0 && (p.MAD[1] == mad.ClassSubnetLID || p.MAD[1] == mad.ClassSubnetDir)
	n := &f.nodes[source.node]
	out, in := source, source
	for range maxHops {
		if n.kind == mad.NodeSwitch {
			own := &f.ports[n.first]
			if own.matches(p.DLID) {
				return own, in
			}
			if out = f.forward(n, in, p.DLID); out == nil {
				return nil, nil
			}
		}
		if !management && out.info.PortState != mad.PortActive {
			out.count(ctrXmitDiscards, 1)
			out.count(ctrInactiveDiscards, 1)
			return nil, nil
		}
		if in = f.step(out, p); in == nil {
			return nil, nil
		}
		if !management && in.info.PortState < mad.PortArmed {
			return nil, nil
		}
		if n = &f.nodes[in.node]; n.kind != mad.NodeSwitch {
			if !in.matches(p.DLID) {
				in.count(ctrRcvErrors, 1) // not for this port (IBA 7.7.5)
				return nil, nil
			}
			return in, in
		}
	}
	in.count(ctrXmitDiscards, 1)
	in.count(ctrLifetimeDiscards, 1)
	return nil, nil
}

// forward returns the port to which a switch forwards a packet for a LID; nil: it is dropped (IBA
// 18.2.4.3).
func (f *Fabric) forward(n *node, in *port, lid ib.LID) *port {
	out := uint8(mad.NoPort)
	if uint16(lid) <= n.sw.info.LinearFDBTop {
		out = n.sw.out(lid)
	}
	if out == 0 || out > n.count {
		in.count(ctrSwitchRelayErrors, 1)
		in.count(ctrDLIDMapping, 1)
		return nil
	}
	if out == in.number && in.number != 0 {
		in.count(ctrSwitchRelayErrors, 1)
		in.count(ctrLooping, 1)
		return nil
	}
	return &f.ports[int(n.first)+int(out)]
}

// sendDirected sends a packet along its directed route (IBA 14.2.2). A first part may be routed by LID, to
// the switch where the directed part begins, and a last part from where it ends to DrDLID.
func (f *Fabric) sendDirected(now clock.Time, source *port, p *Packet) Outcome {
	hops := int(p.MAD[atHopCount])
	if hops > mad.MaxHops {
		return Outcome{}
	}
	if p.MAD[atStatus]&returning != 0 {
		return f.returnDirected(source, p, hops)
	}
	if p.MAD[atHopPointer] != 0 {
		return Outcome{}
	}
	start, in := source, source
	if byLID(p, atDrSLID) {
		if start, in = f.routeLID(source, p); start == nil {
			return Outcome{}
		}
	}
	in = f.walk(start, in, p, hops)
	if in == nil {
		return Outcome{}
	}
	last := f.own(&f.nodes[in.node], in)
	target, in := f.lastPart(last, in, p)
	if target == nil {
		return Outcome{}
	}
	if !f.agent(now, target, in, p) {
		p.MAD[atHopPointer] = byte(hops + 1)
		return Outcome{Delivered, f.place(target)}
	}
	if p.MAD[3] == 0 {
		return Outcome{}
	}
	p.SLID, p.DLID, p.SQP, p.DQP = p.DLID, p.SLID, p.DQP, p.SQP
	p.MAD[atStatus] |= returning
	if byLID(p, atDrDLID) {
		if back, _ := f.routeLID(target, p); back != last {
			return Outcome{}
		}
	}
	if back := f.walkBack(last, p, hops); back == nil || back.node != start.node {
		return Outcome{}
	}
	if start != source {
		p.DLID = drLID(p, atDrSLID)
		if back, _ := f.routeLID(start, p); back != source {
			return Outcome{}
		}
	}
	return Outcome{Result: Answered}
}

func drLID(p *Packet, at int) ib.LID { return ib.LID(binary.BigEndian.Uint16(p.MAD[at:])) }

// byLID reports whether the route has a part by LID: before its directed part (DrSLID) or after it
// (DrDLID).
func byLID(p *Packet, at int) bool { return drLID(p, at) != ib.LIDPermissive }

// lastPart forwards a packet from where its directed part ends to its destination: target is the port that
// holds the node's state, by the one where the packet arrived. nil: it was dropped. Only a switch with a
// LID forwards by LID.
func (f *Fabric) lastPart(last, in *port, p *Packet) (target, by *port) {
	if !byLID(p, atDrDLID) {
		return last, in
	}
	if f.nodes[last.node].kind != mad.NodeSwitch || last.info.LID == 0 {
		return nil, nil
	}
	p.SLID, p.DLID = last.info.LID, drLID(p, atDrDLID)
	return f.routeLID(last, p)
}

// walk follows the initial path and records the ports of arrival in the return path. It returns the port
// where the packet enters the last node; nil: the path cannot be followed.
func (f *Fabric) walk(start, in *port, p *Packet, hops int) *port {
	p.MAD[atReturnPath] = in.number
	n := &f.nodes[start.node]
	for hop := 1; hop <= hops; hop++ {
		number := p.MAD[atInitialPath+hop]
		if number == 0 || number > n.count || n.kind != mad.NodeSwitch && (hop > 1 || number != start.number) {
			return nil // only switches forward
		}
		if in = f.step(&f.ports[int(n.first)+int(number)], p); in == nil {
			return nil
		}
		p.MAD[atReturnPath+hop] = in.number
		n = &f.nodes[in.node]
	}
	return in
}

// walkBack follows the return path from the node of port in. It returns the port where the packet enters
// the first node; nil: the path cannot be followed.
func (f *Fabric) walkBack(in *port, p *Packet, hops int) *port {
	n := &f.nodes[in.node]
	for hop := hops; hop >= 1; hop-- {
		number := p.MAD[atReturnPath+hop]
		if number == 0 || number > n.count || n.kind != mad.NodeSwitch && hop < hops {
			return nil
		}
		if in = f.step(&f.ports[int(n.first)+int(number)], p); in == nil {
			return nil
		}
		n = &f.nodes[in.node]
	}
	p.MAD[atHopPointer] = 0
	return in
}

// returnDirected takes a program's response to a directed request back to the requester.
func (f *Fabric) returnDirected(source *port, p *Packet, hops int) Outcome {
	if byLID(p, atDrDLID) {
		if source, _ = f.routeLID(source, p); source == nil || f.nodes[source.node].kind != mad.NodeSwitch {
			return Outcome{}
		}
	}
	back := f.walkBack(source, p, hops)
	if back == nil {
		return Outcome{}
	}
	target := f.own(&f.nodes[back.node], back)
	if byLID(p, atDrSLID) {
		p.DLID = drLID(p, atDrSLID)
		if target, _ = f.routeLID(target, p); target == nil {
			return Outcome{}
		}
	}
	return Outcome{Delivered, f.place(target)}
}
