package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/eventqueue"
)

// channel delivers some of a program's events separately from the others.
type channel struct {
	handle  command.Handle
	kind    command.ChannelKind
	adapter uint32
	put     func(cq command.Handle) bool // Completions
	events  *eventqueue.Queue
	uses    int // CQs and CM ids
}

// CreateChannel implements command.Extended.
func (c *Client) CreateChannel(ctx context.Context, r command.CreateChannel, raise func(cq command.Handle) bool) (command.Handle, error) {
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	defer c.host.unlock()
	switch r.Kind {
	case command.Completions, command.Connections:
	case command.Asynchronous:
		if _, err := c.adapter(r.Adapter); err != nil {
			return 0, err
		}
	default:
		return 0, command.Errorf(command.Invalid, "Kind is %d, want 1 (completions), 2 (connections) or 3 (asynchronous)", r.Kind)
	}
	if uint64(c.live()) >= defaultLimits().ClientObjects {
		return 0, command.Errorf(command.Exhausted, "channels: the client has all objects that it may have")
	}
	ch := &channel{kind: r.Kind, adapter: r.Adapter, put: raise, events: eventqueue.New(c.cfg.Account)}
	var err error
	if ch.handle, err = c.channels.Add(ch); err != nil {
		return 0, err
	}
	if r.Kind == command.Asynchronous {
		if c.async == nil {
			c.async = map[uint32]*channel{}
		}
		c.async[r.Adapter] = ch // the last one gets them: a program that opens a device twice reads there
	}
	return ch.handle, nil
}

// ChannelEvents implements command.Extended.
func (c *Client) ChannelEvents(ctx context.Context, h command.Handle, out []command.Event) (int, error) {
	c.host.lock()
	ch := c.channels.Get(h)
	c.host.unlock()
	if ch == nil {
		return 0, notFound("channel", h)
	}
	return c.take(ctx, ch.events, out)
}

// join counts a use of the channel, which may be nil; leave ends it.
func (ch *channel) join() *channel {
	if ch != nil {
		ch.uses++
	}
	return ch
}

func (ch *channel) leave() *channel {
	if ch != nil {
		ch.uses--
	}
	return nil
}

// raise delivers the event of a CQ to its channel, which may be nil.
func (ch *channel) raise(q *cq) {
	if ch == nil || ch.put(q.handle) {
		return
	}
	if !ch.events.Push(command.Event{Object: q.handle}) {
		q.client.host.eventOverflows++
	}
}

// completions returns the channel for the events of a CQ; nil for handle 0.
func (c *Client) completions(h command.Handle) (*channel, error) {
	if h == 0 {
		return nil, nil
	}
	ch := c.channels.Get(h)
	if ch == nil || ch.kind != command.Completions {
		return nil, command.Errorf(command.Invalid, "Channel is %d, want a channel of completions, or 0", h)
	}
	return ch, nil
}

// queue returns the queue for the events of a CM id.
func (o *cmid) queue() *eventqueue.Queue {
	if o.channel != nil {
		return o.channel.events
	}
	return o.client.events
}

// queueFor returns the queue for an event.
func (c *Client) queueFor(e *command.Event) *eventqueue.Queue {
	if e.Type >= command.EventConnectRequest {
		if o := c.cms.Get(e.Object); o != nil {
			return o.queue()
		}
	} else if ch := c.async[e.Adapter]; ch != nil {
		return ch.events
	}
	return c.events
}

// CMSetChannel implements command.Extended. Waiting events move along.
func (c *Client) CMSetChannel(ctx context.Context, r command.CMSetChannel) error {
	return c.cmDo(ctx, r.ID, func(o *cmid) error {
		ch := c.channels.Get(r.Channel)
		if ch == nil {
			return notFound("Channel", r.Channel)
		}
		if ch.kind != command.Connections {
			return command.Errorf(command.Invalid, "Channel is of kind %d, want 2 (connections)", ch.kind)
		}
		var moved []command.Event
		o.queue().Drop(func(e *command.Event) bool {
			mine := e.Type >= command.EventConnectRequest && e.Object == o.handle
			if mine {
				moved = append(moved, *e)
			}
			return mine
		})
		o.channel.leave()
		o.channel = ch.join()
		for _, e := range moved {
			ch.events.Push(e)
		}
		return nil
	})
}

// destroyChannel destroys a channel that is no longer used.
func (c *Client) destroyChannel(h command.Handle) error {
	ch := c.channels.Get(h)
	if ch == nil {
		return notFound("channel", h)
	}
	if ch.uses > 0 {
		return busy("the channel", ch.uses)
	}
	c.channels.Remove(h)
	if c.async[ch.adapter] == ch {
		delete(c.async, ch.adapter)
	}
	ch.events.Close()
	return nil
}
