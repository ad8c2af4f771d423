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
	"github.com/softvpi/softvpi/internal/ring"
)

// refused are the operations that a stream does not carry, with why.
var refused = map[proto.Opcode]string{
	proto.OpResizeCQ:  "completion queues of programs on another machine keep their size",
	proto.OpResizeSRQ: "shared receive queues of programs on another machine keep their size",
	proto.OpClock:     "the driver's clock is another machine's",
}

// local are the operations whose answers mean something on the driver's machine alone.
var local = map[proto.Opcode]bool{proto.OpInterfaces: true, proto.OpLinkAddresses: true}

// carried are the operations that a stream carries.
var carried = func() (set [proto.OpEnd]bool) {
	for _, op := range server.Handled() {
		set[op] = refused[op] == ""
	}
	set[proto.OpCreateChannel] = true
	return set
}()

// request carries out a command of the program. Its error ends the program.
func (p *relayed) request(body []byte) error {
	h, body, err := head[requestHead](body)
	if err != nil {
		return err
	}
	if h.Op >= proto.OpEnd || !carried[h.Op] && refused[h.Op] == "" || len(body) > proto.MaxRequest-proto.HeaderSize {
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
	if why := refused[h.Op]; why != "" {
		p.work.Go(func() { p.answer(h.ID, nil, command.Errorf(command.Unsupported, "%s", why)) })
		return nil
	}
	if local[h.Op] {
		p.work.Go(func() { p.answer(h.ID, nil, nil) })
		return nil
	}
	if h.Op == proto.OpCreateChannel {
		q, err := proto.Decode[command.CreateChannel](body)
		if err != nil {
			return err
		}
		p.work.Go(func() { p.createChannel(ctx, h.ID, q) })
		return nil
	}
	body, err = p.adapted(h.Op, body)
	if err != nil {
		return err
	}
	err = p.client.Relay(ctx, h.Op, body, func(reply []byte, err error) {
		if err == nil {
			err = p.understand(h.Op, body, reply)
		}
		p.answer(h.ID, reply, err)
	})
	if err != nil {
		p.work.Go(func() { p.answer(h.ID, nil, err) })
	}
	return nil
}

// answer answers a request.
func (p *relayed) answer(id uint64, reply []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
		q.Segment, q.SegmentOffset = 0, 0
		return proto.Encode(q), err
	case proto.OpRegisterMemoryAt:
		q, err := proto.Decode[command.RegisterMemoryAt](body)
		q.Segment, q.SegmentOffset = 0, 0
		return proto.Encode(q), err
	case proto.OpReregisterMemory:
		q, err := proto.Decode[command.ReregisterMemory](body)
		q.Segment, q.SegmentOffset = 0, 0
		return proto.Encode(q), err
	}
	return append([]byte(nil), body...), nil
}

// understand notes what came to be by a command, or is gone.
func (p *relayed) understand(op proto.Opcode, body, reply []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch op {
	case proto.OpCreateCQ:
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
		cq.Arm(ring.ArmAny)
		p.cqs[q.Handle] = cq
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
