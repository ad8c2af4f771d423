package sim_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/sim/infiniband"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/mad"
)

// cluster returns channel adapters at the leaves of a fat tree that a subnet manager has brought up, with an engine at
// each that is connected to the next.
func cluster(t testing.TB, hosts int) (*sim.Network, *infiniband.Fabric, []*peer) {
	top, err := topology.FatTree(topology.FatTreeShape{Radix: 8, Levels: 2, Hosts: hosts, HostPorts: 1}, topology.Rate{Width: mad.Width4x, Speed: mad.SpeedQDR})
	if err != nil {
		t.Fatal(err)
	}
	n, seed := sim.New(1), uint64(1)
	f := infiniband.Add(n, fabric.New(top, func() uint64 { seed = seed*6364136223846793005 + 1442695040888963407; return seed }))
	if _, err := f.Manager(fabric.Place{Node: 0, Port: 1}, subnet.Config{}); err != nil {
		t.Fatal(err)
	}
	n.Pass(time.Second)
	all := make([]*peer, hosts)
	for i := range all {
		at := fabric.Place{Node: i, Port: 1}
		info := f.PortInfo(at)
		if info.PortState != mad.PortActive {
			t.Fatalf("port %d is in state %v", i, info.PortState)
		}
		p := newPeer(t, frame.LIDAddr(info.LID))
		p.port = f.Plug(at, p.e)
		p.port.Settle = p.settle
		if p.port.Codec, err = f.NewCodec(at); err != nil {
			t.Fatal(err)
		}
		all[i] = p
	}
	route := func(a, b *peer) frame.Route {
		lid, _ := frame.AddrLID(b.addr)
		return frame.Route{Src: a.addr, Dst: b.addr, IB: frame.InfiniBand{DLID: lid}}
	}
	for i, p := range all {
		x := all[(i+5)%hosts]
		p.connect(x, route(p, x), route(x, p))
	}
	return n, f, all
}

// TestFabric_RCThroughSwitches: real RC engines write to each other through the switches of a fabric that a subnet
// manager has routed, in virtual time, also while its cables lose packets.
func TestFabric_RCThroughSwitches(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(n *sim.Network, f *infiniband.Fabric)
	}{
		{"whole", nil},
		{"lossy", func(_ *sim.Network, f *infiniband.Fabric) {
			for node := range 16 {
				f.SetLoss(fabric.Place{Node: node, Port: 1}, 0.01)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, f, all := cluster(t, 16)
			if c.harm != nil {
				c.harm(n, f)
			}
			for i := range source {
				source[i] = byte(i * 7)
			}
			clear(target)
			start := n.Now()
			for _, p := range all {
				p.most = 50
				for range deep {
					p.post()
				}
			}
			n.Run(start.Add(10*time.Second), func() bool {
				return !slices.ContainsFunc(all, func(p *peer) bool { return p.completed < p.most })
			})
			lost := uint64(0)
			for i, p := range all {
				lost += p.e.Counters().RetransmittedPackets
				if p.completed != p.most {
					t.Errorf("port %d: %d writes completed, want %d", i, p.completed, p.most)
				}
			}
			if !bytes.Equal(source, target) {
				t.Error("what was written is not what arrived")
			}
			if n.Stats.Delivered == 0 || f.Refused != 0 || (lost > 0) != (c.harm != nil) {
				t.Errorf("%d packets delivered, %d refused, %d sent again", n.Stats.Delivered, f.Refused, lost)
			}
			// 200 KB take 51 us at the 32 Gb/s of four lanes of QDR.
			if took := n.Now().Sub(start); took < 51*time.Microsecond {
				t.Errorf("it took %v, less than the links take", took)
			}
		})
	}
}

// TestFabric_Backpressure: what the fabric has no room for waits at its sender and is not lost: 15 ports write to one.
func TestFabric_Backpressure(t *testing.T) {
	n, f, all := cluster(t, 16)
	for _, p := range all[1:] {
		x := all[0]
		in, _ := x.qp()
		x.in = in
		lid, _ := frame.AddrLID(x.addr)
		back, _ := frame.AddrLID(p.addr)
		p.out, p.work = p.qp()
		p.connect(x, frame.Route{Src: p.addr, Dst: x.addr, IB: frame.InfiniBand{DLID: lid}},
			frame.Route{Src: x.addr, Dst: p.addr, IB: frame.InfiniBand{DLID: back}})
		p.most = 100
		for range 15 {
			p.post()
		}
	}
	n.Run(n.Now().Add(10*time.Second), func() bool {
		return !slices.ContainsFunc(all[1:], func(p *peer) bool { return p.completed < p.most })
	})
	again := uint64(0)
	for i, p := range all[1:] {
		again += p.e.Counters().RetransmittedPackets
		if p.completed != p.most {
			t.Errorf("port %d: %d writes completed, want %d", i+1, p.completed, p.most)
		}
	}
	if again != 0 || f.Refused != 0 {
		t.Errorf("%d packets were sent again, %d refused; want none: credits hold packets back, and lose none", again, f.Refused)
	}
}
