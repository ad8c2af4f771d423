package port

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/wire/eth"
)

// Overlay puts the frames of stations that are in virtual subnets into tunnels, in place of the embedded switch, and takes them out. It is
// the function of a station that has the provider addresses: that sends what the engine itself has to say, and gets what other hosts send.
type Overlay struct {
	*overlay.Engine
	port     *Port
	wire     *Wire
	provider *Station
	route    frame.Route
	recent   eswitch.Recent
	scratch  frame.Out
	in       [turnedBatch]frame.In // from tunnels
	n        int                   // of in, that are for the station
	to       *place
	segments offload.Segments
	one      []byte // one datagram of a burst
}

// AttachOverlay puts an overlay between a wire with an embedded switch and its stations. s is the station of the provider addresses, an
// Ethernet station, whose port the switch has.
func (p *Port) AttachOverlay(e *overlay.Engine, w *Wire, s Station) *Overlay {
	o := &Overlay{Engine: e, port: p, wire: w}
	o.provider = p.Attach(o, s)
	o.provider.Plug(w, netip.Addr{}, nil)
	w.overlay = o
	return o
}

// Detach takes the overlay away.
func (o *Overlay) Detach() {
	o.wire.overlay = nil
	o.port.Detach(o.provider)
}

// overlays returns the overlay if a station is in a virtual subnet; nil: the embedded switch alone has its frames.
func (w *Wire) overlays(s *Station) *Overlay {
	if w.overlay == nil || s == w.overlay.provider || !w.overlay.Has(overlay.Port(s.At)) {
		return nil
	}
	return w.overlay
}

// tunnelled sends frames of a station that is in a virtual subnet.
func (p *Port) tunnelled(now clock.Time, w *Wire, s *Station, out []frame.Out) {
	t := w.overlay
	for i := range out {
		o := &out[i]
		o.Inside = true
		if why := w.embedded.Guard(s.At, o.Head[o.HeadStart:o.HeadEnd], s.Kind == RDMA); why != 0 {
			s.refused(why)
			continue
		}
		if s.Kind == RDMA && eth.MAC(o.Head[o.HeadStart:]) == s.MAC { // two programs of one function
			s.Carried.sentOne(o)
			p.turnTo(w, s, o, only(s.At), s.At)
			continue
		}
		f := overlay.Frame{Head: o.Head[o.HeadStart:o.HeadEnd], Body: o.Payload, Tail: o.Tail[:o.TailLen], Task: o.Task}
		v := t.Send(now, overlay.Port(s.At), &f)
		if v.Changed {
			o.Staged = nil
		}
		switch {
		case v.Outer != nil:
			t.leave(s, o, v.Outer)
		case v.Local:
			s.Carried.sentOne(o)
			p.turnTo(w, s, o, only(eswitch.Port(v.To)), eswitch.Port(v.To))
		case v.Everybody:
			s.Carried.sentOne(o)
			p.turnTo(w, s, o, t.members(s), eswitch.Wire)
		case v.Why == 0:
			s.Carried.sentOne(o)
			o.Held = v.Reply == nil // it leaves later, or copies of it do, as the engine's own
		}
		if v.Reply != nil {
			t.answer(s, v.Reply)
		}
	}
}

func only(at eswitch.Port) (to eswitch.Set) {
	to.Add(at)
	return to
}

// members returns the others of a station's virtual subnet here.
func (t *Overlay) members(s *Station) (to eswitch.Set) {
	to = setOf(t.Members(t.SubnetOf(overlay.Port(s.At))))
	to.Drop(s.At)
	return to
}

func setOf(ports []overlay.Port) (to eswitch.Set) {
	for _, p := range ports {
		to.Add(eswitch.Port(p))
	}
	return to
}

// leave puts the headers outside before a frame, and sends it where the embedded switch has their destination: mostly to the wire.
func (t *Overlay) leave(s *Station, o *frame.Out, outer []byte) {
	n, used := uint16(len(outer)), o.HeadEnd-o.HeadStart
	if o.HeadStart < n { // the headers inside are moved up
		if int(n+used) > len(o.Head) {
			t.Refuse(overlay.Malformed)
			return
		}
		copy(o.Head[n:], o.Head[o.HeadStart:o.HeadEnd])
		o.HeadStart, o.HeadEnd = n, n+used
	}
	o.HeadStart -= n
	copy(o.Head[o.HeadStart:], outer)
	if o.Staged, o.Segment = nil, 0; o.Task.Kind == offload.Whole {
		o.Task = offload.Task{}
	} else {
		o.Task.Kind = o.Task.Kind.Around(versionOf(outer))
	}
	if t.wire.embedded.Follow(t.provider.At, o.Head[o.HeadStart:o.HeadEnd], o.Len(), &t.recent) != 0 {
		return
	}
	t.port.pass(t.wire, s, o, &t.recent)
}

// versionOf returns the IP version of headers outside.
func versionOf(outer []byte) uint8 {
	var h eth.Headers
	if h.Parse(outer); h.Type == eth.TypeIPv6 {
		return 6
	}
	return 4
}

// answer gives a station a frame in answer to one of its own.
func (t *Overlay) answer(s *Station, b []byte) {
	o := &t.scratch
	o.Reset(&t.route)
	n := min(len(b), len(o.Head)-frame.HeadRoom)
	o.HeadEnd = frame.HeadRoom + uint16(copy(o.Head[frame.HeadRoom:], b[:n]))
	o.Payload = b[n:]
	t.port.turnTo(t.wire, s, o, only(s.At), s.At)
}

// Receive implements Function: it gets what the wire, or another station, has for the provider addresses.
func (t *Overlay) Receive(now clock.Time, in []frame.In) {
	t.n = 0
	for i := range in {
		f := &in[i]
		switch {
		case f.BadFCS:
		case f.Task.Kind == offload.Whole:
			t.arrive(now, t.Arrive(now, f.Data, f.Task.Sums&offload.MakeTransport != 0), offload.Task{})
		case f.Task.Kind.InTunnel():
			inside := offload.Task{Kind: f.Task.Kind.Inner(), Segment: f.Task.Segment, Sums: offload.MakeTransport}
			t.arrive(now, t.ArriveLarge(now, f.Data, f.Task), inside)
		default:
			t.cut(now, f)
		}
	}
	t.flush(now)
}

// cut takes a burst of datagrams apart, each of which has a frame.
func (t *Overlay) cut(now clock.Time, f *frame.In) {
	var h eth.Headers
	h.Parse(f.Data)
	if t.segments.BeginFrame(f.Task, &h, f.Data) != nil {
		t.Refuse(overlay.Malformed)
		return
	}
	for head, body, ok := t.segments.Next(); ok; head, body, ok = t.segments.Next() {
		t.one = append(append(t.one[:0], head...), body...)
		t.arrive(now, t.Arrive(now, t.one, false), offload.Task{})
		t.flush(now) // its memory is used again
	}
}

// arrive gives what is in a tunnel to the stations that it is for, in batches. inside says what is left to do for it.
func (t *Overlay) arrive(now clock.Time, a overlay.Arrived, inside offload.Task) {
	if a.Frame == nil {
		return
	}
	inner := frame.In{Data: a.Frame, Raw: true, Task: inside}
	if a.Everybody {
		t.flush(now)
		t.in[0] = inner
		to := setOf(t.Members(a.Subnet))
		t.port.giveAll(now, t.wire, &to, nil, t.in[:1], false)
		return
	}
	x := t.wire.seat(eswitch.Port(a.To), &inner)
	if x == nil {
		t.port.counters.Unclaimed++
		return
	}
	if t.n == len(t.in) || x != t.to {
		t.flush(now)
	}
	t.to, t.in[t.n] = x, inner
	t.n++
}

// flush gives frames to the station that they are for.
func (t *Overlay) flush(now clock.Time) {
	if t.n > 0 {
		t.port.hand(now, t.to, t.in[:t.n], false)
		t.n = 0
	}
}

// Transmit implements Function.
func (t *Overlay) Transmit(_ clock.Time, _ uint8, out []frame.Out) (n int) {
	for n < len(out) {
		b := t.Next()
		if len(b) < eth.EthernetLen {
			break
		}
		o := &out[n]
		o.Reset(&t.route)
		k := min(len(b), len(o.Head)-frame.HeadRoom)
		o.HeadEnd = frame.HeadRoom + uint16(copy(o.Head[frame.HeadRoom:], b[:k]))
		o.Payload = b[k:]
		n++
	}
	return n
}

// Pending implements Function.
func (t *Overlay) Pending() uint8 {
	if t.Waiting() {
		return 1
	}
	return 0
}
