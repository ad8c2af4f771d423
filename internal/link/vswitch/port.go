package vswitch

import (
	"net"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

// burst is how many frames are taken at once.
const burst = 64

// Port is the link of a port.
type Port struct {
	*station.Set
	net   *Switch
	cfg   PortConfig
	end   *bridge.Port
	caps  link.Capabilities
	timer *time.Timer

	// The switch's lock guards the next two.
	pauses *time.Timer // when a pause ends, or must be repeated
	due    clock.Time  // when that is

	// What follows is the owner's.
	taken     [burst]bridge.Frame
	next, got int              // of taken
	cut       offload.Segments // of a large frame that nobody takes as it is
	memory    []byte           // of segments that are handed out
	used      int              // of memory
	sent      bridge.Frame
}

var _ link.Link = (*Port)(nil)

func newPort(s *Switch, cfg PortConfig, end *bridge.Port) *Port {
	p := &Port{net: s, cfg: cfg, end: end}
	p.timer = time.AfterFunc(time.Hour, cfg.Notify)
	p.timer.Stop()
	p.pauses, p.due = time.AfterFunc(time.Hour, cfg.Notify), clock.Never
	p.pauses.Stop()
	p.Set = station.New(station.Config{Name: name, Wire: p.wire, MTU: cfg.MTU, Arm: func(after time.Duration) {
		if p.timer.Stop(); after >= 0 {
			p.timer.Reset(after)
		}
	}})
	p.caps = link.Capabilities{MaxSegments: 1, Raw: true, MTU: cfg.MTU, Stations: p, Multicaster: p, Resolver: p, Large: true, Pauses: p}
	return p
}

// wire sends a frame of the stations': a question or an answer of neighbours.
func (p *Port) wire(b []byte) { p.net.forward(p, &bridge.Frame{Pieces: [3][]byte{b}}) }

// Capabilities implements link.Link.
func (p *Port) Capabilities() link.Capabilities { return p.caps }

// SetPauses implements link.Pauses: the port sends the pauses that its listener obeys, and obeys those that it sends.
func (p *Port) SetPauses(obeys, asks pause.Scope, rate uint64) {
	s := p.net
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ports[p.end.Number()] != p {
		return // it is closed
	}
	now := s.now()
	s.notify(p.end.SetPauses(now, asks, obeys, rate))
	p.followPauses(now)
}

// followPauses makes the port's listener look when a pause ends, or must be repeated. The caller holds the switch's lock.
func (p *Port) followPauses(now clock.Time) {
	due := p.end.Deadline()
	if due == p.due {
		return
	}
	p.due = due
	if p.pauses.Stop(); due != clock.Never {
		p.pauses.Reset(max(due.Sub(now), 0))
	}
}

// Send implements link.Link. It accepts every frame: what finds no room at the port where it leaves the switch is lost.
func (p *Port) Send(frames []frame.Out) (int, error) { return p.SendEach(frames, p.one) }

func (p *Port) one(o *frame.Out) station.Outcome {
	p.sent.Pieces = [3][]byte{o.Head[o.HeadStart:o.HeadEnd], o.Payload, o.Tail[:o.TailLen]}
	p.sent.Task, p.sent.BadFCS = o.Task, o.BadFCS
	p.net.forward(p, &p.sent)
	p.sent.Pieces = [3][]byte{} // the payload is not the link's
	return station.Gone
}

// Receive implements link.Link. Nothing signals that frames are left, as a descriptor would: Notify is called again.
func (p *Port) Receive(in []frame.In) (int, error) {
	if p.Ended() {
		return 0, net.ErrClosed
	}
	n := p.Looped(in)
	p.used = 0
	n += p.hand(in[n:])
	for n == 0 && len(in) > 0 && !p.busy() {
		p.next = 0
		if p.got = p.net.take(p, p.taken[:]); p.got == 0 {
			return 0, nil
		}
		n += p.hand(in)
	}
	if p.busy() || p.net.waits(p) {
		p.cfg.Notify()
	}
	return n, nil
}

// busy reports whether there are frames that were taken and not handed up yet.
func (p *Port) busy() bool { return p.next < p.got || p.cut.Cutting() }

// hand hands up frames that were taken, as far as there is space.
func (p *Port) hand(in []frame.In) (n int) {
	for n < len(in) {
		switch {
		case p.cut.Cutting():
			if p.used+p.cfg.MTU+extra > cap(p.memory) {
				if n > 0 {
					return n
				}
				p.memory = make([]byte, burst*(p.cfg.MTU+extra)) // the first that is cut
			}
			n += p.segment(in[n:])
		case p.next < p.got:
			n += p.give(in[n:], &p.taken[p.next])
			p.next++
		default:
			return n
		}
	}
	return n
}

// give hands up a frame that was taken.
func (p *Port) give(in []frame.In, t *bridge.Frame) int {
	f := t.Pieces[0]
	if t.Task == (offload.Task{}) {
		n := p.Take(in, f, offload.Task{}, true)
		if n > 0 {
			in[0].BadFCS = t.BadFCS
		}
		return n
	}
	if !p.Wants(f) {
		return 0
	}
	if t.Task.Kind != offload.UDP && p.HearsLarge(f) {
		p.Hand(in, f, t.Task)
		return 1
	}
	var e eth.Headers
	switch {
	case !e.Parse(f):
		p.Counted().ReceiveTruncated++
	case t.Task.Kind == offload.Whole:
		offload.Make(t.Task.Sums, &e, f)
		p.Hand(in, f, offload.Task{})
		return 1
	case p.cut.BeginFrame(t.Task, &e, f) != nil:
		p.Counted().ReceiveTruncated++
	}
	return 0
}

// segment hands out the next part of the frame that is cut.
func (p *Port) segment(in []frame.In) int {
	head, body, _ := p.cut.Next()
	n := len(head) + len(body)
	if n > p.cfg.MTU+extra {
		p.Counted().ReceiveTruncated++
		return 0
	}
	b := p.memory[p.used : p.used+n : p.used+n]
	p.used += n
	copy(b, head)
	copy(b[len(head):], body)
	p.Hand(in, b, offload.Task{})
	return 1
}

// Errors implements link.Link.
func (p *Port) Errors(out []link.Unreachable) int {
	if p.Ended() {
		return 0
	}
	p.Tend(false)
	return p.Set.Errors(out)
}

// Descriptors implements link.Link: there are none, Notify is called instead.
func (p *Port) Descriptors() []int { return nil }

// Stats implements link.Link. Packets that found no room at the port count as received and dropped.
func (p *Port) Stats() link.Stats {
	s := p.Set.Stats()
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	s.ReceiveDrops += p.end.Counters().QueueDrops
	s.ReceiveBuffer = bridge.DefaultQueue
	if p.cfg.Queue != 0 {
		s.ReceiveBuffer = p.cfg.Queue
	}
	return s
}

// Close implements link.Link. It removes the port.
func (p *Port) Close() error {
	if !p.End() {
		return nil
	}
	p.timer.Stop()
	p.net.remove(p)
	return nil
}
