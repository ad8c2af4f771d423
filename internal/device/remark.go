package device

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
)

// choice is what the priority and the marks of an RDMA flow follow from, beside the rules of its port.
type choice struct {
	sl, class uint8  // service level and traffic class; 0: none was chosen
	port      uint16 // of the connection, for which there may be a policy; 0: none
	told      bool   // the peer has chosen them, in its request: a policy of this side comes before
}

// chosen returns what a program chooses by an address vector.
func chosen(av *command.AddressVector) choice { return choice{sl: av.SL, class: av.TrafficClass} }

// marked returns the priority and the marks of a flow by the rules of the port as they are now.
func (a *adapter) marked(c choice) qos.Mark {
	if c.told && a.policy(c.port) != nil {
		c.sl, c.class = 0, 0
	}
	kind := qos.RoCE{V1: a.cfg.RoCE < RoCEv2, Port: a.cfg.UDPPort}
	rules := a.port.marking
	rules.Own = a.cfg.priority
	return rules.RDMA(kind, c.port, c.sl, c.class, a.cfg.VLAN != 0)
}

// tag returns the VLAN tag of a route with a mark: its VLAN, which its link knows, and the priority.
func tag(r *frame.Route, x qos.Mark) uint16 {
	vlan := r.VLAN & eth.VIDMask
	if x.Tagged {
		vlan |= uint16(x.Priority) << pcpShift
	}
	return vlan
}

// mark gives a route to an address of Ethernet its priority, and what it carries of it.
func (a *adapter) mark(r *frame.Route, c choice) {
	x := a.marked(c)
	r.Priority, r.TrafficClass, r.VLAN = x.Priority, x.Class, tag(r, x)
}

// choose says what the marks of q follow from; they are changed where that differs.
func (q *qp) choose(c choice) {
	q.choice = c
	q.remark()
}

// remark lets q, if it is connected, send with the marks of the rules as they are now.
func (q *qp) remark() {
	if q.tq == nil || q.adapter.ib != nil {
		return
	}
	if r := q.tq.Route(); r != nil {
		x := q.adapter.marked(q.choice)
		q.adapter.engine.Remark(q.tq, x.Priority, x.Class, tag(r, x))
	}
}

// remark lets connections, their messages and address handles have the marks of the port's rules as they are now: these act at once
// (Windows applies policies to connections that exist, and what DCBX agrees acts when it is agreed).
func (p *portLoop) remark() {
	for _, a := range p.functions {
		if a.ib != nil {
			continue
		}
		a.function.GSI.Remark()
		a.resizeRaw() // which tells them the priority of frames, too
		for _, q := range a.byNumber {
			q.remark()
		}
	}
	for _, c := range p.host.clients {
		c.ahs.Each(func(o *ah) {
			if a := o.pd.adapter; a.port == p && a.ib == nil {
				a.mark(&o.route, o.choice)
			}
		})
	}
}

// framePriority returns what says which priority a frame of a raw packet queue pair without a tag has: as those of hosts it follows
// policies, applications and, if that is trusted, its DSCP. nil: all have 0.
func (p *portLoop) framePriority() func([]byte) uint8 {
	if p.marking.Idle() {
		return nil
	}
	m := p.marking
	return func(b []byte) uint8 {
		var h eth.Headers
		h.Parse(b)
		x := qos.FlowOf(&h, b)
		priority, _ := m.Frame(&x)
		return priority
	}
}
