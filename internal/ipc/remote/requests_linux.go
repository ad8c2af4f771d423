package remote

import (
	"context"
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/os/monotonic"
	"github.com/softvpi/softvpi/internal/ring"
)

// local are the operations whose answers mean something on the driver's machine alone.
var local = map[proto.Opcode]bool{proto.OpInterfaces: true, proto.OpLinkAddresses: true}

// carried are the operations that a stream carries.
var carried = func() (set [proto.OpEnd]bool) {
	for _, op := range server.Handled() {
		set[op] = true
	}
	set[proto.OpCreateChannel], set[proto.OpAllocDM], set[proto.OpImport] = true, true, true
	return set
}()

// request carries out a command of the program. Its error ends the program.
func (p *relayed) request(body []byte) error {
	h, body, err := head[requestHead](body)
	if err != nil {
		return err
	}
	if h.Op >= proto.OpEnd || !carried[h.Op] || len(body) > proto.MaxRequest-proto.HeaderSize {
		return fmt.Errorf("%w: operation %d with %d bytes", errMessage, h.Op, len(body))
	}
	p.mu.Lock()
	if p.requests[h.ID] != nil || len(p.requests) >= proto.MaxInFlight {
		p.mu.Unlock()
		return fmt.Errorf("%w: request %d is in use, or more than %d are unanswered", errMessage, h.ID, proto.MaxInFlight)
	}
	ctx, cancel := context.WithCancel(p.ctx)
	p.requests[h.ID] = cancel
	p.mu.Unlock()
	if local[h.Op] {
		p.work.Go(func() { p.answer(h.ID, nil, nil) })
		return nil
	}
	switch h.Op {
	case proto.OpCreateChannel:
		q, err := proto.Decode[command.CreateChannel](body)
		if err != nil {
			return err
		}
		p.work.Go(func() { p.createChannel(ctx, h.ID, q) })
		return nil
	case proto.OpImport:
		q, err := proto.Decode[importing](body)
		if err != nil {
			return err
		}
		p.work.Go(func() { p.importObject(ctx, h.ID, q) })
		return nil
	}
	body, err = p.adapted(h.Op, body)
	if err != nil {
		return err
	}
	p.hand(ctx, h.ID, h.Op, body)
	return nil
}

// hand hands a command to the driver, and its answer to the agent. What is for a ring of which that tells follows it on the stream.
func (p *relayed) hand(ctx context.Context, id uint64, op proto.Opcode, body []byte) {
	err := p.client.Relay(ctx, op, body, func(reply []byte, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err == nil {
			reply, err = p.understand(op, body, reply)
		}
		p.answered(id, reply, err)
	})
	if err != nil {
		p.work.Go(func() { p.answer(id, nil, err) })
	}
}

// answer answers a request.
func (p *relayed) answer(id uint64, reply []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered(id, reply, err)
}

// answered answers a request. The caller holds mu.
func (p *relayed) answered(id uint64, reply []byte, err error) {
	p.tellArenas()
	if cancel := p.requests[id]; cancel != nil {
		cancel()
		delete(p.requests, id)
	}
	h := answerHead{ID: id}
	if err == nil && len(reply) > maxMessage-headerSize-int(unsafe.Sizeof(h)) {
		err = command.Errorf(command.Exhausted, "an answer of %d bytes", len(reply))
	}
	if err != nil {
		h.Failed, reply = 1, proto.EncodeError(err)
	}
	p.send(answer, proto.Encode(h), reply)
}

// adapted returns a command's body as the driver is to have it: completions of all CQs are told by one channel, and memory is the
// program's, not the driver's.
func (p *relayed) adapted(op proto.Opcode, body []byte) ([]byte, error) {
	switch op {
	case proto.OpCreateCQ:
		q, err := proto.Decode[command.CreateCQ](body)
		q.Channel = uint32(p.channel)
		return proto.Encode(q), err
	case proto.OpRegisterMemory:
		q, err := proto.Decode[command.RegisterMemory](body)
		inMachine(&q)
		return proto.Encode(q), err
	case proto.OpRegisterMemoryAt:
		q, err := proto.Decode[command.RegisterMemoryAt](body)
		inMachine(&q.RegisterMemory)
		return proto.Encode(q), err
	case proto.OpReregisterMemory:
		q, err := proto.Decode[command.ReregisterMemory](body)
		inMachine(&q.RegisterMemory)
		return proto.Encode(q), err
	}
	return append([]byte(nil), body...), nil
}

// inMachine has a region reached at the program. One without bytes may be in device memory, which the driver has a segment for.
func inMachine(q *command.RegisterMemory) {
	if q.Length != 0 {
		q.Segment, q.SegmentOffset = 0, 0
	}
}

// understand notes what came to be by a command, or is gone, and returns the agent's answer. The caller holds mu.
func (p *relayed) understand(op proto.Opcode, body, reply []byte) ([]byte, error) {
	var err error
	switch op {
	case proto.OpCreateCQ, proto.OpResizeCQ:
		err = p.openCQ(op, reply)
	case proto.OpResizeSRQ:
		return p.moveSRQ(reply)
	case proto.OpClock:
		var c command.Clock
		c, err = proto.Decode[command.Clock](reply)
		reply = proto.Encode(clockBody{Zero: c.Zero, Now: monotonic.Now()})
	default:
		err = p.came(op, body, reply)
	}
	return reply, err
}

// openCQ opens the ring of a CQ. One that had another ring before has its completions there passed on first. The caller holds mu.
func (p *relayed) openCQ(op proto.Opcode, reply []byte) error {
	q, err := proto.Decode[command.Queue](reply)
	if err != nil {
		return err
	}
	b, err := within(p.client.Arenas(), q.Ring)
	if err != nil {
		return err
	}
	cq, err := ring.OpenCQ(b, ring.Geometry{Entries: int(q.Depth), Stride: int(q.Stride)})
	if err != nil {
		return err
	}
	if op == proto.OpResizeCQ {
		p.pass(q.Handle)
	}
	p.cqs[q.Handle] = cq
	p.pass(q.Handle)
	return nil
}

// moveSRQ continues in the ring that an SRQ was moved to. The caller holds mu.
func (p *relayed) moveSRQ(reply []byte) ([]byte, error) {
	q, err := proto.Decode[command.Queue](reply)
	if err != nil {
		return nil, err
	}
	n, err := newQueue(p.client.Arenas(), q.Ring, q.Depth, q.Stride)
	if err != nil {
		return nil, err
	}
	first := n.word(producerAt).Load()
	if err := n.resume(first); err != nil {
		return nil, err
	}
	p.queues[queueName{q.Handle, receives}] = n
	return append(reply, proto.Encode(resumedAt{Producer: first})...), nil
}

// came notes what came to be by a command, or is gone. The caller holds mu.
func (p *relayed) came(op proto.Opcode, body, reply []byte) error {
	switch op {
	case proto.OpCreateSRQ, proto.OpCreateXRCSRQ, proto.OpCreateTagSRQ:
		q, err := proto.Decode[command.Queue](reply)
		if err != nil {
			return err
		}
		if x, err := proto.Decode[command.CreateXRCSRQ](body); op == proto.OpCreateXRCSRQ && err == nil {
			p.within[q.Handle] = x.CQ
		}
		if x, err := proto.Decode[command.CreateTagSRQ](body); op == proto.OpCreateTagSRQ && err == nil {
			p.within[q.Handle] = x.CQ
		}
		return p.addQueue(queueName{q.Handle, receives}, q.Ring, q.Depth, q.Stride)
	case proto.OpCreateQP:
		c, err := proto.Decode[command.CreateQP](body)
		if err != nil {
			return err
		}
		q, err := proto.Decode[command.QueuePair](reply)
		if err != nil {
			return err
		}
		p.numbers[q.Number], p.shared[q.Handle] = q.Handle, c.SRQ
		if err := p.addQueue(queueName{q.Handle, sends}, q.Send, q.SendDepth, q.SendStride); err != nil {
			return err
		}
		return p.addQueue(queueName{q.Handle, receives}, q.Recv, q.RecvDepth, q.RecvStride)
	case proto.OpDestroy:
		q, err := proto.Decode[proto.DestroyArgs](body)
		if err != nil {
			return err
		}
		p.destroyed(q)
	}
	return nil
}

// addQueue opens a ring of requests; one without size is none. The caller holds mu.
func (p *relayed) addQueue(name queueName, at command.Ring, entries, stride uint32) error {
	if at.Size == 0 {
		return nil
	}
	q, err := newQueue(p.client.Arenas(), at, entries, stride)
	if err == nil {
		p.queues[name] = q
	}
	return err
}

// destroyed forgets an object. The caller holds mu.
func (p *relayed) destroyed(q proto.DestroyArgs) {
	switch q.Kind {
	case command.KindCQ:
		delete(p.cqs, q.Handle)
	case command.KindQP, command.KindSRQ:
		for _, s := range []side{sends, receives} {
			delete(p.queues, queueName{q.Handle, s})
			delete(p.busy, queueName{q.Handle, s})
		}
		for n, h := range p.numbers {
			if h == q.Handle {
				delete(p.numbers, n)
			}
		}
		delete(p.shared, q.Handle)
		delete(p.within, q.Handle)
	case command.KindChannel:
		if f := p.files[q.Handle]; f != nil {
			f.Close()
			delete(p.files, q.Handle)
			p.channels--
		}
	}
}

// createChannel creates a channel, whose events are passed on: those of connections and asynchronous ones. Events of completions are the
// agent's to raise, who has the rings.
func (p *relayed) createChannel(ctx context.Context, id uint64, q command.CreateChannel) {
	p.mu.Lock()
	full := p.channels >= mostChannels
	if !full {
		p.channels++
	}
	p.mu.Unlock()
	if full {
		p.answer(id, nil, command.Errorf(command.Exhausted, "channels: allowed: %d", mostChannels))
		return
	}
	h, f, err := p.client.OpenChannel(ctx, q)
	p.mu.Lock()
	switch {
	case err != nil:
		p.channels--
	case p.ctx.Err() != nil:
		f.Close()
	default:
		p.files[h] = f
	}
	p.mu.Unlock()
	p.answer(id, proto.Encode(proto.HandleArgs{Handle: h}), err)
	if err == nil && q.Kind != command.Completions {
		p.work.Go(func() { p.readChannel(h, f) })
	}
}

// readChannel passes the events of a channel on.
func (p *relayed) readChannel(h command.Handle, f *os.File) {
	b := make([]byte, unsafe.Sizeof(command.Event{}))
	for {
		if _, err := io.ReadFull(f, b); err != nil {
			return
		}
		p.send(raised, proto.Encode(raisedHead{Channel: h}), b)
	}
}
