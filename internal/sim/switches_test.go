package sim_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/encap"
	fabric "github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/sim/ethernet"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/eth"
)

// funnel is RC engines at one Ethernet switch that all write to the last of them.
func funnel(t testing.TB, senders int, wire fabric.PortConfig) (*sim.Network, *ethernet.Fabric, []*peer) {
	return funnelOf(t, senders, wire, 2)
}

// funnelOf is a funnel whose marks follow from a seed.
func funnelOf(t testing.TB, senders int, wire fabric.PortConfig, seed uint64) (*sim.Network, *ethernet.Fabric, []*peer) {
	n := sim.New(1)
	f := ethernet.Add(n, new(fabric.Fabric))
	ports := make([]fabric.PortConfig, senders+1)
	for i := range ports {
		ports[i] = wire
	}
	sw, err := fabric.New(&f.Store, fabric.Config{Buffer: 32 << 20, Random: rand.New(rand.NewPCG(1, seed)).Uint64}, ports)
	if err != nil {
		t.Fatal(err)
	}
	f.AddSwitch(sw)
	mac := func(i int) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, byte(1 + i)} }
	all := make([]*peer, senders)
	plug := func(at int, x *peer) {
		station, err := fabric.NewStation(&f.Store, fabric.StationConfig{Wire: wire})
		if err != nil {
			t.Fatal(err)
		}
		number := f.AddStation(station)
		if err := f.Connect(fabric.End{Node: number}, fabric.End{Node: 0, Port: at}); err != nil {
			t.Fatal(err)
		}
		e, err := encap.New(encap.RoCEv2, []netip.Addr{x.addr}, link.Capabilities{Raw: true, MaxSegments: 1, MTU: 1500}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, w := new(port.Port), new(port.Wire)
		p.Attach(x.e, port.Station{MAC: mac(at)}).Plug(w, netip.Addr{}, e)
		x.port = f.Plug(number, x.addr, sim.Drive(p, w))
		x.port.Settle, x.port.Rate = x.settle, wire.Rate
	}
	target := newPeer(t, netip.AddrFrom4([4]byte{10, 0, 1, 0}))
	// There is no time between notifications, as in the simulator with which DCQCN is compared.
	notify := congestion.Settings{Notify: 0xff, CNPPriority: 6, CNPDSCP: 48, CNPInterval: 1}
	if err := target.e.SetCongestion(notify); err != nil {
		t.Fatal(err)
	}
	plug(senders, target)
	for i := range all {
		all[i] = newPeer(t, netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}))
		all[i].out, all[i].work = all[i].qp(128)
		plug(i, all[i])
		in, _ := target.qp(16)
		there := frame.Route{Src: all[i].addr, Dst: target.addr, SrcPort: 0xc000 + uint16(i), SrcMAC: mac(i), DstMAC: mac(senders),
			TrafficClass: 3 << 5, Priority: 3}
		back := frame.Route{Src: target.addr, Dst: all[i].addr, SrcPort: 0xc000, SrcMAC: mac(senders), DstMAC: mac(i), TrafficClass: 6 << 5,
			Priority: 6}
		all[i].ready(all[i].out, target.e.Query(in).Number, there)
		target.ready(in, all[i].e.Query(all[i].out).Number, back)
		all[i].rkey = target.own
	}
	return n, f, all
}

// pausing is a port of 40 Gb/s with PFC for priority 3.
func pausing() fabric.PortConfig {
	p := fabric.PortConfig{Rate: 40e9, Delay: time.Microsecond, MTU: 1500, Trust: fabric.TrustDSCP, FlowControl: fabric.PriorityPause,
		Lossless: 1 << 3}
	p.Groups[3].Xoff = 4000
	return p
}

// TestSwitches_Incast: real RC engines that write to one, 2 and 16 of them, lose nothing and send nothing twice where the switch
// pauses them, and many use the port of the receiver fully; where it has small queues and no pauses they send again, and end too.
func TestSwitches_Incast(t *testing.T) {
	for _, senders := range []int{2, 16} {
		for _, pfc := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d to 1, PFC %v", senders, pfc), func(t *testing.T) {
				wire := pausing()
				if !pfc {
					wire.FlowControl, wire.Lossless = fabric.NoFlowControl, 0
					wire.Queues[3].Most = 10_000
				}
				n, f, all := funnel(t, senders, wire)
				start := n.Now()
				const writes = 100
				for _, p := range all {
					p.most = writes
					for range deep {
						p.post()
					}
				}
				n.Run(start.Add(20*time.Second), func() bool {
					for _, p := range all {
						if p.completed < writes {
							return false
						}
					}
					return true
				})
				again, lost, paused := uint64(0), uint64(0), uint64(0)
				for i, p := range all {
					again += p.e.Counters().RetransmittedPackets
					if p.completed != writes {
						t.Errorf("sender %d: %d of %d writes", i, p.completed, writes)
					}
				}
				for i := range senders + 1 {
					c := f.Switch(0).Port(i).Counters(n.Now()).Priority[3]
					lost += c.HeadroomDrops + c.QueueDrops + c.BufferDrops
					paused += c.Pause.Sent
				}
				if pfc && (lost != 0 || again != 0 || paused == 0) || !pfc && (lost == 0 || again == 0 || paused != 0) {
					t.Errorf("%d packets were lost, %d sent again, %d pauses sent", lost, again, paused)
				}
				if rate := float64(senders*writes*messageSize*8) / n.Now().Sub(start).Seconds(); pfc && senders == 16 && rate < 0.85*40e9 {
					t.Errorf("%.4g b/s of payload", rate)
				}
			})
		}
	}
}

// BenchmarkSwitches_Incast is real RC engines that write to one through a switch with PFC. A data packet crosses two links, and its
// acknowledgements do.
func BenchmarkSwitches_Incast(b *testing.B) {
	for _, senders := range []int{2, 16} {
		b.Run(fmt.Sprintf("%d to 1", senders), func(b *testing.B) {
			n, f, all := funnel(b, senders, pausing())
			for _, p := range all {
				for range deep {
					p.post()
				}
			}
			n.Pass(time.Millisecond)
			count := func() (data, links uint64) {
				for i := range senders + 1 {
					for j, c := range f.Switch(0).Port(i).Counters(n.Now()).Priority {
						links += c.InFrames + c.OutFrames + c.Pause.Sent
						if j == 3 {
							data += c.OutFrames
						}
					}
				}
				return data, links
			}
			data, links := count()
			b.ReportAllocs()
			for b.Loop() {
				n.Pass(100 * time.Microsecond)
			}
			d, l := count()
			b.ReportMetric(float64(d-data)/b.Elapsed().Seconds()/1e6, "Mpackets/s")
			b.ReportMetric(float64(l-links)/b.Elapsed().Seconds()/1e6, "Mtraversals/s")
		})
	}
}
