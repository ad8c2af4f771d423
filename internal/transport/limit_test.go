package transport

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/eth"
)

// limitedEnds returns a queue pair of a type that is ready to send, the host that it sends to, and a request of some bytes.
func limitedEnds(t *testing.T, typ command.QPType, size int) (a *end, to *host, wr ring.SendWR) {
	switch typ {
	case command.RC, command.UC:
		h, peer := newHost(t, nil, "10.0.0.1", Config{}), newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x100})
		x, y := h.qp(typ, QPConfig{}), peer.qp(typ, QPConfig{})
		c := defaultConnection()
		c.mtu, c.depth = 1024, 16
		connect(x, y, c)
		ra, rb := x.region(0x10000, make([]byte, size), allowAll), y.region(0x90000, make([]byte, size), allowAll)
		wr = ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: 0x90000, RKey: rb.Key}
		wr.SGE[0] = ring.SGE{Addr: 0x10000, Length: uint32(size), LKey: ra.Key}
		return x, peer, wr
	case command.UD:
		h := newHost(t, nil, "10.0.0.1", Config{})
		routes := []*frame.Route{{Src: h.addr, Dst: newHost(t, nil, "10.0.0.2", Config{}).addr}}
		x, _ := datagramQP(t, h, &routes)
		return x, nil, ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1, SGE: x.sgeAt(0x1000, size), RemoteQPN: 7}
	}
	h := newHost(t, nil, "10.0.0.1", Config{})
	h.e.SetWire(Wire{MAC: eth.MAC{2}, Longest: 1514})
	x := h.qp(command.RawPacket, QPConfig{})
	for _, s := range []command.QPState{command.Init, command.RTR, command.RTS} {
		x.modify(command.ModifyQP{Mask: command.MaskState, State: s}, nil)
	}
	h.region(0x1000, make([]byte, 16384), allowAll)
	return x, nil, ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1, SGE: x.sgeAt(0x1000, size)}
}

// backlog sends from a queue pair that always has requests, for a time, and returns how many bytes left a second, in Mbit/s, and the most
// that left at once. The burst that had gathered before is not counted in the rate.
// Timers wake it later than they should by what late returns.
func backlog(t *testing.T, a *end, to *host, wr ring.SendWR, now clock.Time, during time.Duration,
	late func() time.Duration) (mbps float64, most int) {
	return backlogOf(t, a, to, func() ring.SendWR { return wr }, now, during, late)
}

func backlogOf(t *testing.T, a *end, to *host, next func() ring.SendWR, now clock.Time, during time.Duration,
	late func() time.Duration) (mbps float64, most int) {
	w := newWire()
	var comps [64]Completion
	start, last, sent, posted, depth := now, now, 0, 0, 16
	for end := now.Add(during); now < end; {
		for ; posted < depth; posted++ {
			a.post(next())
		}
		at := 0
		for {
			n := 0
			if a.q.typ == command.RawPacket {
				n = a.e.TransmitRaw(now, a.q.priority, w.out)
				at += framedBytes(w.out[:n])
			} else {
				n = a.turn(now, w.out)
				at += wireBytes(w.out[:n])
			}
			if n > 0 && to != nil {
				w.deliver(now, n, to)
				w.carry(now, to, a.host)
			}
			k := a.e.Completions(comps[:])
			for _, c := range comps[:k] {
				if c.Status != ring.Success {
					t.Fatalf("a request ended with %v", c.Status)
				}
			}
			posted -= k
			for ; posted < depth; posted++ {
				a.post(next())
			}
			if n == 0 && !a.e.Lent() && k == 0 {
				break
			}
		}
		if now > start {
			sent, last = sent+at, now
		}
		most = max(most, at)
		due := a.e.Deadline()
		if due == clock.Never || due <= now {
			t.Fatalf("at %v, with requests in the queue, the next turn is at %v", now.Sub(start), due.Sub(start))
		}
		now = due.Add(late())
		a.e.Advance(now)
	}
	if c := a.e.Counters(); c.RetransmittedPackets != 0 {
		t.Errorf("%d packets were sent again", c.RetransmittedPackets)
	}
	return float64(sent) * 8000 / float64(last.Sub(start)), most
}

func inTime() time.Duration { return 0 }

// TestLimit_Late: a sender that is woken up to 20 ms late keeps its rate, within 2 %; with a burst that it has asked for it sends no more
// than that at once, and so less.
func TestLimit_Late(t *testing.T) {
	for _, typ := range []command.QPType{command.RC, command.UC, command.UD, command.RawPacket} {
		for _, l := range []command.LimitQP{{Rate: 84_000}, {Rate: 500_000}, {Rate: 84_000, MaxBurst: 10_500}} {
			t.Run(fmt.Sprintf("%d/%d/%d", typ, l.Rate, l.MaxBurst), func(t *testing.T) {
				a, to, wr := limitedEnds(t, typ, 1024)
				if err := a.e.Limit(1000, a.q, l); err != nil {
					t.Fatal(err)
				}
				r := rand.New(rand.NewPCG(1, 2))
				got, most := backlog(t, a, to, wr, 1000, time.Second, func() time.Duration { return time.Duration(r.Int64N(20_000_000)) })
				want := float64(l.Rate) / 1000
				switch {
				case l.MaxBurst == 0 && math.Abs(got/want-1) > 0.02:
					t.Errorf("%.3f Mbit/s, want %.3f", got, want)
				case l.MaxBurst != 0 && (most > int(l.MaxBurst) || got > want):
					t.Errorf("%d bytes left at once, want at most %d; %.3f Mbit/s", most, l.MaxBurst, got)
				}
			})
		}
	}
}

// TestLimit_Rate: a queue pair of any type that always has something to send sends at the rate that its program asks for, within 2 %,
// and no more at once than it says.
func TestLimit_Rate(t *testing.T) {
	for _, typ := range []command.QPType{command.RC, command.UC, command.UD, command.RawPacket} {
		for _, size := range []int{64, 1024, 32 << 10} {
			if size > 1024 && (typ == command.UD || typ == command.RawPacket) {
				continue
			}
			for _, l := range []command.LimitQP{{Rate: 1000}, {Rate: 100_000}, {Rate: 1_000_000, MaxBurst: 20_000}, {Rate: 5_000_000}} {
				t.Run(fmt.Sprintf("%d/%dB/%d", typ, size, l.Rate), func(t *testing.T) {
					a, to, wr := limitedEnds(t, typ, size)
					if err := a.e.Limit(1000, a.q, l); err != nil {
						t.Fatal(err)
					}
					if got := a.q.LimitOf(); got != l || !a.q.Limited() {
						t.Errorf("the limit is %+v", got)
					}
					during := max(10*time.Millisecond, time.Duration(4e12/float64(l.Rate)))
					got, most := backlog(t, a, to, wr, 1000, during, inTime)
					if want := float64(l.Rate) / 1000; math.Abs(got/want-1) > 0.02 {
						t.Errorf("%.3f Mbit/s, want %.3f", got, want)
					}
					if l.MaxBurst != 0 && most > int(l.MaxBurst) {
						t.Errorf("%d bytes left at once, want at most %d", most, l.MaxBurst)
					}
				})
			}
		}
	}
}

// TestPace: what leaves by a path with a static rate keeps that, of its program's limit and that the lower counts, and datagrams to
// others do not wait for it but behind it: to each of two destinations in turn a queue pair sends at the lower of their rates.
func TestPace(t *testing.T) {
	for _, typ := range []command.QPType{command.RC, command.UC} {
		for _, c := range []struct{ path, limit, want uint32 }{
			{100_000, 0, 100_000}, {100_000, 40_000, 40_000}, {40_000, 100_000, 40_000},
		} {
			a, to, wr := limitedEnds(t, typ, 32<<10)
			a.e.Pace(1000, a.q.Route(), c.path)
			if c.limit != 0 {
				if err := a.e.Limit(1000, a.q, command.LimitQP{Rate: c.limit}); err != nil {
					t.Fatal(err)
				}
			}
			if got := a.q.LimitOf().Rate; got != c.want || !a.q.Limited() {
				t.Errorf("the limit is %d, want %d", got, c.want)
			}
			got, _ := backlog(t, a, to, wr, 1000, 400*time.Millisecond, inTime)
			if want := float64(c.want) / 1000; math.Abs(got/want-1) > 0.02 {
				t.Errorf("%v: %.3f Mbit/s, want %.3f", c, got, want)
			}
		}
	}
	for _, c := range []struct {
		ahs  []uint32
		want float64
	}{{[]uint32{0}, 400}, {[]uint32{1}, 100}, {[]uint32{0, 1}, 200}} {
		h := newHost(t, nil, "10.0.0.1", Config{})
		fast := &frame.Route{Src: h.addr, Dst: newHost(t, nil, "10.0.0.2", Config{}).addr}
		slow := &frame.Route{Src: h.addr, Dst: newHost(t, nil, "10.0.0.3", Config{}).addr}
		h.e.Pace(1000, fast, 400_000)
		h.e.Pace(1000, slow, 100_000)
		x, _ := datagramQP(t, h, &[]*frame.Route{fast, slow})
		wr := ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1, SGE: x.sgeAt(0x1000, 1024), RemoteQPN: 7}
		i := 0
		got, _ := backlogOf(t, x, nil, func() ring.SendWR {
			i++
			wr.AH = c.ahs[i%len(c.ahs)]
			return wr
		}, 1000, time.Second, inTime)
		if math.Abs(got/c.want-1) > 0.02 {
			t.Errorf("to %v: %.3f Mbit/s, want %.3f", c.ahs, got, c.want)
		}
	}
}

// TestLimit_LowerCounts: of the rates that congestion and the program allow the lower one counts.
func TestLimit_LowerCounts(t *testing.T) {
	for _, c := range []struct{ congestion, limit, want float64 }{{400, 200, 200}, {200, 400, 200}} {
		a, to, wr := limitedEnds(t, command.RC, 32<<10)
		if err := a.e.SetCongestion(everything(c.congestion)); err != nil {
			t.Fatal(err)
		}
		a.e.Receive(1000, []frame.In{notice(a)})
		if err := a.e.Limit(1000, a.q, command.LimitQP{Rate: uint32(c.limit * 1000)}); err != nil {
			t.Fatal(err)
		}
		if got, _ := backlog(t, a, to, wr, 1000, 200*time.Millisecond, inTime); math.Abs(got/c.want-1) > 0.02 {
			t.Errorf("congestion %v and a limit of %v: %.1f Mbit/s", c.congestion, c.limit, got)
		}
	}
}

// TestLimit_Ends: a limit that is taken back, or raised, acts at once for what waits, and ends with a reset.
func TestLimit_Ends(t *testing.T) {
	a, _, wr := limitedEnds(t, command.UC, 1024)
	w := newWire()
	if err := a.e.Limit(0, a.q, command.LimitQP{Rate: 100, MaxBurst: 1}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		a.post(wr)
	}
	if n := a.e.Transmit(0, 0, w.out); n != 1 {
		t.Fatalf("%d packets, want 1", n)
	}
	if n := a.e.Transmit(0, 0, w.out); n != 0 || len(a.e.paced.heap) != 1 {
		t.Fatalf("%d packets, and %d timers", n, len(a.e.paced.heap))
	}
	if err := a.e.Limit(0, a.q, command.LimitQP{}); err != nil {
		t.Fatal(err)
	}
	if n := a.e.Transmit(0, 0, w.out); n != 3 || len(a.e.paced.heap) != 0 {
		t.Fatalf("%d packets without a limit, want 3", n)
	}
	if err := a.e.Limit(0, a.q, command.LimitQP{Rate: 1}); err != nil {
		t.Fatal(err)
	}
	a.modify(command.ModifyQP{Mask: command.MaskState, State: command.Reset}, nil)
	if a.q.Limited() {
		t.Error("the limit outlives a reset")
	}
}

// TestLimit_Answers: what a queue pair answers its peer with does not wait for its limit.
func TestLimit_Answers(t *testing.T) {
	f := newFlow(t, 1024, 16<<10, ring.OpRead)
	if err := f.b.e.Limit(0, f.b.q, command.LimitQP{Rate: 1}); err != nil {
		t.Fatal(err)
	}
	if n := f.run(t, 4); n < 4*17 {
		t.Errorf("%d packets", n)
	}
}

// TestLimit_Refused: limits that make no sense, and queue pairs that do not send.
func TestLimit_Refused(t *testing.T) {
	a, _, _ := limitedEnds(t, command.UC, 64)
	fresh := a.host.qp(command.UC, QPConfig{})
	target := a.host.qp(command.XRCTarget, QPConfig{Domain: 1})
	for _, c := range []struct {
		q    *QP
		l    command.LimitQP
		want command.Code
	}{
		{a.q, command.LimitQP{MaxBurst: 1}, command.Invalid},
		{a.q, command.LimitQP{TypicalPacket: 64}, command.Invalid},
		{fresh.q, command.LimitQP{Rate: 1}, command.State},
		{target.q, command.LimitQP{Rate: 1}, command.Unsupported},
	} {
		var e *command.Error
		if err := a.e.Limit(0, c.q, c.l); !errors.As(err, &e) || e.Code != c.want {
			t.Errorf("%+v: %v, want %v", c.l, err, c.want)
		}
	}
}
