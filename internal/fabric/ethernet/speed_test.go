package ethernet

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// busy is a switch whose ports send to each other, port i to port i+1, a frame at a time, with marks, PFC and learning.
type busy struct {
	*rig
	frames [][]byte
}

func newBusy(t testing.TB, ports, length int) *busy {
	cfg := make([]PortConfig, ports)
	for i := range cfg {
		cfg[i] = PortConfig{Rate: 40e9, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
		cfg[i].Queues[3].ECN = ECN{Kmin: 5000, Kmax: 200_000, Pmax: 0.01}
	}
	x := &busy{rig: newRig(t, Config{Buffer: 32 << 20}, cfg...)}
	for i := range ports {
		b := packet{from: byte(i), to: byte((i + 1) % ports), class: 3<<5 | 2, length: length}.bytes()
		x.frames = append(x.frames, append(b, make([]byte, length-len(b))...))
		x.sw.Port(i).relay.Decide(0, stationMAC(0xff), stationMAC(byte(i)), 1)
	}
	return x
}

// step lets a frame arrive at each port, and all leave.
func (x *busy) step(keep int) {
	x.now += 10 * microsecond
	for i, b := range x.frames {
		x.sw.Receive(x.now, i, x.store.Put(b[:keep], len(b)-keep))
	}
	for at := x.sw.Deadline(); at <= x.now+5*microsecond; at = x.sw.Deadline() {
		x.sw.Advance(at)
	}
	var d [64]Departure
	for n := x.sw.Take(d[:]); n > 0; n = x.sw.Take(d[:]) {
		for _, f := range d[:n] {
			x.store.Drop(f.Frame)
		}
	}
}

// TestSwitch_Allocations: forwarding allocates nothing, and neither do pauses.
func TestSwitch_Allocations(t *testing.T) {
	x := newBusy(t, 4, 1000)
	x.step(1000)
	if n := testing.AllocsPerRun(100, func() { x.step(1000) }); n != 0 {
		t.Errorf("%v allocations for 4 frames", n)
	}
	if c := x.sw.Port(1).Counters(x.now).Priority[3]; c.OutFrames < 100 || x.store.Frames() != 0 {
		t.Errorf("counters %+v", c)
	}
	l := incast(t, 2)
	l.run(1000 * microsecond)
	now := 1000 * microsecond
	if n := testing.AllocsPerRun(10, func() {
		now += 100 * microsecond
		l.run(now)
	}); n != 0 {
		t.Errorf("%v allocations for 100 us of an incast", n)
	}
}

// TestSwitch_Memory: a port needs less than 64 KB beyond its frames.
func TestSwitch_Memory(t *testing.T) {
	for _, ports := range []int{2, 64} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := newBusy(t, ports, 1000)
		x.step(64)
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := (int(after.HeapAlloc) - int(before.HeapAlloc) - len(x.store.pages)*cellsPerPage*cellSize) / ports
		t.Logf("%d ports: %d bytes each", ports, each)
		if each > 64<<10 {
			t.Errorf("%d ports: %d bytes each", ports, each)
		}
		runtime.KeepAlive(x)
	}
}

// BenchmarkSwitch_Receive is a frame that arrives, waits and leaves, of which all is kept or the headers alone.
func BenchmarkSwitch_Receive(b *testing.B) {
	for _, ports := range []int{2, 64} {
		for _, keep := range []int{64, 1048} {
			b.Run(fmt.Sprintf("ports=%d/kept=%d", ports, keep), func(b *testing.B) {
				x := newBusy(b, ports, 1048)
				b.ReportAllocs()
				for b.Loop() {
					x.step(keep)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*ports), "ns/frame")
			})
		}
	}
}

// pacer lets stations send at line rate, and counts what arrives.
type pacer struct {
	l        *load
	frames   map[int][]byte
	from     []byte
	to       byte
	received int
}

// incast is an incast of senders at line rate with PFC, whose receiver counts.
func incast(t testing.TB, senders int) *pacer {
	port := PortConfig{Rate: 40e9, Delay: time.Microsecond, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
	p := &pacer{}
	p.l, p.to, p.from = star(t, senders, Config{}, port, StationConfig{Wire: port})
	p.l.Deliver = func(_ clock.Time, _ End, r Ref) {
		p.received++
		p.l.Store.Drop(r)
	}
	return p
}

// run lets all senders offer what their ports take, until a time.
func (p *pacer) run(until clock.Time) {
	l := p.l
	if p.frames == nil {
		p.frames = map[int][]byte{}
		for _, n := range p.from {
			p.frames[int(n)] = packet{from: n, to: p.to, class: 3<<5 | 2, length: 1048}.bytes()
			p.offer(int(n))
		}
	}
	for at := l.Deadline(); at <= until; at = l.Deadline() {
		l.now = at
		l.Advance(at)
		for n, _, ok := l.Room(); ok; n, _, ok = l.Room() {
			p.offer(n)
		}
	}
	l.now = until
}

func (p *pacer) offer(n int) {
	for {
		if r := p.l.Store.Put(p.frames[n], 1048-headers); !p.l.Send(p.l.now, n, r) {
			p.l.Store.Drop(r)
			return
		}
	}
}

// BenchmarkFabric_Incast is senders at 40 Gb/s that meet at a port, with PFC, without protocol engines: each frame crosses two links.
func BenchmarkFabric_Incast(b *testing.B) {
	for _, senders := range []int{2, 16, 63} {
		b.Run(fmt.Sprintf("%d to 1", senders), func(b *testing.B) {
			p := incast(b, senders)
			p.run(1000 * microsecond)
			start, now := p.received, 1000*microsecond
			for b.Loop() {
				now += 100 * microsecond
				p.run(now)
			}
			frames := float64(p.received - start)
			b.ReportMetric(frames/b.Elapsed().Seconds()/1e6, "Mframes/s")
			b.ReportMetric(2*frames/b.Elapsed().Seconds()/1e6, "Mtraversals/s")
			if n, how := p.l.drops(); n > 0 {
				b.Error(how)
			}
		})
	}
}
