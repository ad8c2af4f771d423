package ethernet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
)

// shares offers frames of some lengths at priorities that are backlogged all the time, and returns how many bytes of each leave.
func shares(t *testing.T, queues [8]Queue, lengths [8]int, sent clock.Time) (bytes [8]float64) {
	out := PortConfig{Rate: 10e9, Queues: queues}
	for i := range out.Queues {
		out.Queues[i].Most = 100_000
		out.Queues[i].Alpha = 0
	}
	r := newRig(t, Config{}, PortConfig{Trust: TrustDSCP}, out)
	for now := clock.Time(0); now < sent; now += 5 * microsecond {
		for i := range uint8(8) {
			for lengths[i] > 0 {
				before := r.sw.Port(1).Counters(now).Priority[i].QueueDrops
				r.sw.Receive(now, 0, packet{from: 1, to: 2, class: i << 5, length: lengths[i]}.put(&r.store))
				if r.sw.Port(1).Counters(now).Priority[i].QueueDrops > before {
					break
				}
			}
		}
		r.drive(now)
		r.left(1)
	}
	c := r.sw.Port(1).Counters(r.now)
	for i := range bytes {
		bytes[i] = float64(c.Priority[i].OutBytes)
	}
	r.drive(clock.Never - 1)
	r.idle()
	return bytes
}

// TestPort_Shares: with every class backlogged, bytes are shared by the weights, within 2 %, whatever the lengths of frames (ETS,
// IEEE 802.1Q, 37.3).
func TestPort_Shares(t *testing.T) {
	for _, c := range []struct {
		weights [8]uint8
		lengths [8]int
	}{
		{[8]uint8{60, 30, 10}, [8]int{1000, 1000, 1000}},
		{[8]uint8{60, 30, 10}, [8]int{64, 9000, 1500}},
		{[8]uint8{1, 1, 1, 1, 1, 1, 1, 1}, [8]int{64, 128, 256, 512, 1024, 2048, 4096, 9000}},
		{[8]uint8{50, 0, 0, 25, 0, 0, 20, 5}, [8]int{0: 1500, 3: 1000, 6: 64, 7: 9000}},
	} {
		var queues [8]Queue
		sum := 0.
		for i, w := range c.weights {
			queues[i].Weight = w
			sum += float64(w)
		}
		got := shares(t, queues, c.lengths, 20_000*microsecond)
		all := 0.
		for _, n := range got {
			all += n
		}
		for i, w := range c.weights {
			if want := float64(w) / sum; math.Abs(got[i]/all-want) > 0.02*want {
				t.Errorf("weights %v, lengths %v: priority %d has %.4f, want %.4f", c.weights, c.lengths, i, got[i]/all, want)
			}
		}
	}
}

// TestPort_Strict: a strict queue takes all while it has something, the higher of two first; the others share the rest.
func TestPort_Strict(t *testing.T) {
	queues := [8]Queue{0: {Weight: 3}, 1: {Weight: 1}, 5: {Strict: true}, 6: {Strict: true}}
	got := shares(t, queues, [8]int{0: 1000, 1: 1000, 5: 1000, 6: 1000}, 1000*microsecond)
	if got[6] == 0 || got[0]+got[1]+got[5] != 0 {
		t.Errorf("a strict queue is backlogged: %v", got)
	}
	got = shares(t, queues, [8]int{0: 1000, 1: 1000}, 1000*microsecond)
	if r := got[0] / got[1]; r < 2.94 || r > 3.06 {
		t.Errorf("strict queues are empty: %v", got)
	}
}

// TestScheduler_NoneStarves: whatever weights and lengths queues have, each that is not strict sends in proportion to its weight, and
// none waits longer than the others may take for a frame and their share.
func TestScheduler_NoneStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scheduler{}
		open, weights := uint8(0), 0
		var lengths, sent [8]int
		for i := range 8 {
			w := rapid.IntRange(0, 100).Draw(t, "weight")
			s.quantum[i], lengths[i] = quantum*max(w, 1), rapid.IntRange(64, 9000).Draw(t, "length")
			if rapid.Bool().Draw(t, "open") {
				open |= 1 << i
				weights += max(w, 1)
			}
		}
		if open == 0 {
			t.Skip("nothing waits")
		}
		all := 0
		for all < 40*weights*quantum {
			i := s.choose(open)
			s.sent(i, lengths[i])
			sent[i] += lengths[i]
			all += lengths[i]
		}
		for i, n := range sent {
			want := all / weights * (s.quantum[i] / quantum)
			near := s.quantum[i] + 9000
			waits, alone := open>>i&1 != 0, open&(open-1) == 0
			if !waits && n > 0 || waits && !alone && (n < want-near || n > want+near) {
				t.Fatalf("queue %d of %08b has sent %d bytes, want about %d", i, open, n, want)
			}
		}
	})
}

// TestScheduler_Alone: what a queue sends while no other has anything is not held against it later.
func TestScheduler_Alone(t *testing.T) {
	s := scheduler{quantum: [8]int{quantum, quantum}}
	for range 1000 {
		s.sent(s.choose(1), 1500)
	}
	var n [2]int
	for range 1000 {
		i := s.choose(3)
		s.sent(i, 1500)
		n[i]++
	}
	if n[0] < 495 || n[0] > 505 {
		t.Errorf("of 1000 frames %v are of each", n)
	}
}

// TestQueue_Congested: packets that find up to Kmin bytes are not marked, those that find more than Kmax all are, and between them
// the probability grows evenly to Pmax. Only packets whose ends take part are marked, and only IP packets.
func TestQueue_Congested(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)).Uint64
	for _, e := range []ECN{{Kmin: 5000, Kmax: 200_000, Pmax: 0.01}, {Kmin: 160_000, Kmax: 640_000, Pmax: 0.2}, {Kmax: 1 << 20, Pmax: 1},
		{Kmin: 5000, Kmax: 5000, Pmax: 0.5}, {Kmax: 100}} {
		var q queue
		q.set(&Queue{ECN: e})
		for _, at := range []float64{0, 0.25, 0.5, 1} {
			const n = 200_000
			bytes := e.Kmin + int(at*float64(e.Kmax-e.Kmin))
			q.bytes = int32(bytes)
			want, marked := 0., 0
			if e.Kmax > e.Kmin {
				want = e.Pmax * float64(bytes-e.Kmin) / float64(e.Kmax-e.Kmin)
			}
			for range n {
				if q.congested(random) {
					marked++
				}
			}
			if got := float64(marked) / n; math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/n)+1e-9 {
				t.Errorf("%+v with %d bytes: %.5f are marked, want %.5f", e, q.bytes, got, want)
			}
		}
		if q.bytes = int32(e.Kmax + 1); !q.congested(random) {
			t.Errorf("%+v with %d bytes: not marked", e, q.bytes)
		}
	}
}

// TestSwitch_Marks: marked packets are ECT(0) and ECT(1) ones, with a checksum that is right again, in the queue that is
// congested.
func TestSwitch_Marks(t *testing.T) {
	out := PortConfig{Rate: 1e9, Queues: [8]Queue{3: {ECN: ECN{Kmin: 3000, Kmax: 3000}}}}
	r := newRig(t, Config{}, PortConfig{Trust: TrustDSCP}, out)
	for i := range uint8(20) {
		r.receive(0, packet{from: 1, to: 2, class: 3<<5 | i&3, length: 1000, serial: uint32(i)})
		r.receive(0, packet{from: 1, to: 2, class: 2<<5 | i&3, length: 1000, serial: uint32(i)})
	}
	r.drive(1000 * microsecond)
	for _, b := range r.left(1) {
		_, n := serial(b)
		was, is, priority := uint8(n&3), b[15]&3, b[15]>>5
		want := was
		if priority == 3 && n >= 5 && was != 0 {
			want = 3
		}
		if is != want {
			t.Errorf("priority %d, packet %d: ECN %d, want %d", priority, n, is, want)
		}
		if sum := checksum(b[14:34]); sum != 0 {
			t.Errorf("packet %d has a checksum that is wrong by %#x", n, sum)
		}
	}
	if c := r.sw.Port(1).Counters(r.now).Priority; c[3].Marked != 8 || c[2].Marked != 0 {
		t.Errorf("%d and %d are counted as marked", c[3].Marked, c[2].Marked)
	}
	r.idle()
}

// checksum returns that of an IP header, 0 if it is right.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// TestSwitch_Trust: a frame has the priority of what is trusted, and the default where that is missing.
func TestSwitch_Trust(t *testing.T) {
	dscp := [64]uint8{46: 5, 8: 2}
	for _, c := range []struct {
		trust        Trust
		pcp, another int // of a tagged packet with priority 4 and DSCP 46, and one without tag with DSCP 8
	}{{TrustPCP, 4, 1}, {TrustDSCP, 5, 2}, {TrustNone, 1, 1}} {
		r := newRig(t, Config{}, PortConfig{Tagged: vlans(7), PVID: 7, Trust: c.trust, DSCP: &dscp, Default: 1}, PortConfig{PVID: 7})
		r.receive(0, packet{from: 1, to: 2, tagged: true, pcp: 4, class: 46 << 2})
		got := r.sw.Port(0).Counters(0)
		if got.Priority[c.pcp].InFrames != 1 {
			t.Errorf("trust %d: a tagged packet: %+v", c.trust, got)
		}
		r.receive(0, packet{from: 1, to: 2, class: 8 << 2})
		before := got.Priority[c.another].InFrames
		if got = r.sw.Port(0).Counters(0); got.Priority[c.another].InFrames != before+1 {
			t.Errorf("trust %d: a packet without tag: %+v", c.trust, got)
		}
		r.drive(microsecond)
		r.idle()
	}
}

// TestSwitch_Thresholds: a lossy queue takes as many bytes as its threshold says, or its share of what is free, alpha/(1+alpha) of
// the whole if it is alone; a lossless group reaches Xoff at its own.
func TestSwitch_Thresholds(t *testing.T) {
	for _, c := range []struct {
		q    Queue
		want float64 // of 1 MB
	}{{Queue{Most: 300_000}, 0.3}, {Queue{Alpha: 0.5}, 1. / 3}, {Queue{}, 0.5}, {Queue{Alpha: 4}, 0.8}} {
		t.Run(fmt.Sprintf("%+v", c.q), func(t *testing.T) {
			r := newRig(t, Config{Buffer: 1e6}, PortConfig{}, PortConfig{Rate: 1e6, Queues: [8]Queue{c.q}})
			for range 1200 {
				r.receive(0, packet{from: 1, to: 2, length: 1000})
			}
			_, got := r.sw.Port(1).Queued(0)
			if math.Abs(float64(got)-c.want*1e6) > 2000 {
				t.Errorf("%d bytes wait, want %v", got, c.want*1e6)
			}
			if n := r.sw.Port(1).Counters(0).Priority[0]; n.QueueDrops == 0 || n.PeakQueue != got {
				t.Errorf("counters %+v", n)
			}
			r.drive(clock.Never - 1)
			r.idle()
		})
	}
	in := lossless(1 << 3)
	in.Groups[3] = Group{Alpha: 1, Headroom: 50_000}
	r := newRig(t, Config{Buffer: 1e6 + 50_000 + 1518}, in, PortConfig{Rate: 1e6})
	for n := 1; n < 700; n++ {
		r.sw.Receive(0, 0, packet{from: 1, to: 2, class: 3 << 5, length: 1000}.put(&r.store))
		if r.sw.Port(0).xoff != 0 {
			if n != 500 {
				t.Errorf("Xoff after %d frames, want 500, half of the buffer", n)
			}
			break
		}
	}
	r.drive(clock.Never - 1)
	r.idle()
}

// TestSwitch_MarksWhatLeaves: with ECN.Leaving those packets are marked behind which more than Kmax bytes wait, and not those that
// have found as many before them.
func TestSwitch_MarksWhatLeaves(t *testing.T) {
	out := PortConfig{Rate: 1e9, Queues: [8]Queue{3: {ECN: ECN{Kmin: 3500, Kmax: 3500, Leaving: true}}}}
	r := newRig(t, Config{}, PortConfig{Trust: TrustDSCP}, out)
	for i := range uint8(20) {
		r.receive(0, packet{from: 1, to: 2, class: 3<<5 | 2, length: 1000, serial: uint32(i)})
	}
	r.drive(1000 * microsecond)
	left := r.left(1)
	for i, b := range left {
		if marked := b[15]&3 == 3; marked != (i > 0 && len(left)-1-i > 3) { // the first leaves at once
			t.Errorf("packet %d of %d is marked: %v", i, len(left), marked)
		}
	}
	if len(left) != 20 {
		t.Errorf("%d packets left", len(left))
	}
}
