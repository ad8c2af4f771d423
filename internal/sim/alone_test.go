package sim_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// letter is a packet that waits for its receiver.
type letter struct {
	head    [60]byte
	short   int
	payload []byte
	src     netip.Addr
}

// bare is a port without a network: what it receives lies in two boxes, requests and answers.
type bare struct {
	*peer
	next, before *bare
	requests     []letter
	answers      []letter
}

// turn passes on what is in a box, and puts what the engine sends into the boxes of its neighbours.
func (x *bare) turn(now clock.Time, box *[]letter, in []frame.In, out []frame.Out) (hops int) {
	for i := range *box {
		l := &(*box)[i]
		in[i] = frame.In{Data: l.head[:l.short], Payload: l.payload, Src: l.src, Dst: x.addr, SrcPort: 0xc000}
	}
	if hops = len(*box); hops > 0 {
		x.port.Engine.Receive(now, in[:hops])
		*box = (*box)[:0]
	}
	for n := 1; n > 0; {
		n = x.port.Engine.Transmit(now, out)
		for i := range out[:n] {
			o := &out[i]
			to := &x.next.requests
			if ib.BTH(o.Head[frame.HeadRoom:]).Opcode().IsResponse() {
				to = &x.before.answers
			}
			*to = append(*to, letter{payload: o.Payload, src: x.addr})
			l := &(*to)[len(*to)-1]
			l.short = copy(l.head[:], o.Head[frame.HeadRoom:o.HeadEnd])
		}
		x.settle(now)
	}
	x.port.Engine.Deadline()
	return hops
}

// BenchmarkHops_EnginesAlone is BenchmarkHops without a network: the engines have their turns one after the other, for the
// requests that have arrived and for the answers, and what they send is in its receiver's box at once. So much slower do
// the engines' own memory and the packets' make a hop where there are many.
func BenchmarkHops_EnginesAlone(b *testing.B) {
	for _, prefetches := range []bool{false, true} {
		for _, ports := range []int{2, 100, 1000} {
			name := fmt.Sprint(ports, " ports")
			if prefetches {
				name += ", prefetching"
			}
			b.Run(name, func(b *testing.B) {
				_, all := circle(b, ports)
				list := make([]*bare, ports)
				for i, p := range all {
					list[i] = &bare{peer: p}
				}
				for i, x := range list {
					x.next, x.before = list[(i+1)%ports], list[(i+ports-1)%ports]
					for range deep {
						x.post()
					}
				}
				run(b, list, prefetches)
			})
		}
	}
}

// run lets the ports have their turns in an order in which neighbours are far from each other.
func run(b *testing.B, list []*bare, prefetches bool) {
	var in [64]frame.In
	out := make([]frame.Out, 256)
	at := func(i int) *bare { return list[i*367%len(list)] }
	now, hops, total := clock.Time(0), 0, 0
	b.ReportAllocs()
	for turn := 0; total < b.N; turn++ {
		if turn == 10*len(list) {
			b.ResetTimer()
			hops, total = 0, 0
		}
		round, i := turn/len(list), turn%len(list)
		box := func(x *bare) *[]letter {
			if round%2 == 0 {
				return &x.answers
			}
			return &x.requests
		}
		if prefetches {
			foresee(at, box, i)
		}
		x := at(i)
		hops = x.turn(now, box(x), in[:], out)
		total += hops
		now = now.Add(2 * time.Microsecond / time.Duration(len(list)))
	}
	b.ReportMetric(float64(total)/b.Elapsed().Seconds()/1e6, "Mhops/s")
}

// foresee prefetches for the ports whose turns are next, as the network does.
func foresee(at func(int) *bare, box func(*bare) *[]letter, i int) {
	for step := range sim.PrefetchSteps {
		x := at(i + sim.PrefetchSteps - step)
		if l := *box(x); len(l) > 0 {
			x.port.Prefetcher.Prefetch(step, l[0].head[:])
		}
	}
}
