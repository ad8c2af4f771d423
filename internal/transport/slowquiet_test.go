package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

// TestHeldCopyIsQuiet: while a copy at the responder is held for a second the two ends do not go on asking and answering
// each other at the speed of the network: what is sent is bounded by the timers. When the copy ends all requests
// complete.
func TestHeldCopyIsQuiet(t *testing.T) {
	for _, c := range []struct {
		name     string
		op       ring.WROp
		requests int
		size     int
		open     int // requests whose memory is held; the ones before it are reached within the call
	}{
		{"write", ring.OpWrite, 1, 100, 0},
		{"long write", ring.OpWrite, 1, 9000, 0},
		{"sends", ring.OpSend, 8, 100, 0},
		{"long sends", ring.OpSend, 8, 9000, 0},
		{"many writes", ring.OpWrite, 200, 100, 0},
		{"many sends", ring.OpSend, 200, 100, 100},
		{"many long writes", ring.OpWrite, 100, 9000, 0},
		{"second write", ring.OpWrite, 2, 100, 1},
		{"read", ring.OpRead, 2, 9000, 0},
		{"atomic", ring.OpFetchAdd, 2, 8, 0},
	} {
		for _, lossy := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: " lossy"}[lossy], func(t *testing.T) {
				n, a, b := newPair(t, 1, command.RC)
				p := defaultConnection()
				p.timeout = 14
				connect(a, b, p)
				a.region(regionAt, make([]byte, regionSize), allowAll)
				mem := &owner{regionAt, make([]byte, regionSize), false}
				if _, err := b.mem.Register(memory.Region{PD: testPD, Base: regionAt, Length: regionSize, Access: allowAll,
					Remote: mem}); err != nil {
					t.Fatal(err)
				}
				b.give(c.size, c.requests)
				post := func(k int) {
					for range k {
						a.do(c.op, c.size)
					}
				}
				// A round trip is known, and the responder's keeping of packets.
				for range 20 {
					a.do(ring.OpWrite, 4000)
				}
				n.Pass(time.Second / 10)
				post(c.open)
				n.Pass(time.Second / 10)
				ready := len(a.comps)
				if ready != 20+c.open {
					t.Fatalf("%d completions at first", ready)
				}
				mem.later = true
				worse := n.Default // a longer round trip than what was measured
				worse.Delay = 20 * time.Microsecond
				if lossy {
					worse.Loss = 0.1
				}
				n.Link(a.port, b.port).Set(worse)
				n.Link(b.port, a.port).Set(worse)
				before := n.Stats.Sent
				flight := uint64(c.requests-c.open) * (uint64(c.size)/1024 + 1)
				post(c.requests - c.open)
				n.Pass(time.Second)
				sent := n.Stats.Sent - before
				t.Logf("%d packets for %d, %d lost", sent, flight, n.Stats.Lost)
				if len(a.comps) != ready {
					t.Fatalf("completed while the copy was held: %+v", a.comps[ready:])
				}
				if most := 60 + 12*flight; sent > most {
					t.Errorf("%d packets were sent while the copy was held, want at most %d", sent, most)
				}
				finishHeld(n, a, b, 20+c.requests)
				for _, e := range a.comps[ready:] {
					if e.Status != ring.Success {
						t.Errorf("completion %+v, want success", e)
					}
				}
				if len(a.comps) != 20+c.requests {
					t.Errorf("%d completions, want %d", len(a.comps), 20+c.requests)
				}
			})
		}
	}
}

// finishHeld carries out the copies that were held until a has n completions.
func finishHeld(net *sim.Network, a, b *end, n int) {
	for end := net.Now() + second/2; len(a.comps) < n && net.Now() < end; {
		carryOutAll(b, net)
		net.Pass(time.Millisecond)
	}
}
