package device

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// streams is a pair of connected QPs that both have writes under way all the time.
type streams struct {
	*connected
	ends [2]*streamEnd
}

type streamEnd struct {
	q          *pair
	from       ring.SGE
	to         uint64
	key        uint32
	sent, done uint64
}

const underWay = 32

func newStreams(c *connected, size int) *streams {
	b := &streams{connected: c}
	bufs := [2]*buffer{c.a.p.buffer(size), c.b.p.buffer(size)}
	for i, q := range [2]*pair{c.a, c.b} {
		b.ends[i] = &streamEnd{q: q, from: bufs[i].sge(0, size), to: bufs[1-i].addr(0), key: bufs[1-i].mem.RKey}
	}
	return b
}

// turn posts writes until enough are under way, and takes the next completion, which must be in order.
func (e *streamEnd) turn() {
	for e.sent-e.done < underWay {
		wr := ring.SendWR{ID: e.sent, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: e.to, RKey: e.key}
		wr.SGE[0] = e.from
		e.q.post(wr)
		e.sent++
	}
	wantSuccess(e.q.p.t, e.q.cq.next(), e.done, ring.CQWrite)
	e.done++
}

func (b *streams) turns(until func() bool) {
	for !until() {
		for range underWay {
			b.ends[0].turn()
			b.ends[1].turn()
		}
	}
}

// TestBusyConnectionsTakeTheLocalPath: a connection that is never idle also moves to the local path when the policy
// allows it: it starts no requests for a moment.
func TestBusyConnectionsTakeTheLocalPath(t *testing.T) {
	for _, n := range networks {
		a, b := n.make(t, AdapterConfig{Path: PathWire})
		if a.host != b.host {
			continue
		}
		t.Run(n.name, func(t *testing.T) {
			c := newStreams(connect(a.qp(command.CreateQP{}, a.cq(256)), b.qp(command.CreateQP{}, b.cq(256))), 20000)
			c.turns(func() bool { return c.ends[0].done > 0 })
			if p := c.a.info().Path; p != 1 {
				t.Fatalf("path %d, want 1, the wire", p)
			}
			for _, p := range []*program{a, b} {
				p.check(p.host.SetPath(p.adapter, PathAuto))
			}
			end := time.Now().Add(await.Limit)
			c.turns(func() bool { return c.a.info().Path == 2 || time.Now().After(end) })
			if p := c.a.info().Path; p != 2 {
				t.Errorf("path %d after %d writes, want 2, the driver", p, c.ends[0].done)
			}
			for _, e := range c.ends {
				for e.done < e.sent {
					wantSuccess(t, e.q.cq.next(), e.done, ring.CQWrite)
					e.done++
				}
			}
		})
	}
}

// TestAttemptsToJoinEnd: an attempt to move a connection that does not come to rest to the local path ends soon, so
// that its messages go on, and is repeated later.
func TestAttemptsToJoinEnd(t *testing.T) {
	a, b := networks[1].make(t, AdapterConfig{Path: PathWire})
	c := connect(a.qp(command.CreateQP{}, a.cq(256)), b.qp(command.CreateQP{}, b.cq(256)))
	buf := a.buffer(64)
	c.a.postSend(1, ring.OpSend, buf.sge(0, 8)) // it waits for a receive
	await.Eventually(t, "the receiver has refused it", func() bool { return counter(t, a, "Requester RNR NAK") > 0 })
	for _, p := range []*program{a, b} {
		p.check(p.host.SetPath(p.adapter, PathAuto))
	}
	await.Eventually(t, "several attempts have ended", func() bool {
		a.host.lock()
		defer a.host.unlock()
		q, err := a.c.pair(c.a.q.Handle)
		return err == nil && q.joining != nil && q.joining.rest >= 8*joinRest
	})
	to := b.buffer(64)
	c.b.postRecv(7, to.sge(0, 8))
	wantSuccess(t, c.b.cq.next(), 7, ring.CQRecv)
	wantSuccess(t, c.a.cq.next(), 1, ring.CQSend)
	await.Eventually(t, "the connection, which is at rest, takes the local path", func() bool { return c.a.info().Path == 2 })
}
