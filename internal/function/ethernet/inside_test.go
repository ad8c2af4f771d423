package ethernet

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

// reuser is a host that uses the memory of what it has sent as soon as it may.
type reuser struct {
	host
	posted map[int][][]byte
}

func (r *reuser) Sent(now clock.Time, q, n int) {
	for _, b := range r.posted[q][:n] {
		clear(b)
	}
	r.posted[q] = r.posted[q][n:]
	r.host.Sent(now, q, n)
}

// TestSend_Inside: every kind of frame reaches another function of the port as it would have left, whatever its host does with the
// memory once it is told that it was sent; and in the order in which it was sent.
func TestSend_Inside(t *testing.T) {
	flow, unfinished, tagged := tcpFlow(), tcpFlow(), tcpFlow()
	unfinished.unfinished = true
	tagged.tags = []uint16{5 << 13}
	group := tcpFlow().udp()
	group.to = eth.Broadcast
	raw := func(n int) []byte { return append(append(macB[:], macA[:]...), make([]byte, n)...) }
	sends := []Send{
		{Frame: raw(20)}, {Frame: flow.frame(counting(10))}, {Frame: flow.frame(counting(1400))}, {Frame: raw(46)},
		{Frame: tagged.frame(counting(1000))}, {Frame: flow.frame(counting(1200)), Tagged: true, TCI: 3 << 13},
		{Frame: unfinished.frame(counting(1300)), Task: offload.Task{Sums: offload.MakeTransport}},
		{Frame: unfinished.frame(counting(9)), Task: offload.Task{Sums: offload.MakeTransport}},
		{Frame: unfinished.frame(counting(30000)), Task: offload.Task{Kind: offload.TCPv4, Segment: 1460}},
		{Frame: group.frame(counting(600))}, {Frame: flow.frame(counting(1401))},
	}
	p, w := &port.Port{}, &port.Wire{}
	noJoin := func(c *Config) { c.RscIPv4, c.PriorityVLANTag = 0, 3 }
	from := &reuser{host: host{sent: map[int]int{}, room: -1}, posted: map[int][][]byte{}}
	a := newCard(t, p, w, plain(macA, noJoin))
	a.Function.host = from
	b := newCard(t, p, w, plain(macB, noJoin, func(c *Config) { c.Host = Abilities{Large: true, Partial: true}; c.RscIPv4 = 1 }))
	out := newOut(3)
	var want [][]byte
	for turn := range 5 {
		for i := range sends {
			s := sends[(i+turn)%len(sends)]
			s.Frame = bytes.Clone(s.Frame)
			q := a.QueueFor(s.Frame)
			if err := a.Send(0, q, &s); err != nil {
				t.Fatalf("send %d: %v", i, err)
			}
			from.posted[q] = append(from.posted[q], s.Frame)
			whole := bytes.Clone(s.Frame)
			if whole[macs] == byte(eth.TypeVLAN>>8) { // which is taken out
				whole = append(whole[:macs], whole[macs+eth.VLANLen:]...)
			}
			want = append(want, append(whole, make([]byte, max(0, minFrame-len(whole)))...))
		}
		for p.Transmit(0, out) > 0 {
			if turn%2 == 0 {
				p.Advance(0)
			}
		}
		p.Advance(0)
	}
	if got := from.total(); got != len(want) {
		t.Errorf("%d of %d sends are complete", got, len(want))
	}
	got := map[string]int{}
	for _, f := range b.host.frames() {
		got[string(f)]++
	}
	for i, f := range want {
		if got[string(f)] == 0 {
			t.Errorf("send %d of %d bytes: it did not arrive as it was sent", i%len(sends), len(f))
		}
		got[string(f)]--
	}
	if len(b.host.packets) != len(want) {
		t.Errorf("%d frames arrived, want %d", len(b.host.packets), len(want))
	}
}

// BenchmarkInside measures the way of a frame from one function of a port to another.
func BenchmarkInside(b *testing.B) {
	for _, size := range []int{46, 1460, 8960} {
		b.Run(map[int]string{46: "64", 1460: "1514", 8960: "9014"}[size], func(b *testing.B) {
			turn, host := inside(b, size)
			b.ReportAllocs()
			for b.Loop() {
				turn()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/frame")
			if host.packets < b.N*batch-batch {
				b.Errorf("%d frames arrived", host.packets)
			}
		})
	}
}

// TestAllocations_Inside: a frame between two functions of a port allocates nothing.
func TestAllocations_Inside(t *testing.T) {
	turn, host := inside(t, 1460)
	turn()
	if n := testing.AllocsPerRun(100, turn); n != 0 || host.packets == 0 {
		t.Errorf("a turn allocates %v times; %d frames arrived", n, host.packets)
	}
}

// inside returns a turn of a port in which one function sends another a batch of frames.
func inside(t testing.TB, size int) (turn func(), to *sinkHost) {
	p, w := &port.Port{}, &port.Wire{}
	var f [2]*Function
	var hosts [2]*sinkHost
	for i, mac := range []eth.MAC{macA, macB} {
		hosts[i] = &sinkHost{}
		var err error
		if f[i], err = New(plain(mac, func(c *Config) { c.JumboPacket, c.RscIPv4 = 9014, 0 }), hosts[i]); err != nil {
			t.Fatal(err)
		}
		at := p.Attach(f[i], port.Station{MAC: mac, Kind: port.Ethernet})
		at.Plug(w, netipNone, nil)
		f[i].SetWire(at)
	}
	send := Send{Frame: tcpFlow().frame(counting(size))}
	out := make([]frame.Out, 64)
	return func() {
		for range batch {
			if err := f[0].Send(0, f[0].QueueFor(send.Frame), &send); err != nil {
				t.Fatal(err)
			}
		}
		for p.Transmit(0, out) > 0 {
		}
		p.Advance(0)
	}, hosts[1]
}
