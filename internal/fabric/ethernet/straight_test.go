package ethernet

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestSwitch_RoomWithoutATurn: the room of a frame behind which nothing waits is free again when it has left, although the switch wants no
// turn for that.
func TestSwitch_RoomWithoutATurn(t *testing.T) {
	r := newRig(t, Config{}, PortConfig{Rate: 1e9}, PortConfig{Rate: 1e9})
	r.receive(0, packet{from: 1, to: 2, length: 976})
	const leaves = 8 * microsecond // with 24 bytes around it
	for _, c := range []struct {
		at   clock.Time
		used int
	}{{0, 976}, {leaves - 1, 976}, {leaves, 0}} {
		if u := r.sw.Usage(c.at); u.Used != c.used {
			t.Errorf("%d bytes are used at %d ns, want %d", u.Used, c.at, c.used)
		}
	}
	if at := r.sw.Deadline(); at != clock.Never {
		t.Errorf("the switch wants a turn at %d ns, want none", at)
	}
	r.idle()
}

// TestSwitch_RoomThatAPauseWaitsFor: a group that reaches its threshold while frames of it are on their way out has the other end go on
// when enough of these have left, not later.
func TestSwitch_RoomThatAPauseWaitsFor(t *testing.T) {
	slow := PortConfig{Rate: 1e9, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
	slow.Groups[3].Xoff, slow.Groups[3].Xon = 1500, 100
	r := newRig(t, Config{}, slow, slow, slow)
	for i := range 3 {
		r.sw.Port(i).relay.Decide(0, stationMAC(0xff), stationMAC(byte(i+1)), 1)
	}
	// One frame leaves by each of two ports, and both are of the group of the third: the first to leave is enough.
	r.receive(0, packet{from: 1, to: 2, class: 3 << 5, length: 976})
	r.receive(0, packet{from: 1, to: 3, class: 3 << 5, length: 1400})
	p := r.sw.Port(0)
	if p.xoff != 1<<3 {
		t.Fatalf("groups %#x pause, want priority 3", p.xoff)
	}
	const leaves = 8 * microsecond
	r.drive(leaves - 1)
	if p.xoff == 0 {
		t.Error("the other end may go on before a frame has left")
	}
	r.drive(leaves)
	if p.xoff != 0 {
		t.Error("the other end may not go on although a frame has left")
	}
	r.drive(leaves + clock.Time(time.Millisecond))
	r.idle()
}

// TestSwitch_RoomWhereItMatters: what has left is not counted where the free buffer decides, whether a frame has a place in a queue or
// whether the other end may go on, although its port has not sent since.
func TestSwitch_RoomWhereItMatters(t *testing.T) {
	const share, leaves = 1. / 64, 12 * microsecond // of 1,400 bytes
	for _, waits := range []bool{false, true} {
		port := PortConfig{Rate: 1e9, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
		port.Groups[3].Alpha, port.Groups[3].Xon, port.Queues[1].Alpha = share, 1, share
		r := newRig(t, Config{Buffer: 64 << 10}, port, port, port)
		for i := range 3 {
			r.sw.Port(i).relay.Decide(0, stationMAC(0xff), stationMAC(byte(i+1)), 1)
		}
		send := func(at clock.Time, from, to, priority byte, length int) {
			r.drive(at)
			r.receive(int(from-1), packet{from: from, to: to, class: priority << 5, length: length})
		}
		size := r.sw.Usage(0).Size
		allowed := thresholdOf(0, share).of
		if waits {
			y := 1 // bytes of the group that waits, of which so many are just few enough
			for ; y+1 < allowed(size-y-1); y++ {
			}
			send(0, 1, 2, 2, 1400)
			send(leaves/2, 1, 3, 3, 1400)
			send(leaves/2, 1, 3, 3, y)
			r.drive(2 * leaves)
			if p := r.sw.Port(0); p.xoff != 0 || p.classes[3].group.shared != y {
				t.Errorf("groups %#x pause, with %d bytes, want none with %d", p.xoff, p.classes[3].group.shared, y)
			}
			continue
		}
		send(0, 1, 2, 2, 1400)
		send(0, 2, 1, 2, 1400)
		send(2*leaves, 1, 2, 2, 1400)
		send(4*leaves, 1, 3, 1, 500)
		send(4*leaves, 1, 3, 1, allowed(size-500))
		if d := r.sw.Port(2).classes[1].events.queueDrops; d != 0 {
			t.Errorf("%d frames were dropped though they had room", d)
		}
	}
}

// TestSwitch_Straight: frames that go straight through a switch leave at the same times and are counted as those that have a place in a
// queue for no time, whatever comes before and after them; and the room of what has left is free as soon as that makes a difference.
func TestSwitch_Straight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		port := PortConfig{Rate: 10e9, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
		port.Groups[3].Xoff, port.Groups[3].Xon = 4000, 3000
		port.Queues[3].ECN = ECN{Kmin: 500, Kmax: 5000, Pmax: 1, Leaving: rapid.Bool().Draw(rt, "leaving")}
		port.Queues[1].Strict = rapid.Bool().Draw(rt, "strict")
		straight, queued := newRig(t, Config{}, port, port, port), newRig(t, Config{}, port, port, port)
		queued.prompt = true
		went := 0
		for i := range rapid.IntRange(1, 40).Draw(rt, "frames") {
			x := packet{from: byte(rapid.IntRange(1, 3).Draw(rt, "from")), to: byte(rapid.IntRange(1, 3).Draw(rt, "to")), serial: uint32(i),
				class:  uint8(rapid.SampledFrom([]int{1, 3}).Draw(rt, "priority"))<<5 | 2,
				length: rapid.IntRange(60, 1500).Draw(rt, "length")}
			at := straight.now + clock.Time(rapid.IntRange(0, 2000).Draw(rt, "later"))
			for _, r := range []*rig{straight, queued} {
				r.drive(at)
				if r.sw.apart = r == straight && r.sw.Deadline() > at; r.sw.apart {
					went++
				}
				r.sw.Receive(at, int(x.from-1), x.put(&r.store))
				r.sw.apart = false
				r.drive(at)
			}
			if a, b := straight.sw.Usage(at), queued.sw.Usage(at); a != b {
				rt.Fatalf("%+v is used, want %+v", a, b)
			}
		}
		const end = clock.Time(time.Second)
		straight.drive(end)
		queued.drive(end)
		for i := range straight.sw.ports {
			a, b := straight.sw.Port(i), queued.sw.Port(i)
			if x, y := a.Counters(end), b.Counters(end); x != y {
				rt.Fatalf("port %d: counters %+v, want %+v", i, x, y)
			}
			if a.scheduler != b.scheduler {
				rt.Fatalf("port %d: scheduler %+v, want %+v", i, a.scheduler, b.scheduler)
			}
			if x, y := straight.times(i), queued.times(i); !slices.Equal(x, y) {
				rt.Fatalf("port %d: frames arrive at %v, want %v", i, x, y)
			}
			if x, y := straight.left(i), queued.left(i); !slices.EqualFunc(x, y, bytes.Equal) {
				rt.Fatalf("port %d: frames % x, want % x", i, x, y)
			}
		}
		if went == 0 {
			rt.Fatal("nothing went straight")
		}
		straight.idle()
	})
}

// times returns when the frames arrive that have left by a port since left was called last.
func (r *rig) times(port int) (all []clock.Time) {
	for _, d := range r.out {
		if d.Port == port {
			all = append(all, d.At)
		}
	}
	return all
}
