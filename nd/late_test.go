package nd_test

import (
	"context"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

// apart returns a place whose two ends are on hosts of their own, with packets between them.
func apart(t *testing.T) *place {
	t.Helper()
	b := &testbed.Bed{Mode: verbs.Embedded, Addrs: testbed.Addrs()}
	embed := func(i int) *verbs.Host {
		h := must(verbs.Embed(verbs.Config{Name: "test", Adapters: testbed.Adapters(b.Addrs)[i : i+1]}))(t)
		t.Cleanup(func() { ok(t, h.Close()) })
		return h
	}
	b.Server, b.Client = embed(0), embed(1)
	return newPlace(t, b)
}

// everywhere runs test in every mode, and with packets.
func everywhere(t *testing.T, test func(t *testing.T, p *place)) {
	each(t, test)
	t.Run("apart", func(t *testing.T) { test(t, apart(t)) })
}

// TestLateReceive posts a receive after its message has waited for 0.3 s, as a program does that had to wait for its
// processor. The message arrives, and the next one at once.
func TestLateReceive(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		connect(t, server, client)
		for i := range uint64(2) {
			ok(t, client.qp.Send(i, []nd.SGE{client.mr.SGE(0, 64)}, 0))
		}
		time.Sleep(300 * time.Millisecond)
		for i := range uint64(2) {
			ok(t, server.qp.Receive(10+i, []nd.SGE{server.mr.SGE(0, 64)}))
		}
		for i := range uint64(2) {
			if r := client.want(t, nd.RequestSend, nd.StatusSuccess); r.RequestContext != i {
				t.Errorf("request %d completed, want %d", r.RequestContext, i)
			}
			if r := server.want(t, nd.RequestReceive, nd.StatusSuccess); r.RequestContext != 10+i || r.BytesTransferred != 64 {
				t.Errorf("receive %d with %d bytes, want %d with 64", r.RequestContext, r.BytesTransferred, 10+i)
			}
		}
	})
}

// TestPeerEndsBeforeItReceives ends the program for which a message waits: the message fails when the connection
// ends, not when its RNR timers expire.
func TestPeerEndsBeforeItReceives(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		connect(t, server, client)
		told := later(func() error { return client.connector.NotifyDisconnect(context.Background()) })
		ok(t, client.qp.Send(1, []nd.SGE{client.mr.SGE(0, 64)}, 0))
		time.Sleep(20 * time.Millisecond)
		ok(t, server.connector.Close())
		client.want(t, nd.RequestSend, nd.StatusCanceled)
		ok(t, told())
	})
}
