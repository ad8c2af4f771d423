package interop

import (
	"testing"

	"github.com/softvpi/softvpi/verbs"
)

// fewRetries is a connection that gives up at the first packet that it would have to send again.
var fewRetries = plain{typ: verbs.RC, mtu: 1024, psn: 7, timeout: 14, retry: 0, rnrRetry: 7, depth: 4}

const (
	fewCouples  = 6
	fewMessages = 4
	fewSize     = 3000
)

// ourFewRetries sends over connections without retries while packets are lost. The messages complete, with their
// data, up to the one that ends with its retries exceeded, and those after it are flushed (IBA 9.9.2).
func ourFewRetries(t *testing.T, a *adapter, p *peer, f family, mem region) {
	ended := 0
	for range fewCouples {
		c := join(t, a, p, f, fewRetries)
		p.do("recv id=%d mr=%d len=%d wr=0 n=%d", c.id, mem.mr, fewSize, fewMessages)
		for i := range fewMessages {
			fill(a.mr.Bytes()[i*fewSize:][:fewSize], i)
			c.us.send(verbs.SendWR{ID: uint64(i), Op: verbs.OpSend, SGE: []verbs.SGE{a.mr.SGE(i*fewSize, fewSize)}})
		}
		good := fewMessages
		for i := range fewMessages {
			switch w := c.us.take(); {
			case w.ID != uint64(i):
				t.Fatalf("request %d completes where %d is due", w.ID, i)
			case w.Status == verbs.RetryExceeded && good == fewMessages:
				good = i
				ended++
			case w.Status != verbs.WRFlush && good < fewMessages, w.Status != verbs.Success && good == fewMessages:
				t.Fatalf("request %d ends with %v after %d good ones", i, w.Status, good)
			}
		}
		if good > 0 {
			for i, w := range p.poll(c.id, good) {
				if w.status != wcSuccess || w.wr != uint64(i) || w.length != fewSize {
					t.Fatalf("message %d arrives as %+v", i, w)
				}
				mem.check(i*fewSize, fewSize, i)
			}
		}
		c.drop()
	}
	t.Logf("of %d connections %d ended with their retries exceeded", fewCouples, ended)
}

// theirFewRetries is ourFewRetries with the peer sending.
func theirFewRetries(t *testing.T, a *adapter, p *peer, f family, mem region) {
	ended := 0
	for range fewCouples {
		c := join(t, a, p, f, fewRetries)
		for i := range fewMessages {
			c.us.recv(uint64(i), a.mr.SGE(i*fewSize, fewSize))
		}
		p.do("fill mr=%d len=%d n=%d", mem.mr, fewSize, fewMessages)
		p.do("send id=%d op=send mr=%d len=%d wr=0 n=%d stride=%d", c.id, mem.mr, fewSize, fewMessages, fewSize)
		good := fewMessages
		for i, w := range p.completions(p.do("poll id=%d n=%d", c.id, fewMessages)) {
			switch {
			case w.wr != uint64(i):
				t.Fatalf("the peer's request %d completes where %d is due", w.wr, i)
			case w.status == wcRetry && good == fewMessages:
				good = i
				ended++
			case w.status != wcFlush && good < fewMessages, w.status != wcSuccess && good == fewMessages:
				t.Fatalf("the peer's request %d ends with %d after %d good ones", i, w.status, good)
			}
		}
		for i := range good {
			if w := c.us.next(verbs.Success); w.ID != uint64(i) || w.ByteLen != fewSize {
				t.Fatalf("message %d arrives as %+v", i, w)
			}
			check(t, a.mr.Bytes()[i*fewSize:][:fewSize], i)
		}
		c.drop()
	}
	t.Logf("of %d connections %d ended with their retries exceeded", fewCouples, ended)
}

// TestExcuse makes sure that an excuse ends a test and is counted, and that a test that has not been given one has
// none.
func TestExcuse(t *testing.T) {
	var e excuse
	for _, given := range []*excuse{&e, nil} {
		went := false
		t.Run("x", func(t *testing.T) {
			given.takes(t, "all lost")
			went = true
		})
		if went != (given == nil) {
			t.Errorf("with an excuse: %v; the test goes on: %v", given != nil, went)
		}
	}
	if e.taken != 1 {
		t.Errorf("the excuse was taken %d times, want once", e.taken)
	}
}
