package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// atPriority connects a QP of each of two hosts to the other's at a priority.
func atPriority(t *testing.T, a, b *host, priority uint8) (x, y *end) {
	x, y = a.qp(command.RC, QPConfig{}), b.qp(command.RC, QPConfig{})
	for _, w := range [][2]*end{{x, y}, {y, x}} {
		r := &frame.Route{Src: w[0].addr, Dst: w[1].addr, Priority: priority}
		w[0].modify(command.ModifyQP{State: command.Init, Mask: command.MaskState | command.MaskPKey | command.MaskAccess,
			Access: uint32(allowAll &^ memory.WindowBind)}, nil)
		w[0].modify(command.ModifyQP{State: command.RTR, DestQPN: w[1].q.num, RQPSN: 7, MTU: 1024, ResponderResources: 4, MinRNRTimer: 12,
			Mask: command.MaskState | command.MaskRoute | command.MaskDestQPN | command.MaskRQPSN | command.MaskMTU |
				command.MaskResponderResources | command.MaskMinRNRTimer}, r)
		w[0].modify(command.ModifyQP{State: command.RTS, SQPSN: 7, Timeout: 14, Retry: 7, RNRRetry: 7, InitiatorDepth: 4,
			Mask: command.MaskState | command.MaskSQPSN | command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry |
				command.MaskInitiatorDepth}, nil)
	}
	return x, y
}

// TestTransmit_PrioritiesAreSeparate: a QP transmits only at the priority of its route, and a priority at which nothing
// leaves takes no part of the window of another to the same destination.
func TestTransmit_PrioritiesAreSeparate(t *testing.T) {
	a, b := newHost(t, nil, "10.0.0.1", Config{}), newHost(t, nil, "10.0.0.2", Config{})
	low, lowTo := atPriority(t, a, b, 0)
	high, highTo := atPriority(t, a, b, 5)
	mem := make([]byte, 1<<20)
	from, to := a.region(0, mem, allowAll), b.region(0, make([]byte, 1<<20), allowAll)
	for _, x := range []*end{low, high} {
		for range 64 {
			wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RKey: to.Key}
			wr.SGE[0] = ring.SGE{Length: 16 << 10, LKey: from.Key}
			x.post(wr)
		}
	}
	if got := a.e.Pending(); got != 1|1<<5 {
		t.Fatalf("pending priorities are %08b, want 0 and 5", got)
	}
	out := make([]frame.Out, 128)
	pull := func(from, to *host, priority uint8) (total int) {
		for n := from.e.Transmit(0, priority, out); n > 0; n = from.e.Transmit(0, priority, out) {
			for i := range out[:n] {
				if got := out[i].Route.Priority; got != priority {
					t.Fatalf("a packet of priority %d leaves at %d", got, priority)
				}
			}
			total += n
			to.e.Receive(0, arrivals(out[:n]))
		}
		return total
	}
	if n := a.e.Transmit(0, 3, out); n != 0 {
		t.Errorf("%d packets leave at a priority that nobody has", n)
	}
	for n := a.e.Transmit(0, 0, out); n > 0; n = a.e.Transmit(0, 0, out) { // as much as its window allows, and all of it is lost
	}
	if n := pull(a, b, 5); n == 0 || b.e.Pending() != 1<<5 {
		t.Errorf("%d packets leave at priority 5 while 0 is stuck; the peer has something at %08b", n, b.e.Pending())
	}
	for pull(b, a, 5) > 0 && pull(a, b, 5) > 0 {
	}
	a.drain(0)
	done := map[uint32]int{}
	for _, c := range a.comps {
		done[c.QPN]++
	}
	if done[high.q.num] != 64 || done[low.q.num] != 0 {
		t.Errorf("%d writes completed at priority 5 and %d at 0, want 64 and 0", done[high.q.num], done[low.q.num])
	}
	_, _ = lowTo, highTo
}

// TestDatagram_PriorityOfItsRoute: datagrams of one QP leave in order, each at the priority of its address handle; a MAD
// leaves at that of its route.
func TestDatagram_PriorityOfItsRoute(t *testing.T) {
	a := newHost(t, nil, "10.0.0.1", Config{})
	routes := []*frame.Route{{Src: a.addr, Dst: a.addr}, {Src: a.addr, Dst: a.addr, Priority: 6}}
	x, _ := datagramQP(t, a, &routes)
	first := x.q.req.snd
	for _, p := range []int{0, 0, 1, 0} {
		x.post(ring.SendWR{Op: ring.OpSend, RemoteQPN: 9, AH: uint32(p)})
	}
	if err := a.e.SendDatagram(routes[1], 1, 0, make([]byte, 24)); err != nil {
		t.Fatal(err)
	}
	out := make([]frame.Out, 16)
	for i, step := range []struct {
		priority uint8
		psns     []ib.PSN
	}{
		{0, []ib.PSN{first, first + 1}}, {0, nil}, {6, []ib.PSN{0, first + 2}}, {0, []ib.PSN{first + 3}}, {6, nil},
	} {
		n := a.e.Transmit(0, step.priority, out)
		var psns []ib.PSN
		for k := range out[:n] {
			psns = append(psns, ib.BTH(out[k].Head[frame.HeadRoom:]).PSN())
		}
		if len(psns) != len(step.psns) || n > 0 && (psns[0] != step.psns[0] || psns[n-1] != step.psns[n-1]) {
			t.Errorf("step %d: PSNs %v leave at priority %d, want %v", i, psns, step.priority, step.psns)
		}
	}
}
