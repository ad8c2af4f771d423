package verbs_test

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// TestTimestamps: the completions of both ends of a queue with timestamps say when they were made, on one clock, whichever
// way the message took; and a queue without them has no times.
func TestTimestamps(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, client := newSide(t, b, 0, verbs.RC), newSide(t, b, 1, verbs.RC)
		for _, s := range []*side{server, client} {
			cq := must(s.dev.CreateCQEx(verbs.CQConfig{Depth: 256, Timestamps: true}))(t)
			ok(t, s.qp.Close())
			ok(t, s.cq.Close())
			s.cq = cq
			s.qp = must(s.pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 8, RecvDepth: 8, Context: 77}))(t)
		}
		connect(t, server, client)
		for range 20 {
			server.recv(t, 1, server.mr.SGE(0, 100))
			from := time.Now()
			client.send(t, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{client.mr.SGE(0, 100)}})
			for s, op := range map[*side]verbs.CompletionOp{server: verbs.CompletedRecv, client: verbs.CompletedSend} {
				made := s.cq.Time(s.want(t, op, verbs.Success).Timestamp)
				// Where another process's clock began is known to some hundred nanoseconds.
				if now := time.Now(); made.Before(from.Add(-10*time.Microsecond)) || made.After(now.Add(10*time.Microsecond)) {
					t.Fatalf("%v: made %v after the post, polled %v after it", op, made.Sub(from), now.Sub(from))
				}
			}
		}
		plain := must(server.dev.CreateCQ(4))(t)
		defer plain.Close()
		if got := plain.Time(5); !got.IsZero() {
			t.Errorf("a queue without timestamps converts one to %v", got)
		}
		_, err := server.dev.CreateCQEx(verbs.CQConfig{})
		wantErr(t, err, verbs.ErrInvalid)
	})
}
