package packet

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// hop is the path to a destination.
type hop struct {
	dst, next        netip.Addr
	srcPort, dstPort uint16
	begins           eth.Template // of frames, while usable
	usable           bool
	sent             uint32 // tick at which the last packet was sent through the socket
}

// Prepare returns the hop of a route that is otherwise complete, for Send; 0: it has none.
func (p *Port) Prepare(r *frame.Route) uint16 {
	if !p.sends() || r.Dst.IsMulticast() || r.Src != p.cfg.Addr {
		return 0
	}
	i, known := p.byAddr[r.Dst]
	if !known {
		if len(p.hops) == maxHops {
			return 0
		}
		i = uint16(len(p.hops))
		p.hops = append(p.hops, hop{dst: r.Dst, srcPort: r.SrcPort, dstPort: r.DstPort, sent: p.ticks})
		p.byAddr[r.Dst] = i
		p.resolve(&p.hops[i])
		if p.redo == int(i) {
			p.redo++
		}
	}
	return i + 1
}

// sends reports whether frames are sent. Over the loopback interface they are not: the system considers
// what arrives there forged unless it has sent it itself.
func (p *Port) sends() bool { return p.off == "" && p.device.kind == ethernet }

// resolve looks up the path to a destination.
func (p *Port) resolve(h *hop) {
	h.usable, h.next = false, netip.Addr{}
	r, ok := p.system.route(p.cfg.Addr.WithZone(""), h.dst.WithZone(""), h.srcPort, h.dstPort, p.cfg.Interface)
	if !ok || !r.unicast || r.out != p.cfg.Interface {
		return
	}
	h.next = h.dst.WithZone("")
	if r.gateway.IsValid() {
		h.next = r.gateway
	}
	if n, ok := p.system.neighbour(h.next, r.out); ok {
		p.meet(h, &n)
	}
}

// meet takes over the system's knowledge of the next hop.
func (p *Port) meet(h *hop, n *neighbour) {
	h.begins.Set(n.mac, p.device.mac, p.cfg.Addr, h.dst)
	h.usable = n.valid && n.mac != [6]byte{} && n.mac[0]&1 == 0
}

// Send sends a packet as a single frame by the hop of its route. It returns false if the socket must send it: the path is not
// known, the packet is long, or it has a priority, which the system derives from its DSCP. From
// time to time it does so deliberately, so that the system maintains its neighbour entry.
func (p *Port) Send(o *frame.Out, hop uint16) bool {
	if o.Len() > MostPayload {
		return false
	}
	h := p.by(hop, o.Route)
	if h == nil {
		return false
	}
	n := build(p.outlet.out[:], &h.begins, p.cfg.Port, o)
	if p.outlet.send(n) != 0 {
		return false
	}
	p.sent++
	return true
}

// by returns the hop with this number if a packet of a route may be sent by it now, nil if the socket must send it.
func (p *Port) by(number uint16, r *frame.Route) *hop {
	if number == 0 || int(number) > len(p.hops) || r.TrafficClass&^eth.ECNMask != 0 || p.off != "" {
		return nil
	}
	h := &p.hops[number-1]
	if !h.usable {
		return nil
	}
	if p.ticks-h.sent >= refreshTicks {
		h.sent = p.ticks
		return nil
	}
	return h
}
