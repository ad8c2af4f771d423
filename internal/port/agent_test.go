package port

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// agentMAC is where frames for the agents of these tests go.
var agentMAC = eth.MAC{0x01, 0x80, 0xc2, 0, 0, 0x0e}

// agent is an Agent's function.
type agent struct {
	card
	off bool
}

func (a *agent) Takes(head []byte) bool { return !a.off && eth.MAC(head) == agentMAC }

// TestAgent: a wire's agent takes its frames before anybody else, and only while it wants them; the others keep their order. What it
// sends leaves, and stays nobody's here.
func TestAgent(t *testing.T) {
	for _, two := range []bool{false, true} {
		var p Port
		w := &Wire{}
		c, _ := cardOn(&p, w, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 1}})
		if two {
			cardOn(&p, w, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 2}})
		}
		f := &agent{}
		at := p.Attach(f, Station{Kind: Agent})
		at.Plug(w, netip.Addr{}, nil)
		arrive := func(macs ...eth.MAC) {
			var in []frame.In
			for _, m := range macs {
				in = append(in, frame.In{Data: ethernetTo(m, 0, 46), Raw: true})
			}
			p.Receive(0, w, in)
		}
		mine, others := eth.MAC{2, 0, 0, 0, 0, 1}, eth.Broadcast
		arrive(agentMAC)
		arrive(mine, agentMAC, others, agentMAC, mine)
		if len(f.in) != 3 || len(c.in) != 3 || eth.MAC(c.in[1].Data) != others {
			t.Fatalf("two functions %v: the agent has %d frames, the function %d", two, len(f.in), len(c.in))
		}
		f.off = true
		arrive(agentMAC)
		if len(f.in) != 3 || len(c.in) != 4 {
			t.Errorf("off: the agent has %d frames, the function %d", len(f.in), len(c.in))
		}
		out := make([]frame.Out, 4)
		f.send = []frame.In{{Data: ethernetTo(agentMAC, 0, 46)}}
		if n := p.Transmit(0, out); n != 1 {
			t.Fatalf("%d frames leave", n)
		}
		if to, n := p.Run(out[:1]); to != w || n != 1 || out[0].Inside || len(c.in) != 4 {
			t.Errorf("by %v, inside %v, %d frames for the function", to, out[0].Inside, len(c.in))
		}
		p.Detach(at)
		f.off = false
		if arrive(agentMAC); len(f.in) != 3 || len(c.in) != 5 {
			t.Errorf("gone: the agent has %d frames, the function %d", len(f.in), len(c.in))
		}
	}
}

// BenchmarkReceive_Agent is what an agent costs frames that are not for it: with none, and with one. They are short, so that all are
// in the cache: whoever gets them reads their headers anyway.
func BenchmarkReceive_Agent(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(map[bool]string{false: "none", true: "one"}[with], func(b *testing.B) {
			var p Port
			w := &Wire{}
			c, _ := cardOn(&p, w, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 1}})
			if with {
				p.Attach(&agent{}, Station{Kind: Agent}).Plug(w, netip.Addr{}, nil)
			}
			in := make([]frame.In, 64)
			for i := range in {
				in[i] = frame.In{Data: ethernetTo(eth.MAC{2, 0, 0, 0, 0, 1}, 0, 46), Raw: true}
			}
			b.ReportAllocs()
			for b.Loop() {
				c.in = c.in[:0]
				p.Receive(0, w, in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(in)), "ns/frame")
		})
	}
}
