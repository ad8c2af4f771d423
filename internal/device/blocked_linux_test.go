package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestVirtual_Blocked: a blocked function sends nothing and gets nothing, on running connections of the local path too, with its link up;
// both are counted, others go on, and without the block it has traffic again.
func TestVirtual_Blocked(t *testing.T) {
	one, _, third := threeEnds(t)
	h := one.host
	index, a := vf(t, h, 10, nil)
	_, b := vf(t, h, 11, nil)
	inside, outside := connect(a.idleQP(), b.idleQP()), connect(third.idleQP(), a.idleQP())
	exchange(t, inside, 5000)
	exchange(t, outside, 5000)
	one.check(h.SetFunction(index, Virtual{Blocked: true}))
	const n = 5000
	writes := [][2]*pair{{inside.a, inside.b}, {inside.b, inside.a}, {outside.a, outside.b}}
	for _, w := range writes {
		from, to := w[0].p.buffer(n), w[1].p.buffer(n)
		fill(from.b, n)
		wr := ring.SendWR{ID: 7, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: to.addr(0), RKey: to.mem.RKey}
		wr.SGE[0] = from.sge(0, n)
		f := status(t, h, "vf10")
		sent, held := f.Switch.Dropped[eswitch.Blocked], f.Switch.Held
		w[0].post(wr)
		await.Eventually(t, "its frames are counted", func() bool {
			f := status(t, h, "vf10")
			return w[0].p == a && f.Switch.Dropped[eswitch.Blocked] > sent || w[0].p != a && f.Switch.Held > held
		})
		if string(to.b[:n]) != string(make([]byte, n)) {
			t.Error("something arrives")
		}
	}
	if !status(t, h, "vf10").Up {
		t.Error("its link is down")
	}
	exchange(t, connect(b.idleQP(), third.idleQP()), 5000)
	one.check(h.SetFunction(index, Virtual{}))
	for _, w := range writes {
		w[0].cq.next() // done, or given up before
	}
	exchange(t, connect(a.idleQP(), b.idleQP()), 5000)
	exchange(t, connect(third.idleQP(), a.idleQP()), 5000)
}

// TestVirtual_PacketDirect: a function with PacketDirect has raw packet queue pairs without trust, for its own frames alone.
func TestVirtual_PacketDirect(t *testing.T) {
	one, _, third := threeEnds(t)
	h := one.host
	index, a := vf(t, h, 10, nil)
	one.check(h.SetFunction(index, Virtual{PacketDirect: true}))
	tx, rx := a.rawEnd(), third.rawEnd()
	_, err := a.c.CreateFlow(bg, command.CreateFlow{QP: tx.q.Handle, Type: command.FlowSniffer})
	refused(t, "a flow for others' frames", err, command.Access)
	own, to := [6]byte{2, 0, 0, 0, 9, 10}, [6]byte{2, 0, 0, 0, 9, 3}
	tx.flow(toMAC(own, 0))
	rx.flow(toMAC(to, 0))
	rx.receive(2)
	one.check(h.SetFunction(index, Virtual{PacketDirect: true, Blocked: true}))
	tx.sends(udpFrame(to, own, 5678, 100))
	one.check(h.SetFunction(index, Virtual{PacketDirect: true}))
	good := udpFrame(to, own, 5678, 120)
	tx.sends(good)
	rx.gets("what it sends unblocked", good)
	if n := status(t, h, "vf10").Switch.Dropped[eswitch.Blocked]; n == 0 {
		t.Error("the frame that was blocked is not counted")
	}
}
