package port_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	lineRate = 40e9
	// tick is how far virtual time goes at a time, and delay how long a link takes.
	tick  = 200 * time.Nanosecond
	delay = time.Microsecond
)

// source is a function that sends frames at two priorities, each numbered.
type source struct {
	mac   eth.MAC
	left  [8]int
	sent  [8]uint32
	size  func() int
	frame []byte
	route frame.Route
}

func (s *source) Receive(clock.Time, []frame.In) {}
func (s *source) Advance(clock.Time)             {}
func (s *source) Deadline() clock.Time           { return clock.Never }

func (s *source) Pending() (set uint8) {
	for p, n := range s.left {
		if n > 0 {
			set |= 1 << p
		}
	}
	return set
}

func (s *source) Transmit(_ clock.Time, p uint8, out []frame.Out) int {
	if s.left[p] == 0 || len(out) == 0 {
		return 0
	}
	s.left[p]--
	h := eth.Ethernet{Dst: sinkMAC, Src: s.mac, Tagged: true, TCI: uint16(p)<<13 | 1, Type: 0x88b5}
	s.frame = h.Append(s.frame[:0])
	s.frame = binary.BigEndian.AppendUint32(s.frame, s.sent[p])
	s.sent[p]++
	s.frame = append(s.frame, make([]byte, max(s.size()-len(s.frame), 0))...)
	out[0].Reset(&s.route)
	out[0].HeadStart, out[0].HeadEnd = 64, 64+uint16(copy(out[0].Head[64:], s.frame[:18]))
	out[0].Payload = s.frame[18:]
	return 1
}

var sinkMAC = eth.MAC{2, 0, 0, 0, 1, 0}

// sink is a function that takes frames when it has receives for them, and notes in which order they come.
type sink struct {
	source
	receives int
	got      map[eth.MAC]*[8][]uint32
	count    int
}

func (s *sink) Take(now clock.Time, in []frame.In) (int, uint32) {
	n := min(len(in), s.receives)
	s.receives -= n
	s.Receive(now, in[:n])
	return n, 7
}

func (s *sink) Receive(_ clock.Time, in []frame.In) {
	for i := range in {
		b := in[i].Data
		from := eth.MAC(b[6:])
		if s.got[from] == nil {
			s.got[from] = &[8][]uint32{}
		}
		p := b[14] >> 5
		s.got[from][p] = append(s.got[from][p], binary.BigEndian.Uint32(b[18:]))
		s.count++
	}
}

// lab is a switch with network cards at its ports, in virtual time.
type lab struct {
	now   clock.Time
	store ethernet.Store
	sw    *ethernet.Switch
	cards []*port.Port
	wires []*port.Wire
	line  []clock.Time // until when each card's is busy
	onway []ethernet.Departure
	out   []frame.Out
	taken [64]ethernet.Departure
}

func newLab(t *rapid.T, n int, scope pause.Scope) *lab {
	l := &lab{out: make([]frame.Out, 1), line: make([]clock.Time, n+1)}
	ports := make([]ethernet.PortConfig, n+1)
	for i := range ports {
		p := &ports[i]
		p.Rate, p.Delay, p.PVID, p.Tagged = lineRate, delay, 0, [64]uint64{2} // VLAN 1 with a tag
		p.FlowControl, p.Lossless = ethernet.PriorityPause, scope.Priorities
		if scope.Mode == pause.Global {
			p.FlowControl, p.Lossless = ethernet.GlobalPause, 0
		}
		for g := range p.Groups {
			p.Groups[g] = ethernet.Group{Xoff: 64 << 10, Headroom: 64 << 10}
		}
		for q := range p.Queues {
			p.Queues[q].Alpha = 64
		}
	}
	var err error
	if l.sw, err = ethernet.New(&l.store, ethernet.Config{Buffer: 64 << 20}, ports); err != nil {
		t.Fatal(err)
	}
	return l
}

// plug puts a function behind a card at the next port of the switch.
func (l *lab) plug(f port.Function, mac eth.MAC, scope pause.Scope) *port.Port {
	p, w := &port.Port{}, &port.Wire{}
	p.Attach(f, port.Station{MAC: mac, Kind: port.Ethernet}).Plug(w, netip.Addr{}, nil)
	p.SetFlowControl(0, w, pause.Config{Obeys: scope, Asks: scope, MAC: mac, Rate: lineRate})
	l.cards, l.wires = append(l.cards, p), append(l.wires, w)
	return p
}

// step lets everything happen that does in a tick.
func (l *lab) step() {
	l.now = l.now.Add(tick)
	for i, d := range slices.Clone(l.onway) {
		if d.At <= l.now {
			b := l.store.Append(nil, d.Frame)
			l.store.Drop(d.Frame)
			l.onway[i].Frame = 0
			l.cards[d.Port].Receive(l.now, l.wires[d.Port], []frame.In{{Data: b, Raw: true}})
		}
	}
	l.onway = slices.DeleteFunc(l.onway, func(d ethernet.Departure) bool { return d.Frame == 0 })
	for i, p := range l.cards {
		p.Advance(l.now)
		for l.line[i] <= l.now {
			if p.Transmit(l.now, l.out) == 0 {
				break
			}
			o := &l.out[0]
			b := append(slices.Clone(o.Head[o.HeadStart:o.HeadEnd]), o.Payload...)
			l.line[i] = max(l.line[i], l.now.Add(-tick)).Add(time.Duration(float64(max(len(b), 60)+24) * 8e9 / lineRate))
			l.sw.Receive(l.now, i, l.store.Put(b, 0))
		}
	}
	for at := l.sw.Deadline(); at <= l.now; at = l.sw.Deadline() {
		l.sw.Advance(at)
	}
	for n := l.sw.Take(l.taken[:]); n > 0; n = l.sw.Take(l.taken[:]) {
		l.onway = append(l.onway, l.taken[:n]...)
	}
}

// TestLossless: with pauses of the whole link, or of two priorities, nothing is lost, duplicated or reordered within a priority on the way
// from any number of senders through a switch to a receiver in dropless mode that is slow and stands still now and then. Frames of
// a third priority, which are not lossless, may be lost, and no priority starves.
func TestLossless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{2, 3, 4, 8, 16, 40, 63}).Draw(t, "senders")
		each := rapid.IntRange(20, 2000/n).Draw(t, "frames")
		sizes := rapid.SampledFrom([][2]int{{64, 64}, {1500, 1500}, {64, 9000}, {9000, 9000}}).Draw(t, "sizes")
		scope := rapid.SampledFrom([]pause.Scope{pause.Whole, pause.Only(1<<3 | 1<<4)}).Draw(t, "scope")
		speed := rapid.IntRange(1, 8).Draw(t, "receives in 2 us")
		hang := rapid.IntRange(0, 400).Draw(t, "us without receives")
		seed := rapid.Uint32().Draw(t, "seed")
		l := newLab(t, n, scope)
		random := func() uint32 {
			seed = seed*1664525 + 1013904223
			return seed >> 8
		}
		size := func() int { return sizes[0] + int(random())%(sizes[1]-sizes[0]+1) }
		priorities := []int{3, 4}
		if scope.Mode == pause.PerPriority {
			priorities = append(priorities, 0)
		}
		want := 0
		for i := range n {
			s := &source{mac: eth.MAC{2, 0, 0, 0, 0, byte(i)}, size: size}
			for _, p := range priorities {
				s.left[p] = each
			}
			want += 2 * each
			l.plug(s, s.mac, scope)
		}
		x := &sink{got: map[eth.MAC]*[8][]uint32{}}
		card := l.plug(x, sinkMAC, scope)
		card.SetDropless(port.Dropless{Timeout: port.Forever})
		hello := eth.Ethernet{Dst: eth.MAC{2, 0, 0, 0, 9, 9}, Src: sinkMAC, Tagged: true, TCI: 1, Type: 0x88b5}
		l.sw.Receive(0, n, l.store.Put(hello.Append(nil), 46)) // the switch learns where it is
		lossless := func() (got int) {
			for _, of := range x.got {
				got += len(of[3]) + len(of[4])
			}
			return got
		}
		for stop := clock.Time(0).Add(time.Second); lossless() < want && l.now < stop; l.step() {
			if us := int(l.now / 1000); us%2 == 0 && us%1000 >= hang {
				x.receives = max(x.receives, speed)
			}
		}
		for _, of := range x.got {
			for _, p := range []int{3, 4} {
				for i, number := range of[p] {
					if number != uint32(i) {
						t.Fatalf("frame %d of priority %d comes as number %d", number, p, i)
					}
				}
			}
		}
		if got := lossless(); got != want {
			t.Fatalf("%d of %d frames have come after %v; the card lost %v", got, want, time.Duration(l.now), card.Overruns())
		}
		if lost := card.Overruns(); lost[3]+lost[4] != 0 {
			t.Errorf("lost %v", lost)
		}
		for i := range n + 1 {
			for p, c := range l.sw.Port(i).Counters(l.now).Priority {
				if p != 0 && c.QueueDrops+c.BufferDrops+c.HeadroomDrops != 0 {
					t.Errorf("port %d lost at priority %d: %+v", i, p, c)
				}
			}
		}
	})
}
