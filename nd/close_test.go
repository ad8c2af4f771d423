package nd_test

import (
	"testing"

	"github.com/softvpi/softvpi/nd"
)

// Any goroutine whose Close of a queue pair has returned, first or not, may close its completion queue.
func TestCloseQueuePairFromTwoSides(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		for range 1000 {
			cq := must(p.client.CreateCompletionQueue(8))(t)
			qp := must(p.client.CreateQueuePair(nd.QueuePairConfig{
				ReceiveCompletionQueue: cq, InitiatorCompletionQueue: cq, ReceiveQueueDepth: 4, InitiatorQueueDepth: 4,
			}))(t)
			begun := make(chan struct{})
			other := later(func() error { close(begun); return qp.Close() })
			<-begun
			ok(t, qp.Close())
			ok(t, cq.Close())
			ok(t, other())
		}
	})
}
