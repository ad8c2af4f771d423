package port

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// mostTurned is how many frames between stations wait for the next turn of the port; more are lost, as in a switch.
const mostTurned = 512

// turnedBatch is how many of them are delivered together.
const turnedBatch = 32

// turned are frames from one station to another on the same wire, which the network would not bring back. One that its function
// has in one piece stays there: it is delivered before the function is asked for more packets, which gives it its memory back. The
// others are joined in buffers, which are reused, and wait for the port's next turn.
type turned struct {
	frames []insideFrame
	n      int
	given  int // of frames, that were delivered and may still be in use
	lent   int // of frames, up to the last one that is its function's
	in     [turnedBatch]frame.In
}

type insideFrame struct {
	data   []byte // the frame: the function's, or in memory
	memory []byte
	task   offload.Task
	wire   *Wire
	from   *Station
	route  *frame.Route // of a Steered station's frame to a group

	switched bool // the embedded switch has said where it goes
	to       eswitch.Set
	only     eswitch.Port // of to, if it is one; Wire: it is not
}

func (t *turned) waiting() bool { return t.n > t.given }

// hurry reports whether frames wait that are their functions'.
func (t *turned) hurry() bool { return t.lent > t.given }

// reuse is called when nobody uses delivered frames any more.
func (t *turned) reuse() {
	if t.given > 0 && t.given == t.n {
		for i := range t.frames[:t.lent] {
			t.frames[i].data = nil
		}
		t.n, t.given, t.lent = 0, 0, 0
	}
}

func (t *turned) add(w *Wire, from *Station, o *frame.Out) bool {
	if t.n == mostTurned {
		return false
	}
	if t.n == len(t.frames) {
		t.frames = append(t.frames, insideFrame{})
	}
	f := &t.frames[t.n]
	t.n++
	f.wire, f.from, f.task, f.route, f.switched = w, from, o.Task, o.Route, false
	if o.Staged != nil {
		f.data, t.lent = o.Staged, t.n
		return true
	}
	f.memory = append(f.memory[:0], o.Head[o.HeadStart:o.HeadEnd]...)
	f.memory = append(f.memory, o.Payload...)
	f.memory = append(f.memory, o.Tail[:o.TailLen]...)
	f.data = f.memory
	return true
}

// turn keeps those of a station's packets, sealed for a wire, that are for other stations there. Those for one of them
// alone do not leave.
func (p *Port) turn(now clock.Time, w *Wire, from *Station, out []frame.Out) {
	for i := 0; i < len(out); i++ {
		if n := p.straight(now, w, from, out[i:]); n > 0 {
			i += n - 1
			continue
		}
		o := &out[i]
		if !w.inside(from, o) {
			continue
		}
		if !p.turned.add(w, from, o) {
			p.counters.TurnedLost++
			continue
		}
		p.counters.Turned++
	}
}

// turnGroups keeps those of a station's packets on an InfiniBand wire that are for groups to which it or another one there is
// attached. They leave, too.
func (p *Port) turnGroups(w *Wire, from *Station, out []frame.Out) {
	if from.Attached == nil {
		return
	}
	for i := range out {
		r := out[i].Route
		if r == nil || r.IB.DLID < ib.LIDFirstMulticast || !w.attached(r.Dst) {
			continue
		}
		if !p.turned.add(w, from, &out[i]) {
			p.counters.TurnedLost++
			continue
		}
		p.counters.Turned++
	}
}

// inside reports whether a frame is for another station on the wire, and marks it if it is for nobody else.
func (w *Wire) inside(from *Station, o *frame.Out) bool {
	if int(o.HeadStart)+eth.EthernetLen > int(o.HeadEnd) || isControl(o.Head[o.HeadStart:o.HeadEnd]) {
		return false
	}
	dst := eth.MAC(o.Head[o.HeadStart:])
	if dst[0]&group != 0 {
		return true
	}
	o.Inside = w.other(from, dst) || from.Kind != RDMA && w.named(o.Head[o.HeadStart:o.HeadEnd])
	return o.Inside
}

// deliverTurned delivers the frames between stations, those that follow each other to one of them together.
func (p *Port) deliverTurned(now clock.Time) {
	t := &p.turned
	for end := t.n; t.given < end; {
		f := &t.frames[t.given]
		t.in[0] = frame.In{Data: f.data, Raw: true, Task: f.task}
		t.given++
		if f.wire.InfiniBand {
			if g, ok := groupOf(&t.in[0]); ok {
				p.giveGroup(now, f.wire, g, &t.in[0], true)
			}
			continue
		}
		if f.switched {
			p.deliverSwitched(now, f, end)
			continue
		}
		if multicast(&t.in[0]) {
			if f.from.Kind == Steered { // it may take what it sends to groups itself
				f.from.steerer.SentBy(f.route)
				p.giveAll(now, f.wire, nil, nil, t.in[:1], true)
				f.from.steerer.SentBy(nil)
				continue
			}
			p.giveAll(now, f.wire, nil, f.from, t.in[:1], true)
			continue
		}
		x, n := f.wire.classify(&t.in[0]), 1
		for ; n < len(t.in) && t.given < end && t.frames[t.given].wire == f.wire && !t.frames[t.given].switched; n++ {
			next := &t.frames[t.given]
			t.in[n] = frame.In{Data: next.data, Raw: true, Task: next.task}
			if multicast(&t.in[n]) || f.wire.classify(&t.in[n]) != x {
				break
			}
			t.given++
		}
		if x == nil {
			p.counters.Unclaimed += uint64(n)
			continue
		}
		x.station.Carried.received(t.in[:n], true)
		p.give(now, x, t.in[:n])
	}
}

// multicast reports whether a frame is for a group, or everybody.
func multicast(in *frame.In) bool { return in.Raw && len(in.Data) > 0 && in.Data[0]&group != 0 }
