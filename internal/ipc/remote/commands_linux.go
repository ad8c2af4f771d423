package remote

import (
	"context"
	"fmt"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/os/monotonic"
	"github.com/softvpi/softvpi/internal/ring"
)

// channel is one that the program has.
type channel struct {
	raise  func(cq command.Handle) bool // of completions; nil until the server knows the channel
	events *inbox
}

// Relay implements server.Relayed.
func (p *program) Relay(ctx context.Context, op proto.Opcode, body []byte) ([]byte, error) {
	switch op {
	case proto.OpRegisterMemory, proto.OpRegisterMemoryAt, proto.OpReregisterMemory:
		return p.register(ctx, op, body)
	case proto.OpResizeCQ:
		q, err := proto.Decode[proto.ResizeArgs](body)
		if err == nil {
			err = p.mayResize(q)
		}
		if err != nil {
			return nil, err
		}
	case proto.OpDestroy:
		q, err := proto.Decode[proto.DestroyArgs](body)
		if err == nil {
			err = p.mayDestroy(q)
		}
		if err != nil {
			return nil, err
		}
	case proto.OpClock:
		return p.clock(ctx)
	}
	return p.ask(ctx, op, body, region{})
}

// clock places the clock of completions, which is one of the relay's machine, at this machine's, by what the two show in the middle of the
// question: it may be wrong by half of the time that this takes, unless both are one machine.
func (p *program) clock(ctx context.Context) ([]byte, error) {
	begin := monotonic.Now()
	b, err := p.ask(ctx, proto.OpClock, nil, region{})
	if err != nil {
		return nil, err
	}
	c, err := proto.Decode[clockBody](b)
	return proto.Encode(command.Clock{Zero: placed(c, begin, monotonic.Now())}), err
}

// placed returns when the clock of completions was 0, by the clock that showed begin and end when the relay was asked and had answered.
// If it may be the relay's own it is taken for that, as of two machines one has been up for longer.
func placed(c clockBody, begin, end uint64) uint64 {
	if c.Now-begin <= end-begin {
		return c.Zero
	}
	return begin + (end-begin)/2 - (c.Now - c.Zero)
}

// ask sends a request and waits for its answer. What the program has posted is sent before: a queue pair that is made ready has what was
// posted to it.
func (p *program) ask(ctx context.Context, op proto.Opcode, body []byte, reg region) ([]byte, error) {
	id, told, err := p.begin(op, body, reg)
	if err != nil {
		return nil, err
	}
	select {
	case r := <-told:
		return r.body, r.err
	case <-ctx.Done():
	}
	if p.a.out.send(cancel, p.number, proto.Encode(id)) != nil {
		return nil, errLost
	}
	r := <-told // soon: it is canceled, or the stream ends
	return r.body, r.err
}

// begin sends a request.
func (p *program) begin(op proto.Opcode, body []byte, reg region) (id uint64, told chan reply, err error) {
	p.sending.Lock()
	defer p.sending.Unlock()
	if err := p.collectAll(); err != nil {
		return 0, nil, command.Errorf(command.Invalid, "%v", err)
	}
	p.mu.Lock()
	if p.err != nil {
		defer p.mu.Unlock()
		return 0, nil, p.err
	}
	p.last++
	id, told = p.last, make(chan reply, 1)
	p.waiting[id] = asked{op, slices.Clone(body), reg, told}
	p.mu.Unlock()
	if p.a.out.send(request, p.number, proto.Encode(requestHead{ID: id, Op: op}), body) != nil {
		return 0, nil, errLost
	}
	return id, told, nil
}

// came notes what came to be by a command, or is gone, before anything else that is about it is read. The caller holds mu.
func (p *program) came(a *asked, body []byte) error {
	switch a.op {
	case proto.OpRegisterMemory, proto.OpRegisterMemoryAt, proto.OpReregisterMemory:
		m, err := proto.Decode[command.Memory](body)
		if err != nil {
			return err
		}
		if x, err := proto.Decode[command.ReregisterMemory](a.body); a.op == proto.OpReregisterMemory && err == nil {
			p.dropRegion(x.Memory)
		}
		if a.reg.within != nil {
			a.reg.within.uses++
		}
		p.regions[m.Handle] = a.reg
	case proto.OpDestroy:
		q, err := proto.Decode[proto.DestroyArgs](a.body)
		if err != nil {
			return err
		}
		p.destroyed(q)
	case proto.OpCreateCQ:
		c, err := proto.Decode[command.CreateCQ](a.body)
		if err != nil {
			return err
		}
		q, err := proto.Decode[command.Queue](body)
		if err != nil {
			return err
		}
		return p.addCQ(q, &c)
	case proto.OpResizeCQ:
		q, err := proto.Decode[command.Queue](body)
		if err != nil {
			return err
		}
		return p.moveCQ(q)
	case proto.OpAllocPD:
		q, err := proto.Decode[proto.AdapterArgs](a.body)
		if err != nil {
			return err
		}
		h, err := proto.Decode[command.Handle](body)
		if err != nil {
			return err
		}
		p.domains[h] = q.Adapter
	case proto.OpCreateSRQ, proto.OpCreateXRCSRQ, proto.OpCreateTagSRQ:
		q, err := proto.Decode[command.Queue](body)
		if err != nil {
			return err
		}
		return p.addQueue(queueName{q.Handle, receives}, q.Ring, q.Depth, q.Stride)
	case proto.OpCreateQP:
		q, err := proto.Decode[command.QueuePair](body)
		if err != nil {
			return err
		}
		c, err := proto.Decode[command.CreateQP](a.body)
		if err != nil {
			return err
		}
		p.pairs[q.Handle] = pair{c.SendCQ, c.RecvCQ}
		if err := p.addQueue(queueName{q.Handle, sends}, q.Send, q.SendDepth, q.SendStride); err != nil {
			return err
		}
		return p.addQueue(queueName{q.Handle, receives}, q.Recv, q.RecvDepth, q.RecvStride)
	case proto.OpCreateChannel:
		h, err := proto.Decode[proto.HandleArgs](body)
		if err != nil {
			return err
		}
		p.raises[h.Handle] = &channel{events: newInbox()}
	}
	return nil
}

// destroyed forgets an object. The caller holds mu.
func (p *program) destroyed(q proto.DestroyArgs) {
	switch q.Kind {
	case command.KindMemory:
		p.dropRegion(q.Handle)
	case command.KindDM:
		p.dropDM(q.Handle)
	case command.KindPD:
		delete(p.domains, q.Handle)
	case command.KindCQ:
		delete(p.cqs, q.Handle)
	case command.KindQP, command.KindSRQ:
		delete(p.pairs, q.Handle)
		delete(p.queues, queueName{q.Handle, sends})
		delete(p.queues, queueName{q.Handle, receives})
	case command.KindChannel:
		if c := p.raises[q.Handle]; c != nil {
			c.events.end(command.Errorf(command.Canceled, "the channel was destroyed"))
			delete(p.raises, q.Handle)
		}
	}
}

// CreateChannel implements command.Extended.
func (p *program) CreateChannel(ctx context.Context, q command.CreateChannel, raise func(cq command.Handle) bool) (command.Handle, error) {
	b, err := p.ask(ctx, proto.OpCreateChannel, proto.Encode(q), region{})
	if err != nil {
		return 0, err
	}
	h, err := proto.Decode[proto.HandleArgs](b)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.raises[h.Handle]
	if c == nil {
		return 0, command.Errorf(command.Canceled, "channel %#x is gone already", uint32(h.Handle))
	}
	c.raise = raise
	if p.err != nil {
		c.events.end(p.err)
	}
	return h.Handle, nil
}

// ChannelEvents implements command.Extended.
func (p *program) ChannelEvents(ctx context.Context, h command.Handle, out []command.Event) (int, error) {
	p.mu.Lock()
	c := p.raises[h]
	p.mu.Unlock()
	if c == nil {
		return 0, command.Errorf(command.NotFound, "channel %#x", uint32(h))
	}
	return c.events.take(ctx, out)
}

// message handles one of the relay's. It must not wait. Its error ends the stream.
func (p *program) message(m message) error {
	switch m.kind {
	case open:
		select {
		case p.opened <- nil:
		default:
		}
		return nil
	case closing:
		why := proto.DecodeError(m.body)
		select {
		case p.opened <- why:
		default:
		}
		p.end(why)
		return nil
	case copying:
		h, data, err := head[copyingHead](m.body)
		if err != nil {
			return err
		}
		select {
		case p.copies <- copyWanted{h, slices.Clone(data)}:
			return nil
		default:
			return fmt.Errorf("%w: more than %d copies at a time", errMessage, mostCopies)
		}
	case events:
		list, err := proto.DecodeList[command.Event](m.body)
		p.events.put(p.unknown(list))
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil
	}
	switch m.kind {
	case answer:
		return p.answered(m.body)
	case arena:
		return p.newArena(m.body)
	case complete:
		return p.complete(m.body)
	case taken:
		t, err := whole[takenBody](m.body)
		if q := p.queues[queueName{t.Queue, t.Side}]; q != nil && err == nil {
			return q.giveBack(t.Index)
		}
		return err
	case raised:
		h, body, err := head[raisedHead](m.body)
		if err != nil {
			return err
		}
		list, err := proto.DecodeList[command.Event](body)
		if c := p.raises[h.Channel]; c != nil {
			c.events.put(list)
		}
		return err
	}
	return fmt.Errorf("%w: kind %d", errMessage, m.kind)
}

// newArena makes the memory of rings. The caller holds mu.
func (p *program) newArena(body []byte) error {
	a, err := whole[proto.ArenaBody](body)
	if err != nil || int(a.ID) != len(p.arenas) || a.Size > 1<<30 {
		return fmt.Errorf("%w: arena %d of %d bytes, after %d: %w", errMessage, a.ID, a.Size, len(p.arenas), err)
	}
	mem, err := p.cfg.NewArena(a.ID, int(a.Size))
	if err != nil {
		go p.end(err) // it needs the lock
		return nil
	}
	p.arenas = append(p.arenas, mem)
	return nil
}

// answered hands an answer over. Rings are opened here: what is for them may follow at once. The caller holds mu.
func (p *program) answered(body []byte) error {
	h, body, err := head[answerHead](body)
	if err != nil {
		return err
	}
	w, ok := p.waiting[h.ID]
	if !ok {
		return fmt.Errorf("%w: an answer to request %d", errMessage, h.ID)
	}
	delete(p.waiting, h.ID)
	r := reply{body: slices.Clone(body)}
	switch {
	case h.Failed != 0:
		r = reply{err: proto.DecodeError(body)}
	case w.op == proto.OpResizeSRQ:
		r.body, err = p.moveSRQ(r.body)
	default:
		err = p.came(&w, body)
	}
	if err != nil {
		r = reply{err: err}
	}
	w.told <- r
	return err
}

// complete puts completions into the program's ring, and tells it of them. The caller holds mu.
func (p *program) complete(body []byte) error {
	h, body, err := head[completeHead](body)
	if err != nil {
		return err
	}
	q := p.cqs[h.CQ]
	if q == nil {
		return nil // it was destroyed just now
	}
	event := h.Broken != 0 && q.ring.Break()
	for i := range len(body) / ring.CQESize {
		if q.drops && q.ring.Full() {
			break
		}
		e := cqeAt(body, i)
		wants, err := q.ring.Push(&e)
		if err != nil {
			p.overflowed(q) // the program does not take what completes
			return nil
		}
		if !wants {
			continue
		}
		if fired, wake := q.ring.Fire(); fired {
			q.notify(p, wake)
		}
	}
	if event {
		q.notify(p, true)
	}
	return nil
}

// notify wakes those who wait for a CQ.
func (q *completions) notify(p *program, wake bool) {
	if wake && p.cfg.Notify != nil {
		p.cfg.Notify(q.at.Arena, q.at.Offset)
	}
	c := p.raises[q.channel]
	if c == nil || c.raise == nil {
		return
	}
	if !c.raise(q.handle) {
		c.events.put([]command.Event{{Object: q.handle}})
	}
}
