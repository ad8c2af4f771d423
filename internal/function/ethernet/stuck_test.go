package ethernet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/clock"
)

// onTime advances a function whenever it asks for it, until a time.
func (c *card) onTime(until clock.Time) {
	for due := c.Deadline(); due <= until; due = c.Deadline() {
		c.Advance(due)
	}
}

// after returns a time.
func after(s float64) clock.Time { return clock.Time(s * float64(time.Second)) }

// watched is a function of which a queue without progress is stuck after 3 looks, 2 s apart.
func watched(c *Config) { c.NumRSSQueues, c.CheckForHang, c.MaxNoProgress = 1, 2, 3 }

// TestReceiveTimeout: a receive queue in which frames wait and whose host takes none is stuck after CheckForHangCQMaxNoProgress
// looks, which is one event until it gets on (WinOF-2 1.21, 5.5; WinOF 5.50, 4.10.1.1.1).
func TestReceiveTimeout(t *testing.T) {
	x := alone(t, plain(macB, watched))
	x.host.room = 0
	x.arrive(0, tcpFlow().frame([]byte("waits")))
	want := []Event{{Kind: ReceiveTimeout}}
	for _, c := range []struct {
		at   float64
		want []Event
	}{{5.9, nil}, {6, want}, {60, want}} {
		if x.onTime(after(c.at)); !cmp.Equal(c.want, x.host.events) {
			t.Errorf("after %v s the events are %+v, want %+v", c.at, x.host.events, c.want)
		}
	}
	x.host.room = 1 // it takes one, and stops again
	x.Ready(after(60), 0)
	x.arrive(after(60), tcpFlow().frame([]byte("waits, too")))
	x.onTime(after(100))
	if want = append(want, want...); !cmp.Equal(want, x.host.events) {
		t.Errorf("the events are %+v, want %+v", x.host.events, want)
	}
}

// TestReceiveTimeout_Slow: a host that takes a frame now and then is slow, and no queue is stuck. When nothing waits nobody looks.
func TestReceiveTimeout_Slow(t *testing.T) {
	x := alone(t, plain(macB, watched))
	x.host.room = 0
	for range 20 {
		x.arrive(0, tcpFlow().frame([]byte("waits")))
	}
	for i := range 20 {
		x.onTime(after(float64(5 * i)))
		x.host.room = 1
		x.Ready(after(float64(5*i)), 0)
	}
	x.onTime(after(200))
	if len(x.host.events) != 0 || x.Deadline() != clock.Never {
		t.Errorf("events %+v, deadline %v", x.host.events, x.Deadline())
	}
}

// TestSendTimeout: the same for a send queue of which the port takes nothing, because its priority is paused.
func TestSendTimeout(t *testing.T) {
	x := alone(t, plain(macA, watched))
	x.port.Scheduler.Pause(0xff)
	x.post(t, Send{Frame: tcpFlow().frame([]byte("waits"))})
	leave(0, x.port)
	x.onTime(after(5.9))
	if len(x.host.events) != 0 {
		t.Errorf("the events are %+v before it is time", x.host.events)
	}
	x.onTime(after(60))
	if want := []Event{{Kind: SendTimeout}}; !cmp.Equal(want, x.host.events) {
		t.Errorf("the events are %+v, want %+v", x.host.events, want)
	}
	x.port.Scheduler.Pause(0)
	leave(after(60), x.port)
	x.onTime(after(100))
	if len(x.host.events) != 1 || x.Deadline() != clock.Never {
		t.Errorf("events %+v, deadline %v", x.host.events, x.Deadline())
	}
}
