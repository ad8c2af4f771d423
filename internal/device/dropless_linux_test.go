package device

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/vswitch"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestDropless_Waits: in dropless mode a send that finds no receive waits for one, and is neither lost nor answered by an RNR NAK; what
// comes behind it keeps its order (WinOF-2 Ethernet, Dropless Mode).
func TestDropless_Waits(t *testing.T) {
	x := pairs(t, whole{"datagrams", overDatagrams}.on(stationsOf(0, false)), AdapterConfig{})
	b := x.b
	b.p.check(b.p.host.SetDropless(b.p.adapter, port.Forever))
	src, dst := x.a.p.buffer(64), b.p.buffer(64*64)
	for i := range 3 {
		binary.BigEndian.PutUint64(src.b[8*i:], uint64(i))
		x.a.postSend(uint64(i), ring.OpSend, src.sge(8*i, 8))
	}
	await.Eventually(t, "three packets wait", func() bool { return b.p.flow().Waiting >= 3 })
	for i := range 3 {
		b.postRecv(uint64(i), dst.sge(64*i, 64))
		e := b.cq.next()
		wantSuccess(t, e, uint64(i), ring.CQRecv)
		if got := binary.BigEndian.Uint64(dst.b[64*i:]); got != uint64(i) || e.ByteLen != 8 {
			t.Errorf("message %d is %d", i, got)
		}
	}
	for i := range 3 {
		wantSuccess(t, x.a.cq.next(), uint64(i), ring.CQSend)
	}
	c := b.p.host.Counters()[b.p.adapter]
	if c.Transport.ResponderRNRNAK != 0 || c.Flow.States == 0 || c.Flow.Overruns != [8]uint64{} {
		t.Errorf("%d RNR NAKs, %+v", c.Transport.ResponderRNRNAK, c.Flow)
	}
	if n := counter(t, b.p, "Device detected stalled state"); n != c.Flow.States {
		t.Errorf("programs read that the device stalled %d times, want %d", n, c.Flow.States)
	}
}

// TestDropless_Expires: a packet that waits for too long is lost, the mode is left, and whoever wants to know it is told for which queue
// it has waited.
func TestDropless_Expires(t *testing.T) {
	told := make(chan uint32, 4)
	var ends [2]*program
	links := overDatagrams(t, stationsOf(0, false))
	for i, s := range stationsOf(0, false) {
		h := newHost(t, Config{Seed: uint64(i + 1), DroplessExpired: func(_, queue uint32) { told <- queue }})
		ends[i] = newProgram(t, h, h.add(t, AdapterConfig{Link: links[i], Addr: s.Prefixes[0].Addr(), MAC: s.MAC, Networks: s.Prefixes}))
	}
	p := paused{a: ends[0], b: ends[1]}
	send, done := p.datagramsAt(0)
	p.b.check(p.b.host.SetDropless(p.b.adapter, 5*time.Millisecond))
	send()
	wantSuccess(t, done.next(), 0, ring.CQSend)
	select {
	case <-told:
	case <-time.After(await.Limit):
		t.Fatal("nobody is told")
	}
	c := p.b.host.Counters()[p.b.adapter]
	if s := p.b.flow(); s.Dropless != 0 || s.Waiting != 0 || c.Transport.DiscardedUD != 1 {
		t.Errorf("%+v, %d datagrams lost", s, c.Transport.DiscardedUD)
	}
	send() // as without the mode
	await.Eventually(t, "the next one is lost at once", func() bool {
		return p.b.host.Counters()[p.b.adapter].Transport.DiscardedUD == 2
	})
}

// TestDropless_LosesNothing: a sender of datagrams that nobody takes is paused, and goes on when receives are posted: none is lost,
// duplicated or reordered, although there is nothing above them that would notice.
func TestDropless_LosesNothing(t *testing.T) {
	const (
		qkey  = 0x1234
		size  = 1024
		many  = 3000
		depth = 64
	)
	for _, c := range []struct {
		wire  string
		scope pause.Scope
	}{{"wire", pause.Whole}, {"wire", pause.Only(1 << 0)}, {"switch", pause.Whole}, {"switch", pause.Only(1 << 0)}} {
		t.Run(c.wire+" "+c.scope.Mode.String(), func(t *testing.T) {
			var x, y *program
			scope, between := c.scope, new(virtualSwitch)
			if c.wire == "wire" {
				x, y = whole{"datagrams", overDatagrams}.on(stationsOf(0, false)).make(t, AdapterConfig{Speed: 1e8})
			} else {
				x, y = whole{"a switch", between.open}.on(stationsOf(0, false)).make(t, AdapterConfig{Speed: 1e8})
				between.hosts[0].Store(x.host)
				between.hosts[1].Store(y.host)
			}
			x.check(x.host.SetFlowControl(x.adapter, FlowControl{Obeys: scope}))
			y.check(y.host.SetFlowControl(y.adapter, FlowControl{Asks: scope}))
			y.check(y.host.SetDropless(y.adapter, port.Forever))
			a, b := x.qp(command.CreateQP{Type: command.UD}, x.cq(256)), y.qp(command.CreateQP{Type: command.UD}, y.cq(256))
			a.toDatagrams(qkey)
			b.toDatagrams(qkey)
			ah, err := x.c.CreateAH(bg, command.CreateAH{PD: x.pd, AV: command.AddressVector{Addr: command.AddrFrom(y.addr)}})
			x.check(err)
			src, dst := x.buffer(depth*size), y.buffer(depth*(size+40))
			sent, left, got := 0, 0, 0
			inFlight := 1 // until the first one has arrived, and the neighbour is known
			send := func() {
				for ; sent < many && sent-left < inFlight; sent++ {
					at := sent % depth * size
					binary.BigEndian.PutUint64(src.b[at:], uint64(sent))
					wr := ring.SendWR{ID: uint64(sent), Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1, AH: uint32(ah),
						RemoteQPN: b.q.Number, QKey: qkey}
					wr.SGE[0] = src.sge(at, size)
					a.post(wr)
				}
				var e [16]ring.CQE
				x.c.Poll(1)
				left += a.cq.Poll(e[:])
			}
			b.postRecv(0, dst.sge(0, size+40))
			send()
			wantSuccess(t, b.cq.next(), 0, ring.CQRecv)
			got, inFlight = 1, depth
			for deadline := time.Now().Add(await.Limit); x.flow().Paused == 0; send() {
				if time.Now().After(deadline) {
					t.Fatalf("%d datagrams, and nobody pauses their sender: %+v", left, y.flow())
				}
			}
			for range 100 {
				send()
			}
			if stopped := left; stopped == many {
				t.Error("all have left, although their sender is paused")
			}
			posted := 1
			for deadline := time.Now().Add(await.Limit); got < many; send() {
				for ; posted < many && posted-got < 8; posted++ {
					b.postRecv(uint64(posted), dst.sge(posted%depth*(size+40), size+40))
				}
				var e [16]ring.CQE
				y.c.Poll(1)
				for _, e := range e[:b.cq.Poll(e[:])] {
					if n := binary.BigEndian.Uint64(dst.b[int(e.ID)%depth*(size+40)+40:]); e.Status != ring.Success || n != uint64(got) {
						t.Fatalf("datagram %d comes as number %d, %v; %d packets were not sent", n, got, e.Status,
							x.host.Counters()[x.adapter].Link.SendErrors)
					}
					got++
				}
				if time.Now().After(deadline) {
					t.Fatalf("%d of %d have come", got, many)
				}
			}
			d, c := x.host.Counters()[x.adapter], y.host.Counters()[y.adapter] // in this order: what was obeyed was asked before
			if c.Flow.Overruns != [8]uint64{} || c.Transport.DiscardedUD != 0 || c.Link.ReceiveDrops != 0 {
				t.Errorf("lost: %v, %d, %d", c.Flow.Overruns, c.Transport.DiscardedUD, c.Link.ReceiveDrops)
			}
			asked, obeyed := c.Flow.Global, d.Flow.Global
			if scope.Mode == pause.PerPriority {
				asked, obeyed = c.Flow.Priority[0], d.Flow.Priority[0]
			}
			if asked.Sent == 0 || obeyed.Received == 0 || obeyed.ReceivedTime == 0 || asked.SentTime == 0 {
				t.Errorf("asked %+v, obeyed %+v", asked, obeyed)
			}
			if s := between.Switch; s == nil && obeyed.Received > asked.Sent {
				t.Errorf("%d pauses were obeyed, and %d sent", obeyed.Received, asked.Sent)
			} else if s != nil {
				if p := s.Status().Ports; p[0].PausesSent < obeyed.Received || p[1].PausesReceived < asked.Sent || p[1].QueueDrops != 0 {
					t.Errorf("ports of the switch %+v; asked %+v, obeyed %+v", p, asked, obeyed)
				}
			}
			t.Logf("asked %+v, obeyed %+v", asked, obeyed)
		})
	}
}

// TestDropless_RawPackets: in dropless mode frames wait for the receives of raw packet queue pairs, in order, and of all those to which
// they go: none is lost (WinOF-2 Ethernet, Dropless Mode: of an RQ).
func TestDropless_RawPackets(t *testing.T) {
	x, y := whole{"datagrams", overDatagrams}.on(stationsOf(0, false)).make(t, AdapterConfig{})
	y.check(y.host.SetDropless(y.adapter, port.Forever))
	tx, rx, also := x.rawEnd(), y.rawEnd(), y.rawEnd()
	to := [6]byte{2, 0, 0, 0, 9, 1}
	rx.flow(toMAC(to, 0))
	also.flow(toMAC(to, 0))
	frames := make([][]byte, 3)
	for i := range frames {
		frames[i] = udpFrame(to, [6]byte{2, 0, 0, 0, 9, 2}, uint16(i), 100+i)
		tx.sends(frames[i])
	}
	also.receive(3)
	await.Eventually(t, "the frames wait for one of the two queue pairs", func() bool { return y.flow().Waiting >= 3 })
	for i, f := range frames {
		rx.postRecv(0, rx.b.sge(0, 8192))
		if got := rx.got(); !bytes.Equal(got, f) {
			t.Errorf("frame %d: got %d other bytes", i, len(got))
		}
		if got := also.got(); !bytes.Equal(got, f) {
			t.Errorf("frame %d: the other queue pair got %d other bytes", i, len(got))
		}
	}
	c := y.host.Counters()[y.adapter]
	if c.Transport.RawDiscarded != 0 || c.Flow.Overruns != [8]uint64{} {
		t.Errorf("%d frames lost, %v overran", c.Transport.RawDiscarded, c.Flow.Overruns)
	}
}

// listened is a link whose MAC control frames are shown, however many there are: a pause at full speed is repeated each 170 us.
type listened struct {
	link.Link
	said *pauses
}

// pauses are the first and the last of some MAC control frames.
type pauses struct {
	mu          sync.Mutex
	first, last *eth.Pause
}

func (p *pauses) say(f eth.Pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last = &f; p.first == nil {
		p.first = &f
	}
}

func (p *pauses) get() (first, last *eth.Pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first, p.last
}

func (l listened) Send(out []frame.Out) (int, error) {
	n, err := l.Link.Send(out)
	for i := range out[:n] {
		if f, bad := eth.ParsePause(out[i].Head[out[i].HeadStart:out[i].HeadEnd]); bad == nil {
			l.said.say(f)
		}
	}
	return n, err
}

// TestFlowControl_Resumes: an adapter that is disabled, and a driver that ends, tell their peer to go on, if it was told to pause: else it
// would be silent until its time is over.
func TestFlowControl_Resumes(t *testing.T) {
	for name, end := range map[string]func(p *program) error{
		"disabled": func(p *program) error { return p.host.SetAdapterState(p.adapter, false) },
		"closed":   func(p *program) error { return p.host.Close() },
	} {
		for _, scope := range []pause.Scope{pause.Whole, pause.Only(1 << 0)} {
			t.Run(name+" "+scope.Mode.String(), func(t *testing.T) {
				said := new(pauses)
				x, y := whole{"datagrams", func(t *testing.T, stations [2]link.Station) [2]link.Link {
					l := overDatagrams(t, stations)
					l[1] = listened{l[1], said}
					return l
				}}.on(stationsOf(0, false)).make(t, AdapterConfig{})
				y.check(y.host.SetFlowControl(y.adapter, FlowControl{Asks: scope}))
				y.check(y.host.SetDropless(y.adapter, port.Forever))
				send, done := (&paused{a: x, b: y}).datagramsAt(0)
				first, _ := said.get()
				for ; first == nil; first, _ = said.get() {
					send()
					wantSuccess(t, done.next(), 0, ring.CQSend)
				}
				if first.Quanta[0] == 0 || y.flow().Told == 0 {
					t.Fatalf("first it says %+v", first)
				}
				y.check(end(y))
				_, last := said.get()
				single := scope.Mode == pause.PerPriority
				if last.Quanta != [8]uint16{} || last.PerPriority != single || single && last.Enabled != 1 {
					t.Errorf("last it says %+v", last)
				}
			})
		}
	}
}

// virtualSwitch is a switch between two hosts that are told when something comes.
type virtualSwitch struct {
	*vswitch.Switch
	hosts [2]atomic.Pointer[Host]
}

func (v *virtualSwitch) open(t *testing.T, _ [2]link.Station) (l [2]link.Link) {
	var err error
	if v.Switch, err = vswitch.New(bridge.Config{}); err != nil {
		t.Fatal(err)
	}
	for i := range l {
		cfg := vswitch.PortConfig{PortConfig: bridge.PortConfig{PVID: 1, MTU: 4200}, Notify: func() {
			if h := v.hosts[i].Load(); h != nil {
				h.Wake()
			}
		}}
		if l[i], err = v.Open(cfg); err != nil {
			t.Fatal(err)
		}
	}
	return l
}
