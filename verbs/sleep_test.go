package verbs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// Sleep ends for each of: a completion, Rouse before and during the sleep, the end of the context, Close. A poll that
// follows finds the completion, and only that.
func TestSleepEnds(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, client := newSide(t, b, 0, verbs.RC), newSide(t, b, 1, verbs.RC)
		connect(t, server, client)
		ok(t, server.qp.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{server.mr.SGE(0, 64)}}))
		ended, end := context.WithTimeout(context.Background(), time.Millisecond)
		defer end()
		for _, c := range []struct {
			name  string
			ctx   context.Context
			cause func()
			wake  bool // the cause comes before the sleep
			err   error
			want  int
		}{
			{"a completion", context.Background(), func() { client.send(t, verbs.SendWR{Op: verbs.OpSend}) }, false, nil, 1},
			{"Rouse", context.Background(), server.cq.Rouse, false, nil, 0},
			{"Rouse before", context.Background(), server.cq.Rouse, true, nil, 0},
			{"the context", ended, func() {}, true, context.DeadlineExceeded, 0},
		} {
			ticket := server.cq.Arm(verbs.NotifyAny)
			if c.wake {
				c.cause()
			} else {
				go c.cause()
			}
			if err := server.cq.Sleep(c.ctx, ticket); !errors.Is(err, c.err) {
				t.Errorf("%s: %v, want %v", c.name, err, c.err)
			}
			var out [2]verbs.WC
			if n, err := server.cq.Poll(out[:]); n != c.want || err != nil {
				t.Errorf("%s: %d completions, %v, want %d", c.name, n, err, c.want)
			}
		}
		idle := must(server.dev.CreateCQ(4))(t)
		ticket := idle.Arm(verbs.NotifyAny)
		closed := make(chan error, 1)
		go func() { closed <- idle.Close() }()
		limit := testbed.Context(t)
		_ = idle.Sleep(limit, ticket) // an error, or nil: the end of the queue is an event
		if limit.Err() != nil {
			t.Error("Close does not end a sleep")
		}
		ok(t, <-closed)
		if _, err := idle.Poll(make([]verbs.WC, 1)); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("poll after Close: %v, want ErrClosed", err)
		}
		idle.Rouse() // harmless
	})
}
