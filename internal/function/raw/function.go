package raw

import (
	"cmp"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/eth"
)

// group is the bit of a MAC that is set in addresses of groups.
const group = 1

// everyBit is the mask of a rule that names a MAC.
var everyBit = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Flow is a flow of a queue pair.
type Flow struct {
	Rule     command.CreateFlow // as checked by Check
	QP       *transport.QP
	Spread   *Spread // in place of QP; nil: there is none
	Counters command.FlowCounters
	terms    []term // of Rule
}

// Counters count what a Function has done with frames.
type Counters struct {
	Steered   uint64 // frames that a rule or a default took
	Leftover  uint64 // frames that came here and no flow took
	Malformed uint64 // frames without a whole header, with a wrong FCS, or large ones that cannot be cut
}

// Function steers frames to raw packet queue pairs.
type Function struct {
	engine   *transport.Engine
	rules    []*Flow // normal ones, by priority
	defaults []*Flow
	sniffers []*Flow
	counters Counters

	// seen is what the last frame had, and found the index of its first rule: frames come in runs.
	seen   fields
	found  int
	looked bool // seen and found are of the present rules

	by   *frame.Route // of the frames that are received now, if they are of a queue pair here
	late late

	guard *Guard // what is sent has to pass it; nil: all may

	segments offload.Segments
	finished []byte // a frame whose checksums, or segments, are made here
}

// New returns a function without flows, for the raw packet queue pairs of an engine.
func New(e *transport.Engine) *Function { return &Function{engine: e} }

// Counters returns the function's counters, which keep counting.
func (f *Function) Counters() *Counters { return &f.counters }

// Add adds a flow.
func (f *Function) Add(o *Flow) {
	f.looked = false
	switch o.Rule.Type {
	case command.FlowNormal:
		o.terms = terms(&o.Rule)
		f.rules = append(f.rules, o) // behind those of its priority
		slices.SortStableFunc(f.rules, func(a, b *Flow) int { return cmp.Compare(a.Rule.Priority, b.Rule.Priority) })
	case command.FlowSniffer:
		f.sniffers = append(f.sniffers, o)
	default:
		f.defaults = append(f.defaults, o)
	}
}

// Remove removes a flow.
func (f *Function) Remove(o *Flow) {
	f.looked = false
	f.late.forget(o)
	for _, list := range [...]*[]*Flow{&f.rules, &f.defaults, &f.sniffers} {
		if i := slices.Index(*list, o); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
}

// Leave forgets a queue pair that ends, which no flow has any more.
func (f *Function) Leave(q *transport.QP) { f.late.leave(q) }

// Steers implements port.Steerer.
func (f *Function) Steers(head []byte) bool {
	var x fields
	return len(f.rules) > 0 && x.parse(head) && f.first(&x) < len(f.rules)
}

// Names implements port.Steerer.
func (f *Function) Names(head []byte) bool {
	var x fields
	if len(f.rules) == 0 || !x.parse(head) {
		return false
	}
	for _, o := range f.rules {
		if o.Rule.Mask.Dst == everyBit && x.match(o.terms) {
			return true
		}
	}
	return false
}

// first returns the index of the first rule that a frame matches.
func (f *Function) first(x *fields) int {
	if f.looked && x.same(&f.seen) {
		return f.found
	}
	f.seen, f.found, f.looked = *x, len(f.rules), true
	for i, o := range f.rules {
		if x.match(o.terms) {
			f.found = i
			break
		}
	}
	return f.found
}

// TakesRest implements port.Steerer.
func (f *Function) TakesRest() bool {
	return slices.ContainsFunc(f.defaults, func(o *Flow) bool { return o.Rule.Type == command.FlowAllDefault })
}

// Sniffs implements port.Steerer.
func (f *Function) Sniffs() bool { return len(f.sniffers) > 0 }

// Sniff implements port.Steerer.
func (f *Function) Sniff(now clock.Time, b []byte) {
	var x fields
	good := x.parse(b) && x.good(0, b)
	for _, o := range f.sniffers {
		f.give(now, &x, o, b, nil, good)
	}
	f.engine.FlushRaw()
}

// Take implements port.Waiter: a frame waits while a queue pair that is to get it has no receive. One that stands for several
// frames waits for one.
func (f *Function) Take(now clock.Time, in []frame.In) (n int, number uint32) {
	for ; n < len(in); n++ {
		if q := f.starving(&in[n]); q != nil {
			number = q.Number()
			break
		}
		f.take(now, &in[n])
	}
	f.engine.FlushRaw()
	return n, number
}

// starving returns a queue pair that is to get a frame and has no receive; nil: there is none.
func (f *Function) starving(in *frame.In) *transport.QP {
	var x fields
	if in.BadFCS || len(in.Payload) > 0 || !x.parse(in.Data) {
		return nil
	}
	starves := func(o *Flow) *transport.QP {
		q := o.QP
		if o.Spread != nil {
			q, _ = o.Spread.choose(&x)
		}
		if q.Starves() {
			return q
		}
		return nil
	}
	first := f.first(&x)
	for i := first; i < len(f.rules) && f.rules[i].Rule.Priority == f.rules[first].Rule.Priority; i++ {
		if i == first || x.match(f.rules[i].terms) {
			if q := starves(f.rules[i]); q != nil {
				return q
			}
		}
	}
	if first < len(f.rules) {
		return nil
	}
	for _, o := range f.defaults {
		if o.Rule.Type == command.FlowAllDefault || x.Dst[0]&group != 0 {
			if q := starves(o); q != nil {
				return q
			}
		}
	}
	return nil
}

// Receive implements port.Function.
func (f *Function) Receive(now clock.Time, in []frame.In) {
	for i := range in {
		f.take(now, &in[i])
	}
	f.engine.FlushRaw()
}

func (f *Function) take(now clock.Time, in *frame.In) {
	var x fields
	b := in.Data
	if in.BadFCS || len(in.Payload) > 0 || !x.parse(b) {
		f.counters.Malformed++
		return
	}
	if in.Task == (offload.Task{}) {
		f.steer(now, &x, b, 0)
		return
	}
	var h eth.Headers
	h.Parse(b)
	if in.Task.Kind != offload.Whole {
		f.cut(now, &x, &h, in)
		return
	}
	if left := in.Task.Sums & (offload.MakeIP | offload.MakeTransport); left != 0 {
		f.finished = append(f.finished[:0], b...) // others look at the frame, too
		b = f.finished
		offload.Make(left, &h, b)
	}
	f.steer(now, &x, b, in.Task.Sums)
}

// cut gives out a large frame of the system as the frames that it stands for.
func (f *Function) cut(now clock.Time, x *fields, h *eth.Headers, in *frame.In) {
	if f.segments.BeginFrame(in.Task, h, in.Data) != nil {
		f.counters.Malformed++
		return
	}
	for head, body, ok := f.segments.Next(); ok; head, body, ok = f.segments.Next() {
		f.finished = append(append(f.finished[:0], head...), body...)
		f.steer(now, x, f.finished, 0)
	}
}

// Turn implements port.Steerer.
func (f *Function) Turn(now clock.Time, out []frame.Out) (n int) {
	if len(f.rules) == 0 {
		return 0
	}
	var x fields
	for ; n < len(out); n++ {
		o := &out[n]
		head := o.Head[o.HeadStart:o.HeadEnd]
		if o.TailLen > 0 || !x.parse(head) {
			break
		}
		i := f.first(&x)
		if i == len(f.rules) {
			break
		}
		rest, good := o.Payload, false
		if x.packet() { // its program may write to the rest while it is summed
			f.finished = append(append(f.finished[:0], head...), rest...)
			head, rest = f.finished, nil
			good = x.good(0, head)
		}
		f.deal(now, &x, i, head, rest, good)
	}
	if n > 0 {
		f.engine.FlushRaw()
	}
	return n
}

// steer gives a frame, of whose checksums so much is known, to the queue pairs of rules, else to those of defaults.
func (f *Function) steer(now clock.Time, x *fields, b []byte, known offload.Sums) {
	if i := f.first(x); i < len(f.rules) {
		f.deal(now, x, i, b, nil, x.good(known, b))
		return
	}
	if len(f.defaults) == 0 {
		f.counters.Leftover++
		return
	}
	good := x.good(known, b)
	taken := false
	for _, o := range f.defaults {
		if o.Rule.Type == command.FlowAllDefault || x.Dst[0]&group != 0 {
			taken = true
			f.give(now, x, o, b, nil, good)
		}
	}
	if taken {
		f.counters.Steered++
	} else {
		f.counters.Leftover++
	}
}

// deal gives a frame, which may be in two parts, to the queue pairs of all rules that match it at the priority of rule i, the first.
func (f *Function) deal(now clock.Time, x *fields, i int, head, rest []byte, good bool) {
	f.counters.Steered++
	f.give(now, x, f.rules[i], head, rest, good)
	for priority := f.rules[i].Rule.Priority; i+1 < len(f.rules) && f.rules[i+1].Rule.Priority == priority; i++ {
		if o := f.rules[i+1]; x.match(o.terms) {
			f.give(now, x, o, head, rest, good)
		}
	}
}

// give gives a frame, whose checksums are good or not, to the queue pair of a flow, or to one of those that its hash chooses.
func (f *Function) give(now clock.Time, x *fields, o *Flow, head, rest []byte, good bool) {
	q, a := o.QP, transport.Arrival{Good: good}
	if o.Spread != nil {
		q, a.Hash = o.Spread.choose(x)
	}
	if f.by != nil && q.Sent(f.by) {
		return
	}
	if q.DelaysDrop() && (q.Starves() || f.late.waits(q)) && f.late.add(now, q, o, head, rest, a) {
		return
	}
	f.hand(now, q, o, head, rest, a)
}

// hand gives a frame of a flow to a queue pair.
func (f *Function) hand(now clock.Time, q *transport.QP, o *Flow, head, rest []byte, a transport.Arrival) {
	if !f.engine.ReceiveRaw(now, q, head, rest, a) {
		o.Counters.Lost++
		return
	}
	o.Counters.Frames++
	o.Counters.Bytes += uint64(len(head) + len(rest))
}

// SentBy implements port.Steerer.
func (f *Function) SentBy(r *frame.Route) { f.by = r }

// Transmit implements port.Function.
func (f *Function) Transmit(now clock.Time, priority uint8, out []frame.Out) int {
	n := f.engine.TransmitRaw(now, priority, out)
	if f.guard != nil {
		n = f.guard.keep(out[:n]) // none may be left: a turn is not to be longer for whoever sends what is dropped
	}
	return n
}

// Pending implements port.Function.
func (f *Function) Pending() uint8 { return f.engine.RawPending() }

// Advance implements port.Function.
func (f *Function) Advance(now clock.Time) {
	if f.late.due() > now {
		return
	}
	f.late.drain(now, f.hand)
	f.engine.FlushRaw()
}

// Deadline implements port.Function.
func (f *Function) Deadline() clock.Time { return f.late.due() }
