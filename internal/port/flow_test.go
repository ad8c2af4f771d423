package port

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestFlow_TakesControl: MAC control frames are the port's, with and without flow control and whatever their address is: no function
// gets any, and no other of the port what one of them sends (IEEE 802.3, 31.3). The others keep their order.
func TestFlow_TakesControl(t *testing.T) {
	for _, two := range []bool{false, true} {
		for _, cfg := range []pause.Config{{}, {Obeys: pause.Only(8)}} {
			var p Port
			w := &Wire{}
			mac, other := eth.MAC{2, 0, 0, 0, 0, 1}, eth.MAC{2, 0, 0, 0, 0, 2}
			c, _ := cardOn(&p, w, Station{MAC: mac, Promiscuous: true})
			d := c
			if two {
				d, _ = cardOn(&p, w, Station{MAC: other})
			}
			p.SetFlowControl(0, w, cfg)
			var in []frame.In
			for i, dst := range []eth.MAC{eth.PauseMAC, mac, other, eth.Broadcast, {2, 9}} {
				b := (&eth.Pause{PerPriority: true, Enabled: 8, Quanta: [8]uint16{3: 100}}).Append(nil)
				copy(b, dst[:])
				in = append(in, frame.In{Data: b, Raw: true}, frame.In{Data: ethernetTo(mac, 0, 46+i), Raw: true})
			}
			in = append(in, frame.In{Data: in[0].Data, Raw: true, BadFCS: true})
			p.Receive(0, w, in)
			if len(c.in) != 5 || len(c.in[4].Data)-len(c.in[3].Data) != 1 || two && len(d.in) != 0 {
				t.Errorf("two functions %v: they have %d and %d frames", two, len(c.in), len(d.in))
			}
			mine := uint64(2) // to the group and to its own address
			if two {
				mine = 3
			}
			x := p.FlowControl().Counters(0)
			if cfg.Obeys.Mode == pause.None {
				mine = x.Ignored - mine
			} else {
				mine -= x.Priority[3].Received
			}
			if mine != 0 || p.ControlFrames() != 6 {
				t.Errorf("two functions %v, %+v: %d control frames, counted %+v", two, cfg, p.ControlFrames(), x)
			}
			c.send = []frame.In{{Data: in[4].Data, Raw: true}} // to the other function
			p.Scheduler.Pause(0)
			out := make([]frame.Out, 4)
			if n := p.Transmit(0, out); n != 1 || out[0].Inside {
				t.Errorf("%d frames leave, inside %v", n, out[0].Inside)
			}
			if p.Advance(0); two && len(d.in) != 0 {
				t.Error("a control frame went from function to function")
			}
		}
	}
}

// TestFlow_SendsPauses: a pause leaves before everything else, although the other end has paused all that is sent, by the wire that it
// is for.
func TestFlow_SendsPauses(t *testing.T) {
	var p Port
	w := &Wire{}
	c, _ := cardOn(&p, w, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 1}})
	lldp := p.Attach(&agent{card: card{queues: queues{due: clock.Never}}}, Station{Kind: Agent})
	lldp.Plug(w, netip.Addr{}, nil)
	c.send = []frame.In{{Data: ethernetTo(eth.Broadcast, 0, 46)}}
	p.SetFlowControl(0, w, pause.Config{Obeys: pause.Whole, Asks: pause.Only(1 << 3), MAC: eth.MAC{2, 0, 0, 0, 0, 1}})
	p.Receive(0, w, []frame.In{{Data: (&eth.Pause{Quanta: [8]uint16{100}}).Append(nil), Raw: true}})
	out := make([]frame.Out, 4)
	if p.Pending() || p.Transmit(0, out) != 0 {
		t.Fatal("it sends in a pause")
	}
	if due := p.Deadline(); due != 512 { // 100 quanta at 100 Gb/s
		t.Errorf("it is due at %d", due)
	}
	p.FlowControl().Ask(1<<3 | 1<<4)
	if !p.Pending() || p.Deadline() != 0 || p.Transmit(0, out) != 1 {
		t.Fatal("no pause leaves")
	}
	got, err := eth.ParsePause(out[0].Head[out[0].HeadStart:out[0].HeadEnd])
	want := eth.Pause{Src: eth.MAC{2, 0, 0, 0, 0, 1}, PerPriority: true, Enabled: 8, Quanta: [8]uint16{3: 0xffff}}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if to, n := p.Run(out[:1]); to != w || n != 1 {
		t.Errorf("by %v, %d", to, n)
	}
	if p.Pending() || p.Transmit(0, out) != 0 {
		t.Error("it says it twice")
	}
	p.Advance(512)
	if p.Transmit(512, out) != 1 {
		t.Error("nothing leaves after the pause")
	}
}

// TestFlow_Reclaims: a function that has only paused packets left gets those back that it has handed out.
func TestFlow_Reclaims(t *testing.T) {
	var p Port
	w := &Wire{}
	f := &lender{card: card{queues: queues{due: clock.Never}}}
	s := p.Attach(f, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 1}, Kind: Ethernet})
	s.Plug(w, netip.Addr{}, nil)
	p.SetFlowControl(0, w, pause.Config{Obeys: pause.Only(8)})
	f.send, f.lent = []frame.In{{Data: ethernetTo(eth.Broadcast, 0, 46)}}, true
	p.Scheduler.Pause(1)
	out := make([]frame.Out, 4)
	if !p.Pending() || p.Deadline() != 0 || p.Transmit(0, out) != 0 || f.lent || len(f.send) != 1 {
		t.Errorf("packets are still lent: %v", f.lent)
	}
	if p.Pending() {
		t.Error("there is still something to do")
	}
}

// lender is a function that has packets handed out.
type lender struct {
	card
	lent bool
}

func (l *lender) Lent() bool { return l.lent }

func (l *lender) Transmit(now clock.Time, priority uint8, out []frame.Out) int {
	l.lent = false
	return l.card.Transmit(now, priority, out)
}

// BenchmarkReceive_FlowControl is what flow control costs received frames that are no pauses: with no wire of whole frames, with flow
// control off and on, and in dropless mode with receives for all.
func BenchmarkReceive_FlowControl(b *testing.B) {
	for _, name := range []string{"none", "off", "on", "dropless"} {
		b.Run(name, func(b *testing.B) {
			var p Port
			w, mac := &Wire{}, eth.MAC{2, 0, 0, 0, 0, 1}
			c := &taker{card: card{queues: queues{due: clock.Never}}}
			p.Attach(c, Station{MAC: mac, Kind: Ethernet}).Plug(w, netip.Addr{}, nil)
			switch name {
			case "off":
				p.SetFlowControl(0, w, pause.Config{})
			case "on":
				p.SetFlowControl(0, w, pause.Config{Obeys: pause.Only(8), Asks: pause.Only(8)})
			case "dropless":
				p.SetFlowControl(0, w, pause.Config{Obeys: pause.Only(8), Asks: pause.Only(8)})
				p.SetDropless(Dropless{Timeout: Forever})
			}
			in := make([]frame.In, 64)
			for i := range in {
				in[i] = frame.In{Data: ethernetTo(mac, 0, 46), Raw: true}
			}
			b.ReportAllocs()
			for b.Loop() {
				c.in = c.in[:0]
				p.Receive(0, w, in)
				p.Advance(0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(in)), "ns/frame")
		})
	}
}

// taker is a function that has a receive for everything.
type taker struct{ card }

func (t *taker) Take(now clock.Time, in []frame.In) (int, uint32) {
	t.Receive(now, in)
	return len(in), 0
}

// patient is a function that is told where nothing is lost.
type patient struct {
	card
	lossless uint8
}

func (p *patient) SetLossless(priorities uint8) { p.lossless = priorities }

// TestFlow_Lossless: functions know at which priorities the port obeys pauses, those too that come later, and that it obeys none while the
// receive path stands still.
func TestFlow_Lossless(t *testing.T) {
	d := newDropless(Forever, pause.Scope{})
	var all []*patient
	add := func() {
		x := &patient{card: card{queues: queues{due: clock.Never}}}
		d.Attach(x, Station{MAC: eth.MAC{2, 0, 0, 0, 1, byte(len(all))}}).Plug(d.w, netip.Addr{}, nil)
		all = append(all, x)
	}
	want := func(when string, priorities uint8) {
		t.Helper()
		for i, x := range all {
			if x.lossless != priorities {
				t.Errorf("%s: function %d knows %08b, want %08b", when, i, x.lossless, priorities)
			}
		}
	}
	add()
	d.SetFlowControl(0, d.w, pause.Config{Obeys: pause.Only(1 << 3)})
	want("PFC", 1<<3)
	add()
	d.Advance(1)
	want("one more", 1<<3)
	d.SetFlowControl(2, d.w, pause.Config{Obeys: pause.Whole})
	want("global pause", pause.All)
	d.SetWatch(Watch{Timeout: time.Millisecond})
	d.arrive(2, 1, 100, 3)
	for now := micro(1); now < micro(2000); now += micro(10) {
		d.Advance(now)
	}
	want("while the path stands still", 0)
	d.f.receives = 1
	d.Advance(micro(3000))
	d.Advance(micro(3001))
	want("afterwards", pause.All)
}
