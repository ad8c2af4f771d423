package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestEventStatus: the status of an event tells an end that the peer confirmed or asked for from one that nobody
// answered.
func TestEventStatus(t *testing.T) {
	for _, c := range []struct {
		name string
		e    cm.Event
		want uint32
	}{
		{"confirmed", cm.Event{Type: cm.EventDisconnected}, 0},
		{"ended by a REJ", cm.Event{Type: cm.EventDisconnected, Reason: mad.RejectStaleConnection}, 0},
		{"DREQ without an answer", cm.Event{Type: cm.EventDisconnected, Failure: cm.FailureTimeout}, uint32(command.TimedOut)},
		{"REQ without an answer", cm.Event{Type: cm.EventUnreachable, Failure: cm.FailureTimeout}, uint32(command.TimedOut)},
		{"refused", cm.Event{Type: cm.EventRejected, Reason: mad.RejectConsumer}, uint32(mad.RejectConsumer)},
	} {
		if got := eventStatus(&c.e); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
}
