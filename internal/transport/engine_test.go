package transport

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/ib"
)

// nothing is a send queue that is always empty.
type nothing struct{}

func (nothing) Next(*SendWR) (bool, error) { return false, nil }
func (nothing) Release(int)                {}
func (nothing) Pending() (int, error)      { return 0, nil }

// TestIdleQP: an idle connected QP takes no more than 2 KB besides its rings, and runs no timer.
func TestIdleQP(t *testing.T) {
	const count = 20000
	e, err := New(Config{Memory: memory.NewTable(16, nil)})
	if err != nil {
		t.Fatal(err)
	}
	route := &frame.Route{}
	qps := make([]*QP, 0, count)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range count {
		q, err := e.CreateQP(0, QPConfig{Type: command.RC, Send: nothing{}, Recv: noReceives{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []command.QPState{command.Init, command.RTR, command.RTS} {
			var need command.QPMask
			for _, tr := range transitions {
				if tr.from == q.state && tr.to == s {
					need = tr.required[0]
				}
			}
			if err := e.Modify(0, q, attributesFor(need, s), route); err != nil {
				t.Fatal(err)
			}
		}
		qps = append(qps, q)
	}
	out := make([]frame.Out, 64)
	for e.Pending() != 0 {
		e.Transmit(0, 0, out)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / count
	t.Logf("%d bytes a QP, of which the struct %d", each, unsafe.Sizeof(QP{}))
	if each > 2048 {
		t.Errorf("an idle QP takes %d bytes, want at most 2048", each)
	}
	if e.Deadline() != clock.Never {
		t.Error("an idle QP has a timer")
	}
	runtime.KeepAlive(qps)
}

// TestNumbers: QP numbers are handed out in turn, never 0, 1 or the multicast number 0xffffff, and a number is not
// used again until the time-wait of its connection has ended.
func TestNumbers(t *testing.T) {
	e, err := New(Config{Memory: memory.NewTable(16, nil), FirstQPN: 0xfffffd, TimeWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	next := func(now clock.Time) uint32 {
		t.Helper()
		n, err := e.AllocateNumber(now)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if a, b, c := next(0), next(0), next(0); a != 0xfffffd || b != 0xfffffe || c != 2 {
		t.Fatalf("numbers %#x %#x %#x, want 0xfffffd 0xfffffe 0x2", a, b, c)
	}
	q, err := e.CreateQP(0, QPConfig{Number: 2, Type: command.RC, Send: nothing{}, Recv: noReceives{}})
	if err != nil {
		t.Fatal(err)
	}
	q.state = command.RTS
	e.Destroy(0, q)
	e.table.next = 2
	if n := next(clock.Time(time.Second) - 1); n != 3 {
		t.Errorf("number %d while 2 is in time-wait, want 3", n)
	}
	e.table.next = 2
	if n := next(clock.Time(time.Second)); n != 2 {
		t.Errorf("number %d after the time-wait of 2, want 2", n)
	}
	e.FreeNumber(3)
	e.table.next = 3
	if n := next(0); n != 3 {
		t.Errorf("number %d after 3 was given back, want 3", n)
	}
}

// TestRandomNumbers: with a source of random numbers QP numbers are spread over all of them, none is used twice, and
// none that must not be is used: 0, 1, the multicast number, those of other loops and of QPs in time-wait.
func TestRandomNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	e, err := New(Config{Memory: memory.NewTable(16, nil), Random: rng.Uint64, LoopBits: 2, Loop: 3})
	if err != nil {
		t.Fatal(err)
	}
	const count = 20_000
	used, parts, near := map[uint32]bool{}, [64]int{}, 0
	last := uint32(0)
	for range count {
		n, err := e.AllocateNumber(0)
		if err != nil {
			t.Fatal(err)
		}
		if used[n] || n < 2 || n > maxQPN || n&3 != 3 {
			t.Fatalf("number %#x; used before: %v", n, used[n])
		}
		used[n] = true
		parts[n>>18]++
		if d := int32(n - last); d < 1<<14 && d > -1<<14 {
			near++
		}
		last = n
	}
	for i, n := range parts {
		if n < count/len(parts)/2 || n > count/len(parts)*2 {
			t.Errorf("%d of %d numbers are in part %d of %d", n, count, i, len(parts))
		}
	}
	if near > count/100 {
		t.Errorf("%d of %d numbers are near the one before", near, count)
	}
	// A source that always says the same is no reason to hand out a number twice, or none.
	e, _ = New(Config{Memory: memory.NewTable(16, nil), Random: func() uint64 { return 7 }})
	clear(used)
	for range 100 {
		n, err := e.AllocateNumber(0)
		if err != nil || used[n] {
			t.Fatalf("number %#x (%v); used before: %v", n, err, used[n])
		}
		used[n] = true
	}
}

// TestLoopBits: an engine that is told its loop's number puts it into the low bits of all its QP numbers, and finds
// no QP whose number carries another.
func TestLoopBits(t *testing.T) {
	e, err := New(Config{Memory: memory.NewTable(16, nil), LoopBits: 2, Loop: 3})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		q, err := e.CreateQP(0, QPConfig{Type: command.RC, Send: nothing{}, Recv: noReceives{}})
		if err != nil {
			t.Fatal(err)
		}
		if q.num&3 != 3 || e.QP(q.num) != q || e.QP(q.num^1) != nil {
			t.Fatalf("number %#x: low bits %d, want 3; or the number does not find the QP, or its neighbour finds one", q.num, q.num&3)
		}
	}
}

// TestConfig: an invalid configuration is refused by an error that names the field.
func TestConfig(t *testing.T) {
	m := memory.NewTable(1, nil)
	for _, c := range []struct {
		field string
		cfg   Config
	}{
		{"Memory", Config{}},
		{"MTU", Config{Memory: m, MTU: 1500}},
		{"LoopBits", Config{Memory: m, LoopBits: 9}},
		{"Loop", Config{Memory: m, LoopBits: 1, Loop: 2}},
		{"Window", Config{Memory: m, Window: congestion.Config{Start: 64, Max: 32}}},
	} {
		if _, err := New(c.cfg); err == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "invalid value: "), c.field) {
			t.Errorf("error %v, want one that names %s", err, c.field)
		}
	}
}

// TestFairness: 50 QPs that send to one destination all get a share, and the packets in flight stay within the window
// that they share.
func TestFairness(t *testing.T) {
	n := sim.New(1)
	n.Default.Delay = 10 * time.Microsecond
	ha, hb := newHost(t, n, "10.0.0.1", Config{}), newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x1000})
	const count, each = 50, 20
	key := ha.region(regionAt, make([]byte, regionSize), allowAll).Key
	hb.region(regionAt, make([]byte, regionSize), allowAll)
	peak, finished := 0, map[uint32]clock.Time{}
	n.Filter = func(*sim.Port, *sim.Port, []byte) bool {
		for _, w := range ha.e.windows {
			peak = max(peak, w.inFlight)
		}
		return true
	}
	var ends []*end
	for range count {
		a, b := ha.qp(command.RC, QPConfig{}), hb.qp(command.RC, QPConfig{})
		connect(a, b, defaultConnection())
		ends = append(ends, a)
	}
	for _, a := range ends {
		for range each {
			a.doWith(ring.OpWrite, 16000, func(w *ring.SendWR) { w.SGE[0].LKey = key })
		}
	}
	done := 0
	n.Run(10*second, func() bool {
		for ; done < len(ha.comps); done++ {
			finished[ha.comps[done].QPN] = n.Now()
		}
		return done == count*each
	})
	if done != count*each {
		t.Fatalf("%d of %d requests complete", done, count*each)
	}
	first, last := clock.Never, clock.Time(0)
	for _, at := range finished {
		first, last = min(first, at), max(last, at)
	}
	if first < last*6/10 {
		t.Errorf("the first QP ended at %v, the last at %v; want the first at 60 %% of that or later", first, last)
	}
	if peak > 512 {
		t.Errorf("up to %d packets in flight, want at most 512", peak)
	}
}

// broken is a send ring that is corrupt.
type broken struct{ nothing }

var errBroken = errors.New("corrupt")

func (broken) Pending() (int, error)      { return 0, errBroken }
func (broken) Next(*SendWR) (bool, error) { return false, errBroken }

// TestCorruptRing: a corrupt send ring puts its QP into the error state, with one event.
func TestCorruptRing(t *testing.T) {
	n := sim.New(1)
	a, b := newHost(t, n, "10.0.0.1", Config{}).qp(command.RC, QPConfig{Send: broken{}}), newHost(t, n, "10.0.0.2", Config{}).qp(command.RC,
		QPConfig{})
	connect(a, b, defaultConnection())
	a.e.Doorbell(a.q)
	a.port.Wake()
	n.Run(second, nil)
	if a.q.state != command.Err || len(a.events) != 1 || a.events[0].Type != command.EventQPFatal {
		t.Errorf("state %s, events %+v; want the error state and one fatal event of the QP", stateName(a.q.state), a.events)
	}
}

// TestSharedReceives: QPs of an SRQ consume its receives, advertise no credits (IBA 10.2.9.4), and in the error
// state report that they use no more of them (Last WQE Reached, 11.6.3.1).
func TestSharedReceives(t *testing.T) {
	n := sim.New(1)
	ha, hb := newHost(t, n, "10.0.0.1", Config{}), newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x100})
	own := hb.qp(command.UD, QPConfig{}) // its receive ring serves as the SRQ
	ha.region(regionAt, make([]byte, regionSize), allowAll)
	hb.region(regionAt, make([]byte, regionSize), allowAll)
	own.give(1024, 4)
	c := defaultConnection()
	c.flow = 1
	var b []*end
	for range 2 {
		x, y := ha.qp(command.RC, QPConfig{}), hb.qp(command.RC, QPConfig{Recv: own.recv, SRQ: true})
		connect(x, y, c)
		x.do(ring.OpSend, 100)
		x.do(ring.OpSend, 100)
		b = append(b, y)
	}
	n.Filter = func(from, _ *sim.Port, p []byte) bool {
		if q, _ := ib.ParsePacket(p); from == hb.port && q.AETH.Syndrome().Value() != ib.CreditInvalid {
			t.Errorf("the QP of an SRQ advertised credits: %v", q.AETH.Syndrome())
		}
		return true
	}
	n.Run(second, nil)
	if len(hb.comps) != 4 || len(ha.comps) != 4 {
		t.Fatalf("%d and %d completions", len(ha.comps), len(hb.comps))
	}
	hb.comps = nil
	own.give(1024, 1)
	b[0].modify(command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil)
	hb.drain(n.Now())
	if len(hb.comps) != 0 || len(hb.events) != 1 || hb.events[0].Type != command.EventLastWQE {
		t.Errorf("completions %+v, events %+v; want no completion and one event of the last work request", hb.comps, hb.events)
	}
}

// TestCommunicationEstablished: a QP in RTR reports its first packet, and only that, by an event.
func TestCommunicationEstablished(t *testing.T) {
	n, a, b := newPair(t, 1, command.RC)
	connect(a, b, defaultConnection())
	b.q.state = command.RTR
	a.region(regionAt, make([]byte, regionSize), allowAll)
	b.region(regionAt, make([]byte, regionSize), allowAll)
	a.do(ring.OpWrite, 16)
	a.do(ring.OpWrite, 16)
	n.Run(second, nil)
	if len(b.events) != 1 || b.events[0].Type != command.EventCommunicationEstablished {
		t.Errorf("events %+v, want one that communication is established", b.events)
	}
}

// TestDrainedEvent: a QP put into SQD with notification reports, by one event, that the requests in progress are
// complete.
func TestDrainedEvent(t *testing.T) {
	n, a, b := newPair(t, 1, command.RC)
	connect(a, b, defaultConnection())
	a.region(regionAt, make([]byte, regionSize), allowAll)
	b.region(regionAt, make([]byte, regionSize), allowAll)
	a.do(ring.OpWrite, 9000)
	n.Run(1000, nil)
	a.modify(command.ModifyQP{Mask: command.MaskState | command.MaskSQDNotify, State: command.SQD, SQDNotify: 1}, nil)
	a.drain(n.Now())
	if len(a.events) != 0 || a.e.Query(a.q).Draining != 1 {
		t.Fatalf("before the write is complete: events %+v, want none, and the QP draining", a.events)
	}
	n.Run(second, nil)
	if len(a.events) != 1 || a.events[0].Type != command.EventSQDrained || len(a.comps) != 1 || a.e.Query(a.q).Draining != 0 {
		t.Errorf("events %+v, completions %+v; want one drained event and one completion", a.events, a.comps)
	}
}
