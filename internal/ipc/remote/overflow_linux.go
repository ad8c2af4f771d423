package remote

import (
	"context"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// pair are the CQs of a queue pair.
type pair struct{ send, recv command.Handle }

// overflowed ends a CQ that has no room for what completes, as the driver does (IBA 11.6.3.1): nothing more comes, its program has the
// event, and the queue pairs that complete to it go to error. The driver's own queue, which the relay empties, may have room, so that it
// knows nothing. The caller holds mu, and reads the stream: commands are another's.
func (p *program) overflowed(q *completions) {
	q.ring.Break()
	q.notify(p, true)
	if q.failed {
		return
	}
	q.failed = true
	p.a.log.Warn("completion queue ended: its program takes too little", "program", p.cfg.Name, "cq", uint32(q.handle))
	p.events.put([]command.Event{{Type: command.EventCQError, Object: q.handle, Adapter: q.adapter}})
	var list []command.Handle
	for h, x := range p.pairs {
		if x.send == q.handle || x.recv == q.handle {
			list = append(list, h)
		}
	}
	if len(list) > 0 {
		p.work.Go(func() { p.fail(list, q.adapter) }) // err is not set yet, so that nobody waits for work
	}
}

// fail moves queue pairs to error that work, and tells the program of each.
func (p *program) fail(list []command.Handle, adapter uint32) {
	ctx := context.Background() // the program's end ends it
	for _, h := range list {
		b, err := p.ask(ctx, proto.OpQueryQP, proto.Encode(proto.HandleArgs{Handle: h}), region{})
		if err != nil {
			continue // it is gone
		}
		x, err := proto.Decode[command.QPInfo](b)
		if err != nil || x.Attr.State == command.Reset || x.Attr.State == command.Err {
			continue
		}
		m := command.ModifyQP{QP: h, Mask: command.MaskState, State: command.Err}
		if _, err := p.ask(ctx, proto.OpModifyQP, proto.Encode(m), region{}); err == nil {
			p.events.put([]command.Event{{Type: command.EventQPFatal, Object: h, Adapter: adapter}})
		}
	}
}

// unknown returns the events of a list that the program does not have yet: a CQ may have overflowed at the driver, too.
func (p *program) unknown(list []command.Event) []command.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(list, func(e command.Event) bool {
		if e.Type != command.EventCQError {
			return false
		}
		q := p.cqs[e.Object]
		if q == nil || q.failed {
			return q != nil
		}
		q.failed = true
		return false
	})
}
