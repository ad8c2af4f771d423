package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/ib"
)

// pacer is a congestion.Controller that allows a turn every so often, and records what it is told.
type pacer struct {
	congestion.Controller
	every    time.Duration
	next     clock.Time
	turns    int
	sent     int
	notified int
	late     []clock.Time // turns before their time
}

func (p *pacer) NextSend(now clock.Time) clock.Time { return max(now, p.next) }

func (p *pacer) Sent(now clock.Time, n int) {
	if now < p.next {
		p.late = append(p.late, now)
	}
	p.turns++
	p.sent += n
	p.next = now.Add(p.every)
}

func (p *pacer) Notified(now clock.Time) int {
	p.notified++
	return p.Controller.Notified(now)
}

// A queue pair whose controller limits the rate sends at the times that it names and not before, without a retry, and the
// engine's deadline says when that is.
func TestTurns_PacedByController(t *testing.T) {
	f := newFlow(t, 1024, 64<<10, ring.OpWrite)
	p := &pacer{Controller: f.a.q.win.control, every: 10 * time.Microsecond}
	f.a.q.win.control = p
	const messages = 20
	for range messages {
		f.a.post(f.wr)
	}
	done := 0
	for start := f.now; done < messages; {
		for f.a.e.Pending() != 0 || f.b.e.Pending() != 0 {
			f.w.carry(f.now, f.a.host, f.b.host)
			f.w.carry(f.now, f.b.host, f.a.host)
		}
		if done += f.a.e.Completions(f.comps[:]); done == messages {
			break
		}
		due := f.a.e.Deadline()
		if due <= f.now || due > p.next {
			t.Fatalf("after %v with %d of %d done the engine has its next turn at %v, want %v", f.now.Sub(start), done, messages,
				due.Sub(start), p.next.Sub(start))
		}
		f.now = due
		f.a.e.Advance(f.now)
	}
	if len(p.late) > 0 || p.sent != messages*64 || p.turns < messages {
		t.Errorf("%d packets in %d turns, of which %d too early; want %d and none", p.sent, p.turns, len(p.late), messages*64)
	}
	if c := f.a.e.Counters(); c.RetransmittedPackets != 0 || c.Probes != 0 {
		t.Errorf("%d retransmissions, %d probes", c.RetransmittedPackets, c.Probes)
	}
}

// A queue pair that ends while it waits for its time leaves no timer behind.
func TestDestroy_WhilePaced(t *testing.T) {
	f := newFlow(t, 1024, 64, ring.OpWrite)
	f.a.q.win.control = &pacer{Controller: f.a.q.win.control, next: f.now.Add(time.Second)}
	f.a.post(f.wr)
	if n := f.a.e.Transmit(f.now, 0, f.w.out); n != 0 || f.a.e.Deadline() != f.now.Add(time.Second) {
		t.Fatalf("%d packets, deadline %v", n, f.a.e.Deadline())
	}
	f.a.e.Destroy(f.now, f.a.q)
	if len(f.a.e.paced.heap) != 0 {
		t.Error("the timer is left")
	}
}

// A congestion notification from the peer reaches the controller of its destination; one from elsewhere does not.
func TestNotification_ReachesController(t *testing.T) {
	f := newFlow(t, 1024, 64, ring.OpWrite)
	p := &pacer{Controller: f.a.q.win.control}
	f.a.q.win.control = p
	f.a.post(f.wr)
	in := arrivals(f.w.out[:f.a.e.Transmit(f.now, 0, f.w.out)])
	cnp := in[0]
	cnp.Src, cnp.Dst = cnp.Dst, cnp.Src
	cnp.Data = make([]byte, ib.BTHLen+16)
	ib.BTH(cnp.Data[:ib.BTHLen]).Encode(ib.CNP, false, false, 0, 0xffff, ib.QPN(f.a.q.num), 0)
	forged := cnp
	forged.Src = forged.Dst
	for range 2 {
		in = append(in[:0], forged)
		f.a.e.Receive(f.now, in)
	}
	if p.notified != 0 {
		t.Errorf("%d notifications from elsewhere", p.notified)
	}
	f.a.e.Receive(f.now, append(in[:0], cnp))
	if c := f.a.e.Counters().CongestionNotices; p.notified != 1 || c != 3 {
		t.Errorf("%d notifications of %d counted, want 1 of 3", p.notified, c)
	}
}
