package verbs_test

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// A driver that ends while programs use it: programs that poll, wait or post are told, and they can close everything
// without an error.
func TestDriverGone(t *testing.T) {
	b := testbed.New(t, testbed.Modes()[len(testbed.Modes())-1])
	if b.StopDriver == nil {
		t.Skip("there is no driver here")
	}
	server, client := connected(t, b)
	ctx := testbed.Context(t)
	client.send(t, verbs.SendWR{ID: 1, Op: verbs.OpSend}) // never completes: no receive is posted
	waits := make(chan error, 3)
	go func() {
		var wc [1]verbs.WC
		for {
			if _, err := client.cq.Poll(wc[:]); err != nil {
				waits <- err
				return
			}
			if ctx.Err() != nil {
				waits <- ctx.Err()
				return
			}
		}
	}()
	go func() {
		var wc [1]verbs.WC
		_, err := server.cq.Next(ctx, wc[:])
		waits <- err
	}()
	l := must(server.dev.NewListener())(t)
	go func() {
		_, err := l.Request(ctx)
		waits <- err
	}()
	b.StopDriver()
	for range 3 {
		wantErr(t, <-waits, verbs.ErrRemoved)
	}
	// The rings show it slightly earlier than the stream, which is what a post looks at.
	var posted error
	await.Eventually(t, "posting fails", func() bool {
		posted = client.qp.PostSend(&verbs.SendWR{Op: verbs.OpSend})
		return posted != nil
	})
	wantErr(t, posted, verbs.ErrRemoved)
	wantErr(t, client.cq.Err(), verbs.ErrRemoved)
	if _, err := client.pd.CreateSRQ(verbs.SRQConfig{Depth: 1}); !errors.Is(err, verbs.ErrRemoved) {
		t.Errorf("a new object: %v, want removed", err)
	}
	ok(t, l.Close())
	// When the test ends the sides close everything they have, without an error.
}
