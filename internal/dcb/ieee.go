package dcb

import (
	"bytes"

	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/lldp"
)

// pfcClasses is for how many classes a port can pause on their own: all.
const pfcClasses = 8

// settleIEEE works out the operative settings with a peer.
//
// ETS is asymmetric (IEEE 802.1Q, 38.4.1.3): a willing port takes what its peer recommends, whatever the peer does itself. PFC is
// symmetric (38.4.2): a willing port takes what the peer does if that is not willing; if both are, the one with the lower MAC
// does (which the manual says too). The standard leaves open who takes a table of applications: here the ports that take the PFC of
// a peer whose classes are as willing.
func (d *dcbx) settleIEEE(c *Config, counters *Counters, n *Neighbour) {
	if !c.Willing {
		return
	}
	o := &d.operative
	if n.Recommendation != nil {
		if e, ok := fromETS(n.Recommendation); ok {
			o.ETS, o.ETSFrom = e, qos.FromPeer
		} else {
			counters.DCBXInvalid++
		}
	}
	lower := bytes.Compare(c.MAC[:], n.MAC[:]) < 0
	if n.PFC != nil && (!n.PFC.Willing || lower) {
		o.PFC, o.PFCFrom = n.PFC.Enabled, qos.FromPeer
	}
	if n.Applications != nil && (n.ETS == nil || !n.ETS.Willing || lower) {
		o.Applications, o.ApplicationsFrom = fromApplications(*n.Applications), qos.FromPeer
	}
}

// speakIEEE adds the TLVs of IEEE: how the port works, and what it recommends if somebody has chosen that.
func (d *dcbx) speakIEEE(c *Config, p *lldp.PDU) {
	o := &d.operative
	p.ETS = &lldp.ETSConfiguration{ETS: toETS(&o.ETS), Willing: c.Willing, Classes: qos.Classes}
	if c.ChosenETS {
		e := toETS(&c.Settings.ETS)
		p.Recommendation = &e
	}
	p.PFC = &lldp.PFC{Willing: c.Willing, Capability: pfcClasses, Enabled: o.PFC}
	// The table is the port's own: what came from the peer is not new to it.
	table := lldp.Applications{}
	for _, a := range c.Settings.Applications {
		x := lldp.Application{Priority: a.Priority, Selector: lldp.Selector(a.Selector), Protocol: a.Protocol}
		table = append(table, x)
	}
	p.Applications = &table
}

func toETS(e *qos.ETS) (w lldp.ETS) {
	w.Class, w.Bandwidth = e.Class, e.Bandwidth
	for c, a := range e.Algorithm {
		if a == qos.Enhanced {
			w.Algorithm[c] = lldp.Enhanced
		}
	}
	return w
}

// fromETS returns the classes of a peer; false if they make no sense. Credit-based and vendors' classes are taken as strict.
func fromETS(w *lldp.ETS) (e qos.ETS, ok bool) {
	e.Class = w.Class
	for c, a := range w.Algorithm {
		if a == lldp.Enhanced {
			e.Algorithm[c], e.Bandwidth[c] = qos.Enhanced, w.Bandwidth[c]
		}
	}
	return e, e.Check() == nil
}

// fromApplications returns the entries of a peer that are known.
func fromApplications(w lldp.Applications) (table []qos.Application) {
	for _, x := range w {
		a := qos.Application{Selector: qos.Selector(x.Selector), Protocol: x.Protocol, Priority: x.Priority}
		if qos.CheckApplications([]qos.Application{a}) == nil {
			table = append(table, a)
		}
	}
	qos.Sort(table)
	return table
}
