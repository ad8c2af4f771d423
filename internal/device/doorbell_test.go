package device

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// poster posts requests as a polling program does, at times that the test chooses.
type poster struct {
	t  *testing.T
	c  *connected
	a  *adapter
	q  *qp
	wr ring.SendWR
}

// newPoster returns a poster. It holds the host's lock until the test ends.
func newPoster(t *testing.T) *poster {
	x, y := networks[0].make(t, AdapterConfig{Path: PathWire})
	q := command.CreateQP{SendDepth: 128, RecvDepth: 4, SendSGE: 1, RecvSGE: 1}
	c := connect(x.qp(q, x.cq(256)), y.qp(q, y.cq(16)))
	src, dst := x.buffer(64), y.buffer(64)
	x.host.lock()
	t.Cleanup(x.host.unlock)
	a := x.host.adapters[x.adapter]
	p := &poster{t: t, c: c, a: a, q: a.byNumber[c.a.q.Number]}
	p.wr = ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RKey: dst.mem.RKey, RemoteAddr: dst.addr(0)}
	p.wr.SGE[0] = src.sge(0, 64)
	a.rang = x.host.now()
	return p
}

// post posts n requests, gap after the last doorbell. It returns how many doorbells they rang, and after how many of
// those everything posted was sent.
func (p *poster) post(n int, gap time.Duration) (rang, sent int) {
	p.t.Helper()
	now := p.a.rang.Add(gap)
	for range n {
		if err := p.c.a.send.Post(&p.wr); err != nil {
			p.t.Fatal(err)
		}
		if !p.c.a.send.Rings(p.c.a.send.Posted()) {
			continue
		}
		rang++
		p.a.engine.Doorbell(p.q.tq)
		if p.a.postpone(now, p.q) {
			continue
		}
		sent++
		p.a.release()
		p.a.transmit(now)
	}
	return rang, sent
}

// TestBurstsOfPosts: the first post is sent at once; a second soon after waits for others, and those ring no doorbell
// until the burst is full.
func TestBurstsOfPosts(t *testing.T) {
	p := newPoster(t)
	for i, s := range []struct {
		posts      int
		gap        time.Duration
		rang, sent int
	}{
		{1, time.Millisecond, 1, 1},
		{1, time.Millisecond, 1, 1},
		{1, 100, 1, 0},
		{burstPosts - 1, 100, 0, 0},
		{1, time.Millisecond, 1, 1}, // the burst is full, however long it took
	} {
		if rang, sent := p.post(s.posts, s.gap); rang != s.rang || sent != s.sent {
			t.Errorf("step %d: %d posts rang %d doorbells, of which %d sent, want %d and %d", i, s.posts, rang, sent, s.rang, s.sent)
		}
	}
}

// TestQuietPostsAreFlushed: requests that were posted without a doorbell are flushed when the queue pair enters the
// error state, and a later post rings the doorbell again.
func TestQuietPostsAreFlushed(t *testing.T) {
	p := newPoster(t)
	if rang, sent := p.post(5, 100); rang != 1 || sent != 0 {
		t.Fatalf("5 posts rang %d doorbells, of which %d sent; want 1 and 0", rang, sent)
	}
	p.q.error()
	if rang, _ := p.post(3, 100); rang != 0 {
		t.Fatalf("3 more posts rang %d doorbells, want none", rang)
	}
	p.a.release()
	p.a.function.Complete(p.a.rang)
	var cqes [16]ring.CQE
	n := p.c.a.cq.Poll(cqes[:])
	for i := range cqes[:n] {
		if cqes[i].Status != ring.WRFlush {
			t.Errorf("request %d ended with %v, want a flush", i, cqes[i].Status)
		}
	}
	if n != 8 {
		t.Errorf("%d of 8 requests completed", n)
	}
	if rang, _ := p.post(1, 100); rang != 1 {
		t.Error("a later post rings no doorbell")
	}
}
