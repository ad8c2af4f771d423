package client

import (
	"context"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// A driver answers at once or, if it waits for the subnet or another program, after some seconds, or as
// long as somebody configured. One that hangs or is stopped must not forever hold up callers that cannot
// cancel their requests themselves. So after half of Patience without any answer it is asked something
// that it can answer at once, and requests still unanswered Patience after its last answer, or up to a
// lookTime later, are given up.
const (
	// Patience is how long a driver may answer nothing at all.
	Patience = 60 * time.Second
	lookTime = 5 * time.Second
)

// overdue ensures that requests do not wait forever. Guarded by the lock of the calls.
type overdue struct {
	ask   func() // asks the driver something, without waiting
	looks uint32
	heard uint32      // value of looks when the driver last answered
	timer *time.Timer // of the next look; nil while nothing waits
}

func (o *overdue) stop() {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
}

// begun records that a request begins to wait.
func (c *calls) begun() {
	if o := &c.overdue; o.timer == nil {
		o.timer = time.AfterFunc(lookTime, c.look)
		o.heard = o.looks // nobody was asking before
	}
}

// look gives up what has waited too long, and reschedules itself while something waits.
func (c *calls) look() {
	var late []awaited
	o := &c.overdue
	c.mu.Lock()
	o.looks++
	for id, a := range c.waiting {
		if o.looks-max(a.since, o.heard) > uint32(Patience/lookTime) {
			late = append(late, a)
			delete(c.waiting, id)
		}
	}
	var ask func()
	if len(c.waiting) > 0 && o.looks-o.heard > uint32(Patience/lookTime)/2 {
		ask = o.ask
	}
	if o.timer = nil; len(c.waiting) > 0 {
		o.timer = time.AfterFunc(lookTime, c.look)
	}
	c.mu.Unlock()
	for _, a := range late {
		a.tell(reply{err: command.Errorf(command.TimedOut, "the driver has answered nothing for %v", Patience)})
	}
	if ask != nil {
		ask()
	}
}

// askAlive sends the driver a request that it can answer at once.
func (c *Client) askAlive() {
	go func() {
		ctx, end := context.WithTimeout(context.Background(), Patience)
		defer end()
		_ = c.begin(ctx, proto.OpAdapters, proto.Encode(proto.Empty{}), func(reply) {})
	}()
}
