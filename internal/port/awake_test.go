package port

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/wakeup"
	"github.com/softvpi/softvpi/wire/eth"
)

// worker is a function of either kind that sends what is posted to it, and something when a timer ends; it answers what asks for that. It
// completes what it has sent in its next turn, and what has arrived is taken from it in its turns.
type worker struct {
	kind   Kind
	mac    eth.MAC
	addr   netip.Addr
	out    [frame.Priorities][]*frame.Route
	timers []clock.Time
	due    func() // what is done when one ends
	lent   bool
	news   int // arrived, and not taken
	bell   *wakeup.Bell
	log    []string
}

func (x *worker) note(format string, a ...any) { x.log = append(x.log, fmt.Sprintf(format, a...)) }

func (x *worker) post(priority uint8, n int, to *frame.Route) {
	x.out[priority] = append(x.out[priority], many(n, to)...)
	x.bell.Ring()
}

func (x *worker) arm(at clock.Time, do func()) {
	x.timers, x.due = append(x.timers, at), do
	slices.Sort(x.timers)
	x.bell.Ring()
}

func (x *worker) Receive(_ clock.Time, in []frame.In) {
	for i := range in {
		x.note("receives %d bytes", len(in[i].Data))
	}
	x.news += len(in) // the port rings
}

func (x *worker) Advance(now clock.Time) {
	if x.news > 0 {
		x.note("takes %d", x.news)
		x.news = 0
	}
	for len(x.timers) > 0 && x.timers[0] <= now {
		x.note("ends a timer at %d", now)
		x.timers = x.timers[1:]
		x.due()
	}
}

func (x *worker) Deadline() clock.Time {
	switch {
	case x.news > 0:
		return 0
	case len(x.timers) > 0:
		return x.timers[0]
	}
	return clock.Never
}

func (x *worker) Pending() (bits uint8) {
	for p, l := range x.out {
		if len(l) > 0 {
			bits |= 1 << p
		}
	}
	if bits == 0 && x.lent {
		return ^bits
	}
	return bits
}

func (x *worker) Lent() bool { return x.lent }

func (x *worker) Transmit(_ clock.Time, priority uint8, out []frame.Out) int {
	n := min(len(x.out[priority]), len(out))
	for i, r := range x.out[priority][:n] {
		if write(&out[i], r, "data"); x.kind == Ethernet {
			o, h := &out[i], eth.Ethernet{Dst: r.DstMAC, Src: x.mac, Type: eth.TypeARP}
			o.HeadStart = 64
			o.HeadEnd = 64 + uint16(len(h.Append(o.Head[64:64])))
			o.Payload = make([]byte, 46+i%7)
		}
	}
	if x.lent || n > 0 {
		x.note("sends %d at %d", n, priority)
	}
	x.out[priority], x.lent = x.out[priority][n:], n > 0
	return n
}

func (x *worker) SetBell(b *wakeup.Bell) { x.bell = b }
func (x *worker) Rests() bool            { return x.Pending() == 0 && x.news == 0 }

// asked is a worker that the port asks all the time.
type asked struct{ Lender }

// crew are workers at a port with a switch.
type crew struct {
	p       Port
	w       Wire
	sw      *eswitch.Switch
	sleepy  bool
	workers []*worker
	at      []*Station
	slept   int
	out     [20]frame.Out
	log     []string
}

func newCrew(sleepy bool) *crew {
	c := &crew{sleepy: sleepy, sw: eswitch.New(eswitch.Config{})}
	c.w.Embed(c.sw)
	return c
}

// add adds a worker, or puts it at the port again as another kind.
func (c *crew) add(t *rapid.T, i int, kind Kind) {
	last := byte(i + 1)
	x := &worker{kind: kind, mac: eth.MAC{2, 0, 0, 0, 0, last}, addr: netip.AddrFrom4([4]byte{192, 0, 2, last})}
	var f Function = x
	if !c.sleepy {
		f = asked{x}
	}
	err := c.sw.Set(eswitch.VF(i), eswitch.Function{MACs: []eth.MAC{x.mac}, VLAN: eswitch.VLAN{Untagged: true}, Link: eswitch.LinkUp})
	if err != nil {
		t.Fatal(err)
	}
	s := c.p.Attach(f, Station{MAC: x.mac, Kind: kind, At: eswitch.VF(i), Sleeps: func(bool) { c.slept++ }})
	var e *encap.Encap
	if kind == RDMA {
		if e, err = encap.New(encap.RoCEv2, []netip.Addr{x.addr}, link.Capabilities{Raw: true, MaxSegments: 1, MTU: 1500}, 0); err != nil {
			t.Fatal(err)
		}
	}
	s.Plug(&c.w, netip.Addr{}, e)
	if i == len(c.workers) {
		c.workers, c.at = append(c.workers, nil), append(c.at, nil)
	}
	c.workers[i], c.at[i] = x, s
}

// route leads from one worker to another.
func (c *crew) route(from, to int) *frame.Route {
	x, y := c.workers[from], c.workers[to]
	return &frame.Route{Src: x.addr, Dst: y.addr, SrcPort: 50000, SrcMAC: x.mac, DstMAC: y.mac}
}

// turn is a turn of the port.
func (c *crew) turn(now clock.Time) {
	c.p.Advance(now)
	for range 3 {
		n := c.p.Transmit(now, c.out[:])
		if n == 0 {
			break
		}
		for i := range c.out[:n] {
			o := &c.out[i]
			c.log = append(c.log, fmt.Sprintf("%v: %x %d %t", c.p.Sender().MAC, o.Head[o.HeadStart:o.HeadEnd], len(o.Payload), o.Inside))
		}
	}
	c.log = append(c.log, fmt.Sprintf("%d: %t, due %d", now, c.p.Pending(), c.p.Deadline()))
}

// TestRoster_SameTurns: a port whose functions sleep does at every time what one does that asks all in every turn, whatever is posted,
// arrives, is due, comes, goes and changes: the same calls with effects in the same order, the same frames, and the same deadline.
func TestRoster_SameTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, some := newCrew(false), newCrew(true)
		both := [...]*crew{all, some}
		now := clock.Time(1)
		kinds := rapid.SampledFrom([]Kind{RDMA, Ethernet})
		some.p.Scheduler.Pause(0)
		n := rapid.IntRange(2, 9).Draw(t, "workers")
		for i := range n {
			kind := kinds.Draw(t, "kind")
			for _, c := range both {
				c.add(t, i, kind)
			}
		}
		one := rapid.IntRange(0, n-1)
		turns := func(n int, gap time.Duration) {
			for range n {
				for _, c := range both {
					c.turn(now)
				}
				if x := some.p.Overslept(); x != nil {
					t.Fatalf("%v sleeps though it has something to do", x.MAC)
				}
				now = now.Add(gap)
			}
		}
		each := func(do func(c *crew)) {
			for _, c := range both {
				do(c)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"post": func(t *rapid.T) {
				i, j, p, n := one.Draw(t, "from"), one.Draw(t, "to"), rapid.Uint8Range(0, 7).Draw(t, "priority"), rapid.IntRange(1, 70).Draw(t, "n")
				each(func(c *crew) { c.workers[i].post(p, n, c.route(i, j)) })
			},
			"arm": func(t *rapid.T) {
				i, j, d := one.Draw(t, "worker"), one.Draw(t, "to"), rapid.IntRange(0, 5000).Draw(t, "after")
				of := one.Draw(t, "whose packet")
				each(func(c *crew) {
					c.workers[i].arm(now.Add(time.Duration(d)), func() { c.workers[of].post(0, 1, c.route(of, j)) })
				})
			},
			"turn": func(t *rapid.T) { turns(1, time.Duration(rapid.IntRange(0, 2000).Draw(t, "gap"))) },
			"rest": func(t *rapid.T) { turns(restsAfter+9, time.Duration(rapid.IntRange(0, 20).Draw(t, "gap"))) },
			"arrive": func(t *rapid.T) {
				i, multi := one.Draw(t, "worker"), rapid.Bool().Draw(t, "everybody")
				each(func(c *crew) {
					dst := c.workers[i].mac
					if multi {
						dst = eth.Broadcast
					}
					h := eth.Ethernet{Dst: dst, Src: eth.MAC{2, 9}, Type: eth.TypeARP}
					c.p.Receive(now, &c.w, []frame.In{{Data: append(h.Append(nil), make([]byte, 46)...), Raw: true}})
				})
			},
			"switch": func(t *rapid.T) {
				i, on, cut := one.Draw(t, "worker"), rapid.Bool().Draw(t, "on"), rapid.Bool().Draw(t, "cut")
				each(func(c *crew) { c.at[i].Switch(on); c.at[i].Cut(cut) })
			},
			"share": func(t *rapid.T) {
				i, most, least := one.Draw(t, "worker"), rapid.Uint64Range(0, 2).Draw(t, "most"), rapid.Uint64Range(0, 2).Draw(t, "least")
				each(func(c *crew) { c.at[i].SetShare(now, Share{most * 1e9, least * 1e9}) })
			},
			"pause": func(t *rapid.T) {
				p := rapid.Uint8().Draw(t, "priorities")
				each(func(c *crew) { c.p.Scheduler.Pause(p) })
			},
			"renew": func(t *rapid.T) {
				i, kind := one.Draw(t, "worker"), kinds.Draw(t, "kind")
				each(func(c *crew) { c.p.Detach(c.at[i]); c.add(t, i, kind) })
			},
			"": func(t *rapid.T) {
				if !slices.Equal(all.log, some.log) {
					t.Fatalf("the port does not do the same:\n%q\n%q", tail(all.log, some.log), tail(some.log, all.log))
				}
				for i, x := range all.workers {
					if y := some.workers[i]; !slices.Equal(x.log, y.log) {
						t.Fatalf("worker %d does not do the same:\n%q\n%q", i, tail(x.log, y.log), tail(y.log, x.log))
					}
				}
				if *all.p.Counters() != *some.p.Counters() {
					t.Fatalf("counters %+v, want %+v", some.p.Counters(), all.p.Counters())
				}
				for _, c := range both {
					c.log = c.log[:0]
					for _, x := range c.workers {
						x.log = x.log[:0]
					}
				}
			},
		})
		if all.slept > 0 {
			t.Error("a function that is no Sleeper sleeps")
		}
	})
}

// tail returns what follows in a where it differs from b.
func tail(a, b []string) []string {
	for i := range a {
		if i == len(b) || a[i] != b[i] {
			return a[i:min(i+3, len(a))]
		}
	}
	return nil
}

// TestRoster_Asks: a function with nothing to do is asked for nothing after some turns, and again from the first thing on that reaches it:
// a bell, a frame, its deadline, and being switched on.
func TestRoster_Asks(t *testing.T) {
	var p Port
	w := &Wire{}
	sleepers := [3]*sleeper{}
	for i := range sleepers {
		x := &sleeper{}
		x.due = clock.Never
		s := p.Attach(x, Station{MAC: eth.MAC{2, 0, 0, 0, 0, byte(i)}, Kind: Ethernet})
		s.Plug(w, netip.Addr{}, nil)
		sleepers[i], x.s = x, s
	}
	now := clock.Time(0)
	settle := func() {
		t.Helper()
		for range restsAfter + 1 {
			p.Advance(now)
		}
		for i, x := range sleepers {
			if !x.s.Asleep() || x.advanced > restsAfter+1 {
				t.Fatalf("%d does not sleep after %d turns", i, x.advanced)
			}
			x.advanced = 0
		}
	}
	for range restsAfter {
		p.Advance(now)
	}
	for i, x := range sleepers { // also in the turn in which the ones before them fell asleep
		if x.advanced != restsAfter {
			t.Errorf("%d had %d turns of the first %d", i, x.advanced, restsAfter)
		}
		x.advanced = 0
	}
	settle()
	for name, wake := range map[string]func(){
		"bell":  sleepers[1].s.Ring,
		"frame": func() { p.Receive(now, w, []frame.In{{Data: ethernetTo(eth.MAC{2, 0, 0, 0, 0, 1}, 0, 46), Raw: true}}) },
		"switch": func() {
			sleepers[1].s.Switch(false)
			sleepers[1].s.Switch(true)
		},
		"deadline": func() {
			sleepers[1].due = now + 5
			sleepers[1].s.Ring()
			settle()
			if p.Deadline() != now+5 {
				t.Errorf("deadline %d, want %d", p.Deadline(), now+5)
			}
			now, sleepers[1].due = now+5, clock.Never
		},
	} {
		wake()
		p.Advance(now)
		if sleepers[0].advanced != 0 || sleepers[1].advanced != 1 || sleepers[2].advanced != 0 {
			t.Errorf("after a %s %d, %d and %d turns", name, sleepers[0].advanced, sleepers[1].advanced, sleepers[2].advanced)
		}
		settle()
	}
	sleepers[1].out[0] = many(1, &frame.Route{}) // without its bell
	if s := p.Overslept(); s != sleepers[1].s {
		t.Error("nobody notices that a function sleeps though it has something to do")
	}
	p.Detach(sleepers[0].s)
	if sleepers[0].s.Ring(); sleepers[1].s.Asleep() || sleepers[2].s.Asleep() || !p.Pending() {
		t.Error("functions sleep on when another leaves")
	}
}

// sleeper is a function that rests while it has nothing to send.
type sleeper struct {
	queues
	s *Station
}

func (*sleeper) Receive(clock.Time, []frame.In) {}
func (*sleeper) SetBell(*wakeup.Bell)           {}
func (x *sleeper) Rests() bool                  { return x.Pending() == 0 }
