package driver

import (
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/function/lldp"
	"github.com/softvpi/softvpi/internal/qos"
)

// agreement is what the LLDP agent of an adapter's port has agreed.
type agreement struct {
	adapter uint32
	lldp.Agreement
}

// agreements writes the events of agreements, by a goroutine: whoever agrees drives the loop.
type agreements struct {
	news chan agreement
	done chan struct{}
}

// followAgreements begins to write events. More than mostEvents that wait are lost.
func (d *Driver) followAgreements() (told func(uint32, lldp.Agreement)) {
	a := &agreements{news: make(chan agreement, mostEvents), done: make(chan struct{})}
	d.agreements = a
	go func() {
		defer close(a.done)
		before := map[uint32]lldp.Agreement{}
		for x := range a.news {
			d.tellAgreement(x, before[x.adapter])
			before[x.adapter] = x.Agreement
		}
	}()
	return func(adapter uint32, x lldp.Agreement) {
		select {
		case a.news <- agreement{adapter, x}:
		default:
		}
	}
}

func (a *agreements) close() {
	if a != nil {
		close(a.news)
		<-a.done
	}
}

// tellAgreement writes the event of a change.
func (d *Driver) tellAgreement(x agreement, was lldp.Agreement) {
	if int(x.adapter) >= len(d.running) {
		return
	}
	r := d.running[x.adapter]
	had := was.State == dcb.Agreed || was.State == dcb.Conflict
	peer := x.DCBXStatus.Peer.String()
	switch x.State {
	case dcb.Conflict:
		d.events.Raise(r.Generation, events.DCBXConflict{Adapter: r.Name, Peer: peer, Features: conflicts(&x.DCBXStatus)})
	case dcb.Agreed:
		o := &x.Operative
		classes, bandwidths := qos.FormatClasses(&o.ETS)
		d.events.Raise(r.Generation, events.DCBXAgreed{
			Adapter: r.Name, Peer: peer, Protocol: protocolName(x.Protocol),
			PFC: qos.FormatPriorities(o.PFC), PFCFrom: o.PFCFrom.String(), Classes: classes, Bandwidths: bandwidths,
			ETSFrom: o.ETSFrom.String(), Applications: qos.FormatApplications(o.Applications),
			ApplicationsFrom: o.ApplicationsFrom.String(),
		})
	case dcb.Multiple:
		d.events.Raise(r.Generation, events.DCBXMultiplePeers{Adapter: r.Name})
	default:
		if had {
			d.events.Raise(r.Generation, events.DCBXEnded{Adapter: r.Name, Peer: was.DCBXStatus.Peer.String()})
		}
	}
}

func conflicts(s *dcb.DCBXStatus) (names string) {
	for _, f := range []struct {
		name  string
		wrong bool
	}{{"ETS", s.ETS.Error}, {"PFC", s.PFC.Error}, {"applications", s.Applications.Error}} {
		if !f.wrong {
			continue
		}
		if names != "" {
			names += ", "
		}
		names += f.name
	}
	return names
}

// protocolName returns how people call a protocol.
func protocolName(p dcb.Protocol) string {
	return map[dcb.Protocol]string{dcb.IEEE: "IEEE 802.1Q", dcb.CEE: "CEE"}[p]
}
