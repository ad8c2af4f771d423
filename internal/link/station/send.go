package station

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/neighbour"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// Prepare completes a route as link.Link says. It fills in SrcMAC and VLAN of the station that has the source address, and
// DstMAC as soon as it is known; until then, what is sent waits. A VLAN of the route chooses among stations that have the
// same address.
func (s *Set) Prepare(r *frame.Route) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dst := r.Dst.Unmap().WithZone("")
	if !dst.IsValid() || dst.IsUnspecified() {
		return s.bad("destination", r.Dst, "an address")
	}
	src := r.Src
	var t *station
	var a *address
	if src.IsValid() {
		t, a = s.owner(src.Unmap().WithZone(""), r.VLAN&eth.VIDMask)
	} else if t, a = s.source(dst); t != nil {
		src = a.Addr()
	}
	if t == nil || a.Addr().Is4() != dst.Is4() {
		return s.bad("source", r.Src, fmt.Sprintf("an address of a station, of the family of %v", dst))
	}
	if s.engine.Lost(neighbour.Key{VLAN: t.VLAN, Addr: a.Addr()}) {
		return fmt.Errorf("%s: somebody else on the wire has %v: %w", s.cfg.Name, a.Addr(), syscall.EADDRNOTAVAIL)
	}
	w := &path{set: s, route: r, station: t, from: neighbour.Source{MAC: t.MAC, Addr: a.Addr()}}
	to, key, err := s.next(t, a, dst)
	if err != nil {
		return err
	}
	r.Release()
	r.Dst, r.Src, r.SrcMAC, r.VLAN, r.DstMAC = dst, src, t.MAC, r.VLAN&^eth.VIDMask|t.VLAN, to
	if r.SrcPort == 0 {
		r.SrcPort = eth.PortRoCEv2
	}
	if r.DstPort == 0 {
		r.DstPort = eth.PortRoCEv2
	}
	r.Path = w
	if key.Addr.IsValid() {
		s.join(w, key)
		s.settle()
	} else {
		w.loop = s.index(idOf(to, t.VLAN)) >= 0
	}
	return nil
}

// next returns to which MAC packets for dst go, or for which neighbour's it has to be looked. The caller holds mu.
func (s *Set) next(t *station, a *address, dst netip.Addr) (mac eth.MAC, key hopKey, err error) {
	if mac, ok := eth.MulticastMAC(dst); ok {
		return mac, key, nil
	}
	for _, o := range s.stations {
		if o.VLAN == t.VLAN && o.find(dst) != nil {
			return o.MAC, key, nil
		}
	}
	key = hopKey{neighbour.Key{VLAN: t.VLAN, Addr: dst}, a.system}
	if a.system {
		key.Addr, err = s.cfg.System.Route(neighbour.Key{VLAN: t.VLAN, Addr: a.Addr()}, dst)
		return mac, key, err
	}
	if from, _, ok := ib.GIDFromAddr(a.Addr()).MAC(); ok && from == t.MAC {
		if mac, _, ok := ib.GIDFromAddr(dst).MAC(); ok { // both are GIDs of RoCE v1 (IBA annex A16), which tell whose they are
			return mac, hopKey{}, nil
		}
	}
	if dst.IsLinkLocalUnicast() {
		return mac, key, nil
	}
	for _, o := range t.addrs {
		if o.Contains(dst) {
			return mac, key, nil
		}
	}
	for _, g := range t.Gateways {
		if g.Is4() == dst.Is4() {
			key.Addr = g
			return mac, key, nil
		}
	}
	return mac, key, fmt.Errorf("%s: no route from %v to %v: %w", s.cfg.Name, a.Addr(), dst, syscall.ENETUNREACH)
}

// Goes reports whether the link may send a frame now, on the way to its neighbour. Deal deals with the others.
func (s *Set) Goes(o *frame.Out) bool {
	if s.unfit(o) {
		return false
	}
	if !routed(o) {
		if o.Head[o.HeadStart]&1 != 0 {
			s.inquired(o)
		}
		return true
	}
	w, _ := o.Route.Path.(*path)
	if w == nil || w.set != s {
		return true
	}
	h := w.hop
	if w.station.gone || s.isLost(w) || w.loop || h != nil && !h.known {
		return false
	}
	if h == nil {
		return true
	}
	h.used = true
	// It may have been sealed before the neighbour was known, or moved.
	if to := o.Head[o.HeadStart:][:len(h.mac)]; eth.MAC(to) != h.mac {
		copy(to, h.mac[:])
	}
	return true
}

// Deal deals with a frame that does not go out now: it waits for its neighbour, goes to another station of the link, or is
// lost. It returns true if the neighbour is known by now, and nothing was done.
func (s *Set) Deal(o *frame.Out) bool {
	if s.unfit(o) {
		s.tooLong(o)
		return false
	}
	w := o.Route.Path.(*path)
	switch {
	case w.station.gone, s.isLost(w):
		s.stats.SendErrors++
		return false
	case w.loop:
		if n := o.Len(); s.loop.put(o) {
			s.sent(n)
			if s.loop.len == 1 {
				s.hurry()
			}
		}
		return false
	}
	return s.wait(o, w)
}

// isLost reports whether a path begins at an address that somebody else has.
func (s *Set) isLost(w *path) bool {
	return len(s.lost) > 0 && s.lost[neighbour.Key{VLAN: w.station.VLAN, Addr: w.from.Addr}]
}

// unfit reports whether a frame is longer than the link carries, or shorter than its header. One that is to be cut may be
// longer.
func (s *Set) unfit(o *frame.Out) bool {
	n := o.Len()
	return n > s.cfg.MTU+eth.EthernetLen+eth.VLANLen && o.Task.Kind == offload.Whole || n < eth.EthernetLen
}

// Outcome is what became of a frame that a link has handed to the system.
type Outcome uint8

const (
	// Gone frames are sent.
	Gone Outcome = iota
	// Blocked frames have to wait for room.
	Blocked
	// Lost frames were refused for good.
	Lost
)

// SendEach sends frames as link.Link says, as far as the stations let them out, for links that send one after the other.
func (s *Set) SendEach(frames []frame.Out, send func(*frame.Out) Outcome) (int, error) {
	if s.Ended() {
		return 0, net.ErrClosed
	}
	for i := range frames {
		o := &frames[i]
		if !s.admit(o) {
			continue
		}
		switch send(o) {
		case Gone:
			s.Sent(o)
		case Blocked:
			s.stats.SendBlocked++
			return i, nil
		case Lost:
			s.Refused(o, 0)
		}
	}
	return len(frames), nil
}

// admit is for frames that go one after the other: true: it goes out now. Otherwise it was dealt with.
func (s *Set) admit(o *frame.Out) bool { return s.Goes(o) || s.Deal(o) && s.Goes(o) }

// tooLong loses a frame that is longer than the link carries, or shorter than its header.
func (s *Set) tooLong(o *frame.Out) {
	s.stats.SendErrors++
	if routed(o) && o.Len() > s.cfg.MTU {
		u := link.Unreachable{Dst: o.Route.Dst, Kind: link.PacketTooBig, MTU: s.cfg.MTU}
		u.Quote(o.Head[frame.HeadRoom:o.HeadEnd], o.Payload)
		s.report(u)
	}
}

// routed reports whether a frame is a packet to an address, whose headers of transport are in their place. Those of Ethernet
// functions are not.
func routed(o *frame.Out) bool { return o.Route != nil && o.Route.Dst.IsValid() }

// wait keeps a frame until its neighbour is known. It returns true if it is known by now.
func (s *Set) wait(o *frame.Out, w *path) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := w.hop
	if s.seek(w); h.known {
		s.settle()
		return true
	}
	if len(h.held) < heldEach && s.held < heldAll {
		h.held = append(h.held, held{appendFrame(nil, o), frame.HeadRoom - int(o.HeadStart), w})
		s.held++
		o.Held = true
		s.overdue = min(s.overdue, h.since.Add(patience))
	} else {
		s.stats.SendErrors++
	}
	s.settle()
	return false
}

// Sent counts a frame that the link has sent, one of several segments as the frames that it stands for.
func (s *Set) Sent(o *frame.Out) {
	frames, bytes := o.OnWire()
	s.stats.SentPackets += uint64(frames)
	s.stats.SentBytes += uint64(bytes)
	s.stats.SentBursts++
}

// Refused counts a frame that the system did not take, and reports it if its destination is the reason.
func (s *Set) Refused(o *frame.Out, kind link.UnreachableKind) {
	s.stats.SendErrors++
	if kind == 0 || !routed(o) {
		return
	}
	u := link.Unreachable{Dst: o.Route.Dst, Kind: kind}
	if kind == link.PacketTooBig {
		u.MTU = s.cfg.MTU
	}
	u.Quote(o.Head[frame.HeadRoom:o.HeadEnd], o.Payload)
	s.report(u)
}

// Counted returns the counters for the link to add its own.
func (s *Set) Counted() *link.Stats { return &s.stats }

// Stats returns the counters, with those of frames between the stations.
func (s *Set) Stats() link.Stats {
	t := s.stats
	t.ReceiveDrops += s.loop.drops
	return t
}

// report keeps an error until Errors is called. A duplicate is ignored.
func (s *Set) report(u link.Unreachable) {
	for i := range s.errs[:s.nerrs] {
		if s.errs[i] == u {
			return
		}
	}
	if s.nerrs == len(s.errs) {
		s.stats.ErrorsLost++
		return
	}
	s.errs[s.nerrs] = u
	s.nerrs++
}

// Errors hands out what was reported.
func (s *Set) Errors(out []link.Unreachable) int {
	n := copy(out, s.errs[:s.nerrs])
	s.nerrs = copy(s.errs[:], s.errs[n:s.nerrs])
	return n
}

// Pauses between looks while somebody waits for a neighbour, whose answer the link's owner may have received, or the system.
const (
	firstLook = time.Millisecond
	lastLook  = 50 * time.Millisecond
)

// Resolve implements link.Resolver. Somebody has to drive the link meanwhile.
func (s *Set) Resolve(ctx context.Context, dst netip.Addr) error {
	dst = dst.Unmap().WithZone("")
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		news, err := s.resolve(dst)
		if err != nil || news == nil {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%s: %v does not answer: %w", s.cfg.Name, dst, syscall.ETIMEDOUT)
		case <-news:
		case <-t.C:
		}
		t.Stop()
	}
}

// resolve looks once. news is closed when there may be an answer; nil: dst can be reached.
func (s *Set) resolve(dst netip.Addr) (news <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return nil, net.ErrClosed
	}
	t, a := s.source(dst)
	if t == nil {
		return nil, fmt.Errorf("%s: no station can reach %v: %w", s.cfg.Name, dst, syscall.ENETUNREACH)
	}
	_, key, err := s.next(t, a, dst)
	if err != nil || !key.Addr.IsValid() {
		return nil, err
	}
	if _, known := s.find(key, neighbour.Source{MAC: t.MAC, Addr: a.Addr()}); known {
		return nil, nil
	}
	s.flush() // what has changed is the owner's
	if s.news == nil {
		s.news = make(chan struct{})
	}
	return s.news, nil
}
