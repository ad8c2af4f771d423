package ethernet

import (
	"testing"

	"github.com/softvpi/softvpi/internal/function/ethernet/queue"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
)

// TestVirtual_Processors: the rings of a queue begin at a processor of its own, of those of RSS, and the default queue is on that of
// DefaultRecvRingProcessor, with one ring.
func TestVirtual_Processors(t *testing.T) {
	for _, c := range []struct {
		number, rings, most int
		want                []int
	}{
		{0, 4, 4, []int{2}}, {1, 1, 4, []int{0}}, {2, 1, 4, []int{1}}, {4, 2, 4, []int{3, 0}}, {5, 1, 4, []int{0}}, {2, 8, 2, []int{1, 0}},
		{3, 1, 1, []int{0}},
	} {
		f, err := New(plain(macA, func(x *Config) {
			x.NumRSSQueues, x.MaxRSSProcessors, x.DefaultRecvRingProcessor = c.rings, c.most, 2
			x.Machine = []rss.Processor{{Number: 0}, {Number: 1}, {Number: 2}, {Number: 3}}
			x.Virtual = &VirtualQueue{Number: c.number, Pool: queue.NewPool(0)}
		}), &host{room: -1})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, p := range f.Processors() {
			got = append(got, p.Number)
		}
		if len(got) != len(c.want) || got[0] != c.want[0] || got[len(got)-1] != c.want[len(c.want)-1] {
			t.Errorf("queue %d with %d rings on %d processors: %v, want %v", c.number, c.rings, c.most, got, c.want)
		}
	}
}

// TestVirtual_Default: ports without a queue of their own share the buffers of the default one, so that one whose host takes nothing
// costs the other frames, which are counted, until it goes; a port with a queue of its own loses none.
func TestVirtual_Default(t *testing.T) {
	const buffers = 8
	shared, own := queue.NewPool(buffers), queue.NewPool(0)
	at := func(number int, p *queue.Pool) *card {
		return alone(t, plain(macB, func(c *Config) { c.Virtual, c.RscIPv4 = &VirtualQueue{Number: number, Pool: p}, 0 }))
	}
	stuck, other, free := at(0, shared), at(0, shared), at(1, own)
	for _, c := range []*card{stuck, other, free} {
		c.host.room = 0
	}
	b := tcpFlow().frame(counting(100))
	for range buffers - 2 {
		stuck.arrive(0, b)
	}
	for range 5 {
		other.arrive(0, b)
		free.arrive(0, b)
	}
	if c := shared.Counters(); c.Packets != buffers+3 || c.Dropped != 3 || c.Bytes != c.Packets*uint64(len(b)) {
		t.Errorf("the default queue has counted %+v", c)
	}
	if other.Counters().NoBuffer != 3 || stuck.Counters().NoBuffer != 0 || free.Counters().NoBuffer != 0 {
		t.Errorf("lost %d, %d and %d", other.Counters().NoBuffer, stuck.Counters().NoBuffer, free.Counters().NoBuffer)
	}
	if c := own.Counters(); c.Packets != 5 || c.Dropped != 0 {
		t.Errorf("a queue of its own has counted %+v", c)
	}
	stuck.End()
	for range 5 {
		other.arrive(0, b)
	}
	if n := other.Counters().NoBuffer; n != 3 {
		t.Errorf("%d lost when the other port is gone", n)
	}
	other.host.room = -1
	if other.Ready(0, 0); len(other.host.packets) != 7 {
		t.Errorf("the host has %d packets", len(other.host.packets))
	}
}

// TestVirtual_Lookahead: with lookahead split the headers of a frame are a piece of their own, which is counted.
func TestVirtual_Lookahead(t *testing.T) {
	for _, split := range []bool{false, true} {
		p := queue.NewPool(0)
		c := alone(t, plain(macB, func(c *Config) { c.Virtual = &VirtualQueue{Number: 1, Pool: p, Lookahead: split} }))
		c.arrive(0, tcpFlow().frame(counting(500)))
		parts, n := c.host.packets[0].Parts, p.Counters().Split
		if split && (len(parts) != 2 || len(parts[0]) != 54 || n != 1) || !split && (len(parts) != 1 || n != 0) {
			t.Errorf("%t: %d pieces, %d counted", split, len(parts), n)
		}
	}
}
