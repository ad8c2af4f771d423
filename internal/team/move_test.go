package team

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// roads are two teams of type 3AD whose lines take their time, each another.
type roads struct {
	t       testing.TB
	now     clock.Time
	ends    [2]*Team
	delay   []time.Duration
	onWay   [2][][]onRoad // to an end, by line, in order
	deaf    int           // the line that loses LACP; -1: none
	unheard bool          // markers are lost
	markers int           // that the first end has sent
	flows   map[uint16]*flowOf
}

// onRoad is a frame on its way.
type onRoad struct {
	at    clock.Time
	frame []byte
}

// flowOf is what a flow has sent and what has arrived of it.
type flowOf struct {
	sent, arrived uint32
	overtaken     int
	by            int // the member that it left by last
}

func newRoads(t testing.TB, delay ...time.Duration) *roads {
	c := newCouple(t, len(delay))
	r := &roads{t: t, ends: c.ends, delay: delay, deaf: -1, flows: map[uint16]*flowOf{}}
	for e := range r.onWay {
		r.onWay[e] = make([][]onRoad, len(delay))
	}
	return r
}

// put sends a frame of an end by a line.
func (r *roads) put(e, i int, f []byte) {
	slow := eth.MAC(f) == lacp.SlowProtocols
	isMarker := slow && lacp.Subtype(f[eth.EthernetLen]) == lacp.SubtypeMarker
	if isMarker && e == 0 {
		r.markers++
	}
	if slow && i == r.deaf || isMarker && r.unheard {
		return
	}
	r.onWay[1-e][i] = append(r.onWay[1-e][i], onRoad{r.now.Add(r.delay[i]), f})
}

// send sends the next frame of a flow from the first end to the other.
func (r *roads) send(flow uint16) {
	x := r.flows[flow]
	if x == nil {
		x = &flowOf{}
		r.flows[flow] = x
	}
	f := sentFrom(flow)
	x.sent++
	binary.BigEndian.PutUint32(f[len(f)-4:], x.sent)
	if x.by = r.ends[0].Send(r.now, f, len(f)); x.by >= 0 {
		r.put(0, x.by, f)
	}
}

// arrive takes a frame that has come to the other end.
func (r *roads) arrive(f []byte) {
	const port = eth.EthernetLen + eth.IPv4Len
	x, n := r.flows[binary.BigEndian.Uint16(f[port:])], binary.BigEndian.Uint32(f[len(f)-4:])
	if n < x.arrived {
		x.overtaken++
	}
	x.arrived = max(x.arrived, n)
}

// run lets time go by, with what is due each moment.
func (r *roads) run(d time.Duration, each func()) {
	const step = time.Millisecond
	for end := r.now.Add(d); r.now < end; r.now = r.now.Add(step) {
		for e := range r.ends {
			for i := range r.onWay[e] {
				for q := r.onWay[e][i]; len(q) > 0 && q[0].at <= r.now; q = r.onWay[e][i] {
					r.onWay[e][i] = q[1:]
					if r.ends[e].Receive(r.now, i, q[0].frame) && e == 1 {
						r.arrive(q[0].frame)
					}
				}
			}
			r.ends[e].Advance(r.now)
			for i, f := r.ends[e].Frame(r.now); f != nil; i, f = r.ends[e].Frame(r.now) {
				r.put(e, i, f)
			}
		}
		if each != nil {
			each()
		}
	}
}

// overtaken is how many frames have come after later ones of their flow.
func (r *roads) overtaken() (n int) {
	for _, x := range r.flows {
		n += x.overtaken
	}
	return n
}

// withoutOne brings all lines up, takes one away, and lets flows send by the others.
func (r *roads) withoutOne(line int) {
	r.run(8*time.Second, nil)
	r.deaf = line
	r.run(8*time.Second, nil)
	if r.ends[0].Status(line).Role != Backup {
		r.t.Fatalf("member %d sends without a partner", line)
	}
}

// TestMove_InOrder: when a member comes back to a team of type 3AD, flows that pause now and then move to it, and none overtakes itself,
// however much faster its way is (IEEE 802.1AX-2014, 6.5).
func TestMove_InOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ms := func(label string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(rt, label)) * time.Millisecond
		}
		const fast = 0
		r := newRoads(t, ms("fast", 0, 2), ms("slow", 20, 60), ms("slower", 20, 60))
		r.withoutOne(fast)
		burst, period := ms("burst", 20, 200), ms("pause", 400, 700)
		period += burst
		flows := apart(rapid.IntRange(8, 40).Draw(rt, "flows"))
		each := func() {
			for k, flow := range flows {
				at := (time.Duration(r.now) + time.Duration(k)*37*time.Millisecond) % period
				if at < burst && at%(3*time.Millisecond) == 0 {
					r.send(flow)
				}
			}
		}
		r.run(2*period, each)
		r.deaf = -1
		r.run(10*time.Second, each)
		if n := r.overtaken(); n > 0 {
			rt.Fatalf("%d frames were overtaken", n)
		}
		moved := 0
		for flow, x := range r.flows {
			if want := int(r.ends[0].highest(flowNumber(flow))); x.by != want {
				rt.Errorf("flow %d leaves by %d in the end, want %d", flow, x.by, want)
			}
			if x.by == fast {
				moved++
			}
		}
		if moved > 0 && (r.markers == 0 || r.markers > 2*4*10) {
			rt.Errorf("%d flows have moved with %d markers, want some, and 4 a second of each member at most", moved, r.markers)
		}
	})
}

// apart returns flows of which no two share a bucket: these pause together, or the bucket does not.
func apart(n int) (list []uint16) {
	taken := map[uint32]bool{}
	for flow := uint16(40000); len(list) < n; flow++ {
		if b := flowNumber(flow); !taken[b] {
			taken[b] = true
			list = append(list, flow)
		}
	}
	return list
}

// flowNumber is the bucket of a flow.
func flowNumber(port uint16) uint32 { return flow(sentFrom(port), L4) % buckets }

// TestMove_InTheEnd: flows that never pause keep their members while something of them is on the way, but not for ever; and so do those
// whose partner answers no marker. What was silent for long moves at once.
func TestMove_InTheEnd(t *testing.T) {
	for what, c := range map[string]struct {
		unheard bool
		every   time.Duration
		longest time.Duration // after the member has come back
		waits   bool
	}{
		"without a pause": {false, time.Millisecond, mostMoving, true},
		"no answer":       {true, 300 * time.Millisecond, mostMoving, true},
		"silent":          {false, 16 * time.Second, 0, false},
	} {
		r := newRoads(t, 0, 5*time.Millisecond, 5*time.Millisecond)
		r.withoutOne(0)
		r.unheard = c.unheard
		each := func() {
			for k := range 20 {
				if time.Duration(r.now)%c.every == 0 {
					r.send(uint16(40000 + k))
				}
			}
		}
		r.run(11*time.Second, each)
		r.deaf = -1
		for r.ends[0].Status(0).Role == Backup {
			r.run(time.Millisecond, each)
		}
		left := func() (n int) {
			for k := range uint16(20) {
				b := flowNumber(40000 + k)
				if r.ends[0].spread.to[b] != r.ends[0].highest(b) {
					n++
				}
			}
			return n
		}
		if n := left(); n > 0 != c.waits {
			t.Errorf("%s: %d flows wait, want some: %v", what, n, c.waits)
		}
		r.run(c.longest+10*time.Millisecond, each)
		if n := left(); n > 0 {
			t.Errorf("%s: %d flows have not moved in the end", what, n)
		}
	}
}
