package device

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/rdma"
	"github.com/softvpi/softvpi/internal/function/rdma/gsi"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

// sameHostRounds is how often the connection managers of adapters of this host answer each other in one turn.
const sameHostRounds = 8

// services is an adapter as its function sees it.
type services struct{ a *adapter }

var _ rdma.Programs = services{}

// CatchUp implements gsi.Adapter.
func (s services) CatchUp(now clock.Time) {
	s.a.port.linkErrors(now)
	if s.a.engine.Undelivered() {
		s.a.function.Complete(now)
	}
}

// Prepare implements gsi.Adapter.
func (s services) Prepare(r *frame.Route) error {
	r.DstPort = s.a.cfg.UDPPort
	if s.a.ib == nil {
		r.SrcPort = sourcePort(r.Src, r.Src) // one for all peers, as Linux has it
	}
	return s.a.prepare(r)
}

// Mark implements gsi.Adapter. A rule for the port of a connection comes before what its path says, which follows from it.
func (s services) Mark(r *frame.Route, m cm.Marks) {
	s.a.mark(r, choice{sl: m.SL, class: m.TrafficClass, port: m.Port, told: true})
}

// SameHost implements gsi.Adapter.
func (s services) SameHost(local, remote netip.Addr) *gsi.QP1 {
	if b := s.a.sameHostOf(local, remote); b != nil {
		return &b.function.GSI
	}
	return nil
}

// Event implements gsi.Adapter.
func (s services) Event(now clock.Time, e *cm.Event) { s.a.cmEvent(now, e) }

// sameHostOf returns the adapter of this host to which a MAD may be handed without a packet, nil if none:
// both ports are sockets of this process, so that a packet would arrive, and nothing needs to see it.
func (a *adapter) sameHostOf(local, remote netip.Addr) *adapter {
	if a.needsWire() {
		return nil
	}
	if p := a.links.For(local); p == nil || !p.Socket() {
		return nil
	}
	for _, b := range a.host.adapters {
		if b == a || b.cfg.UDPPort != a.cfg.UDPPort || b.cfg.RoCE != a.cfg.RoCE {
			continue
		}
		if p := b.links.For(remote); p != nil && p.Socket() && b.up() && !b.needsWire() {
			return b
		}
	}
	return nil
}

// manageAll lets the connection managers of this host's adapters answer each other.
func (h *Host) manageAll(now clock.Time) {
	for range sameHostRounds {
		worked := false
		for _, p := range h.ports {
			for i := 0; i < len(p.awake); i++ {
				worked = p.awake[i].manage(now) || worked
			}
		}
		if !worked {
			return
		}
	}
}

// manage is manageAll for one adapter.
func (a *adapter) manage(now clock.Time) bool {
	if !a.enabled || !a.function.GSI.Waiting() {
		return false
	}
	a.function.Complete(now) // what ended a QP came before its peer's DREQ
	a.function.GSI.Answer(now)
	a.function.Complete(now)
	if a.transmit(now) {
		a.function.Complete(now)
	}
	return true
}

// unreachable passes an ICMP error to the engines.
func (a *adapter) unreachable(now clock.Time, u link.Unreachable) {
	if u.Kind != link.PacketTooBig && u.QPN <= uint32(ib.QPGSI) { // otherwise it does not concern a message of the CM
		a.cm.Unreachable(now, u.Dst, u.Kind, u.MAD[:])
	}
	a.engine.Unreachable(now, u)
}
