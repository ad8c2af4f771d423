package sim_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/sim/infiniband"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// tree returns a fat tree of channel adapters that a subnet manager has brought up.
func tree(t testing.TB, hosts int) (*sim.Network, *infiniband.Fabric) {
	shape := topology.FatTreeShape{Radix: 8, Levels: 2, Hosts: hosts, HostPorts: 1}
	top, err := topology.FatTree(shape, topology.Rate{Width: mad.Width4x, Speed: mad.SpeedQDR})
	if err != nil {
		t.Fatal(err)
	}
	n, seed := sim.New(1), uint64(1)
	f := infiniband.Add(n, fabric.New(top, func() uint64 { seed = seed*6364136223846793005 + 1442695040888963407; return seed }))
	if _, err := f.Manager(fabric.Place{Node: 0, Port: 1}, subnet.Config{}); err != nil {
		t.Fatal(err)
	}
	n.Pass(time.Second)
	return n, f
}

// cluster returns a tree with an engine at each adapter that is connected to another.
func cluster(t testing.TB, hosts int) (*sim.Network, *infiniband.Fabric, []*peer) {
	n, f := tree(t, hosts)
	var err error
	all := make([]*peer, hosts)
	for i := range all {
		at := fabric.Place{Node: i, Port: 1}
		info := f.PortInfo(at)
		if info.PortState != mad.PortActive {
			t.Fatalf("port %d is in state %v", i, info.PortState)
		}
		p := newPeer(t, frame.LIDAddr(info.LID))
		p.port = f.Plug(at, sim.Alone(p.e))
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
			g := groundOf(t)
			for i := range g.source {
				g.source[i] = byte(i * 7)
			}
			clear(g.target)
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
			if !bytes.Equal(g.source, g.target) {
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

// burst sends numbered packets of 4 KB to a LID, as many at once as it is asked for, and receives such packets.
type burst struct {
	from, to  ib.LID
	next, end int
	got       []int
}

func (b *burst) Advance(clock.Time) {}

func (b *burst) Deadline() clock.Time { return clock.Never }

func (b *burst) Receive(_ clock.Time, in []frame.In) {
	for i := range in {
		b.got = append(b.got, int(binary.BigEndian.Uint32(in[i].Data[ib.LRHLen+ib.BTHLen:])))
	}
}

func (b *burst) Transmit(_ clock.Time, out []frame.Out) int {
	k := min(len(out), b.end-b.next)
	for i := range out[:k] {
		p := make([]byte, ib.LRHLen+ib.BTHLen+4096+ib.ICRCLen)
		h := ib.LRH(p)
		h.SetNextHeader(ib.LNHLocal)
		h.SetDLID(b.to)
		h.SetSLID(b.from)
		h.SetPktLen(len(p) / 4)
		ib.BTH(p[ib.LRHLen:]).SetPKey(ib.PKeyDefault)
		ib.BTH(p[ib.LRHLen:]).SetDestQP(2)
		binary.BigEndian.PutUint32(p[ib.LRHLen+ib.BTHLen:], uint32(b.next))
		out[i].Reset(nil)
		out[i].Payload = p
		b.next++
	}
	return k
}

// TestFabric_FullQueueHoldsTheSenderBack: what the fabric has no room for waits at its port, whose engine is not asked
// for more meanwhile, and arrives in order: nothing is lost.
func TestFabric_FullQueueHoldsTheSenderBack(t *testing.T) {
	n, f := tree(t, 2)
	a, b := fabric.Place{Node: 0, Port: 1}, fabric.Place{Node: 1, Port: 1}
	from, to := &burst{from: f.PortInfo(a).LID, to: f.PortInfo(b).LID, end: 2000}, &burst{}
	f.Plug(b, to)
	f.Plug(a, from).Wake()
	start := n.Now()
	n.Pass(time.Microsecond)
	if from.next > 256 {
		t.Errorf("the engine was asked for %d packets at once, though the fabric has room for 64", from.next)
	}
	n.Run(start.Add(time.Minute), nil)
	for i, v := range to.got {
		if v != i {
			t.Fatalf("packet %d arrives as number %d", v, i)
		}
	}
	if took := n.Now().Sub(start); len(to.got) != 2000 || took < 2*time.Millisecond {
		t.Errorf("%d packets arrived in %v, want 2000 in the 2 ms that they take on the cable", len(to.got), took)
	}
}
