package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestTrailingACK_Arrives: the loop runs when an acknowledgement that trails an answer is due, also if nobody
// polls any more, so that every message that was answered completes at its sender.
func TestTrailingACK_Arrives(t *testing.T) {
	const each = 50
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			c := pairs(t, n, AdapterConfig{Path: PathWire})
			play := func(from, to *pair, id uint64) {
				to.postRecv(id)
				from.post(ring.SendWR{ID: id, Op: ring.OpSend, Flags: ring.Signaled})
				for { // both poll: completions of sends come in between
					if e := to.cq.next(); e.Op == ring.CQRecv {
						return
					}
				}
			}
			for i := range uint64(each) {
				play(c.a, c.b, i)
				play(c.b, c.a, i)
			}
			// Sends that are not complete yet must complete without another message.
			for _, q := range []*pair{c.a, c.b} {
				await.Eventually(t, "all sends complete after their acknowledgements were due",
					func() bool { return q.info().SendPosted == 0 })
			}
		})
	}
}

// TestHeldACK_Arrives: messages that request no acknowledgement complete at their sender although nobody polls.
func TestHeldACK_Arrives(t *testing.T) {
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			c := pairs(t, n, AdapterConfig{Path: PathWire})
			const all = 8
			for i := range uint64(all) {
				c.b.postRecv(i)
			}
			for i := range uint64(all) {
				c.a.post(ring.SendWR{ID: i, Op: ring.OpSend})
			}
			await.Eventually(t, "the sends complete", func() bool { return c.a.info().SendPosted == 0 })
		})
	}
}
