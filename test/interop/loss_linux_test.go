package interop

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/verbs"
)

// impairment is what netem does to the packets of both directions, and the length of messages in that test.
type impairment struct {
	name, netem string
	bytes       int
	brief       bool // messages and datagrams only, because the rest would take too long
}

var impairments = []impairment{
	{"loss 0.1%", "loss 0.1%", 300_000, false},
	{"loss 1%", "loss 1%", 300_000, false},
	{"loss 5%", "loss 5%", 300_000, false},
	{"duplicate 0.1%", "duplicate 0.1%", 300_000, true},
	{"duplicate 1%", "duplicate 1%", 300_000, true},
	{"duplicate 5%", "duplicate 5%", 300_000, false},
	{"reorder 0.1%", "delay 1ms reorder 99.9%", 300_000, true},
	{"reorder 1%", "delay 1ms reorder 99%", 300_000, true},
	{"reorder 5%", "delay 1ms reorder 95%", 300_000, false},
	{"delay", "delay 3ms", 300_000, false},
	{"jitter", "delay 2ms 1ms", 12_000, false}, // bursts arrive in any order: rxe would take too long with more
	{"everything", "delay 1ms reorder 95% loss 1% duplicate 1%", 300_000, false},
}

func (i impairment) loses() bool      { return strings.Contains(i.netem, "loss") }
func (i impairment) duplicates() bool { return strings.Contains(i.netem, "duplicate") }
func (i impairment) overtakes() bool  { return strings.Contains(i.netem, "reorder") }
func (i impairment) reorders() bool   { return i.overtakes() || i.name == "jitter" }

// excuse lets a test end early where the specification makes a request end in an error that nobody is to blame for:
// all of its retries were lost (IBA 9.9.2). It counts how often that happened.
type excuse struct{ taken int }

// takes ends the test t, if it has an excuse.
func (e *excuse) takes(t testing.TB, what any) {
	t.Helper()
	if e == nil {
		return
	}
	e.taken++
	t.Skipf("every retry was lost: %v", what)
}

// completes fails the test unless a step of a connection succeeded, or was given up after all retries of its messages
// and there is an excuse for that.
func (a *adapter) completes(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, verbs.ErrTimedOut) {
		a.excuse.takes(t, err)
	}
	ok(t, err)
}

// testLoss carries out everything over a segment that loses, duplicates and reorders packets. Requests of reliable
// connections complete with the right data, or end in the error that the specification says. Messages that unreliable
// connections lose are missing, and the rest is intact.
func testLoss(t *testing.T, g *guest) {
	f := families[0]
	if g.mtu == 9000 {
		f = families[1]
	}
	a := newAdapter(t, f.ours)
	p := g.peer(t)
	mem := p.region(memorySize, "lwra")
	for _, i := range impairments {
		if testing.Short() && i.name != "loss 1%" {
			continue
		}
		t.Run(i.name, func(t *testing.T) { impaired(t, g, a, p, f, mem, i) })
	}
}

// maxExcused is how often a run under an impairment may use the excuse. With seven retries and at most 5 % lost that
// should hardly ever happen: more than one means that something is wrong.
const maxExcused = 1

func impaired(t *testing.T, g *guest, a *adapter, p *peer, f family, mem region, i impairment) {
	a.t, p.t = t, t
	start, spent := time.Now(), excuse{}
	c := weConnect(t, a, p, f, all, "")
	before := effects(t, g, a)
	stop := g.impair(t, i.netem)
	a.excuse, p.excuse = nil, nil
	if i.loses() {
		a.excuse, p.excuse = &spent, &spent
	}
	step := func(name string, run func(t *testing.T)) (passed bool) {
		taken := spent.taken
		if !t.Run(name, func(t *testing.T) { a.t, p.t = t, t; run(t); a.t, p.t = t, t }) {
			return false // requests left in progress would complete in place of others
		}
		if a.t, p.t = t, t; spent.taken > taken {
			c.drop()
			c = weConnect(t, a, p, f, all, "")
		}
		return true
	}
	messages := func(t *testing.T) { ourMessages(t, c, mem, i.bytes) }
	good := step("messages/ours", messages) &&
		step("messages/theirs", func(t *testing.T) { theirMessages(t, c, mem, i.bytes) })
	if !i.brief {
		good = good && step("queue/ours", func(t *testing.T) { ourQueue(t, c, mem) }) &&
			step("queue/theirs", func(t *testing.T) { theirQueue(t, c, mem) }) &&
			step("atomics/ours", func(t *testing.T) { ourAtomics(t, c, mem) }) &&
			step("atomics/theirs", func(t *testing.T) { theirAtomics(t, c, mem) })
	}
	unreliableUnder(t, a, p, f, mem, i)
	good = good && step("happened", func(t *testing.T) {
		const rounds = 100
		for n := 0; len(i.missing(t, g, a, before)) > 0; n++ {
			if n == rounds {
				t.Fatalf("the segment has not done what it ought to: %s", strings.Join(i.missing(t, g, a, before), "; "))
			}
			writes(c, mem, 10*i.bytes)
		}
	})
	if i.name == "delay" {
		t.Run("takes its time", func(t *testing.T) { delayed(t, a, p, c, mem) })
	}
	if i.name == "loss 5%" {
		t.Run("few retries/ours", func(t *testing.T) { a.t, p.t = t, t; ourFewRetries(t, a, p, f, mem) })
		t.Run("few retries/theirs", func(t *testing.T) { a.t, p.t = t, t; theirFewRetries(t, a, p, f, mem) })
	}
	if !i.brief {
		t.Run("connect/ours", func(t *testing.T) { a.t, p.t = t, t; weConnect(t, a, p, f, all, "").close() })
		t.Run("connect/theirs", func(t *testing.T) { a.t, p.t = t, t; theyConnect(t, a, p, f, all, "").close() })
	}
	a.t, p.t = t, t
	a.excuse, p.excuse = nil, nil
	sends, receives := g.netem(t)
	t.Logf("%v; guest to host %v; host to guest %v", time.Since(start).Round(time.Millisecond), sends, receives)
	if t.Logf("ended in the error of the specification: %d", spent.taken); spent.taken > maxExcused {
		t.Errorf("%d requests ended for want of retries, want at most %d", spent.taken, maxExcused)
	}
	stop()
	if good {
		c.close()
	} else {
		c.drop()
	}
}

// writes writes n bytes each way.
func writes(c *couple, mem region, n int) {
	us, them := c.us, c.them
	us.t.Helper()
	us.send(verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{us.mr.SGE(0, n)}, RemoteAddr: mem.addr, RKey: uint32(mem.rkey)})
	us.next(verbs.Success)
	them.do("send id=%d op=write mr=%d len=%d wr=1 raddr=%d rkey=%d", c.id, mem.mr, n, us.mr.RemoteAddr(), us.mr.RKey())
	them.one(c.id, wcSuccess)
}

// delayed makes sure that packets are delayed in each direction: a request and its acknowledgement cannot take less
// than both delays, however fast the machine.
func delayed(t *testing.T, a *adapter, p *peer, c *couple, mem region) {
	a.t, p.t = t, t
	p.do("recv id=%d mr=%d len=1 wr=1", c.id, mem.mr)
	start := time.Now()
	c.us.send(verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{a.mr.SGE(0, 1)}})
	c.us.next(verbs.Success)
	if took, least := time.Since(start), 6*time.Millisecond; took < least {
		t.Errorf("a request was acknowledged after %v, want at least %v", took, least)
	}
	p.one(c.id, wcSuccess)
}
