package ipc

import (
	"context"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// A driver answers at once, or, where it waits for the subnet or for another program, after some seconds, or for as long
// as somebody configured. One that hangs or is stopped must not hold up for ever those who cannot end their
// requests themselves. So after half of Patience without an answer to anything it is asked something that it
// knows, and what is unanswered Patience after it answered last, or a look longer, is given up.
const (
	// Patience is how long a driver may answer nothing.
	Patience = 60 * time.Second
	lookTime = 5 * time.Second
)

// overdue sees to it that requests do not wait for ever. The lock of the calls is held.
type overdue struct {
	ask   func() // ask the driver something, without waiting
	looks uint32
	heard uint32      // the look after which the driver answered last
	timer *time.Timer // to the next look; nil while nothing waits
}

func (o *overdue) stop() {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
}

// begun notes that a request begins to wait.
func (c *calls) begun() {
	if o := &c.overdue; o.timer == nil {
		o.timer = time.AfterFunc(lookTime, c.look)
		o.heard = o.looks // nobody has asked it anything
	}
}

// look gives up what has waited for too long, and comes again while there is something that waits.
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

// askAlive asks the driver what it answers at once.
func (c *Client) askAlive() {
	go func() {
		ctx, end := context.WithTimeout(context.Background(), Patience)
		defer end()
		_ = c.begin(ctx, opAdapters, encode(empty{}), func(reply) {})
	}()
}
