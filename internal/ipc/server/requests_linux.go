package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// prompt are the commands that rarely wait. They are executed in order, without a goroutine each, and
// answers to requests that came together are sent together.
var prompt = [proto.OpEnd]bool{
	proto.OpCreateQP: true, proto.OpModifyQP: true, proto.OpQueryQP: true, proto.OpDestroy: true,
	proto.OpCMCreate: true, proto.OpCMConnect: true, proto.OpCMAccept: true, proto.OpCMEstablish: true, proto.OpCMQuery: true,
}

// answer executes a prompt request. One that has to wait is started like the others.
func (n *session) answer(h proto.Header, body []byte) error {
	if h.ID == proto.Unanswered && h.Op == proto.OpCMEstablish {
		if _, err := Execute(n.ctx, n.client, h.Op, body); errors.Is(err, proto.ErrFrame) {
			return err
		}
		return nil // an event reports a failure to establish
	}
	n.mu.Lock()
	used := h.ID == proto.Unanswered || n.inFlight[h.ID] != nil
	n.mu.Unlock()
	if used {
		return fmt.Errorf("%w: request id %d is 0 or in use", proto.ErrFrame, h.ID)
	}
	reply, err := Execute(n.promptly, n.client, h.Op, body)
	if errors.Is(err, device.ErrWaits) {
		return n.request(h, body)
	}
	flags := uint16(proto.FlagResponse)
	if errors.Is(err, proto.ErrFrame) {
		return err
	} else if err != nil {
		flags, reply = proto.FlagResponse|proto.FlagError, proto.EncodeError(err)
	} else if err := n.sendArenas(); err != nil {
		n.failed(err)
		return nil
	}
	if err := n.out.Later(h.Op, flags, h.ID, reply); err != nil {
		n.failed(err)
	}
	return nil
}

func (n *session) grant(c proto.Credit) error {
	if have := n.credits.grant(c.Events); have > proto.EventCredits {
		return fmt.Errorf("%w: event credits %d: allowed: up to %d in all", proto.ErrFrame, have, proto.EventCredits)
	}
	return nil
}

// request starts a request. If the maximum number are unanswered it waits, and the stream is not read
// meanwhile.
func (n *session) request(h proto.Header, body []byte) error {
	if err := n.slot(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(n.ctx)
	n.mu.Lock()
	if h.ID == 0 || n.inFlight[h.ID] != nil {
		n.mu.Unlock()
		cancel()
		return fmt.Errorf("%w: request id %d is 0 or in use", proto.ErrFrame, h.ID)
	}
	n.inFlight[h.ID] = cancel
	n.mu.Unlock()
	body = append([]byte(nil), body...)
	n.requests.Add(1)
	go func() {
		defer n.requests.Done()
		err := n.carryOut(ctx, h, body)
		cancel()
		if err != nil {
			n.failed(err)
		}
	}()
	return nil
}

// slot waits until another unanswered request is allowed, after flushing the answers that are ready.
func (n *session) slot() error {
	select {
	case n.slots <- struct{}{}:
		return nil
	default:
	}
	if err := n.out.Flush(); err != nil {
		n.failed(err)
	}
	select {
	case n.slots <- struct{}{}:
		return nil
	case <-n.ctx.Done():
		return context.Cause(n.ctx)
	}
}

// carryOut executes a request and answers it. Its error ends the session.
func (n *session) carryOut(ctx context.Context, h proto.Header, body []byte) error {
	var files []*file
	if h.Op == proto.OpAllocSegment || h.Op == proto.OpCreateChannel || h.Op == proto.OpAllocDM || h.Op == proto.OpImport {
		defer n.server.open.pass(ctx)()
	}
	reply, err := recorded(n.client, h.Op, body, func() (reply []byte, err error) {
		switch h.Op {
		case proto.OpAllocSegment:
			reply, files, err = n.allocSegment(body)
		case proto.OpAllocDM:
			reply, files, err = n.allocDM(ctx, body)
		case proto.OpExport:
			reply, err = n.export(body)
		case proto.OpImport:
			reply, files, err = n.importObject(ctx, body)
		case proto.OpFreeSegment:
			err = n.freeSegment(body)
		case proto.OpMapSegment:
			reply, files, err = n.mapSegment(body)
		case proto.OpCreateChannel:
			reply, files, err = n.createChannel(ctx, body)
		default:
			reply, err = perform(ctx, n.client, h.Op, body)
		}
		return reply, err
	})
	defer releaseAll(files)
	if errors.Is(err, proto.ErrFrame) {
		return err
	}
	// Free the id before sending the answer: its reader may reuse it.
	n.mu.Lock()
	delete(n.inFlight, h.ID)
	n.mu.Unlock()
	defer func() { <-n.slots }()
	if err != nil {
		return n.out.Send(h.Op, proto.FlagResponse|proto.FlagError, h.ID, proto.EncodeError(err))
	}
	if err := n.sendArenas(); err != nil {
		return err
	}
	return n.out.Send(h.Op, proto.FlagResponse, h.ID, reply, numbersOf(files)...)
}

func (n *session) allocSegment(body []byte) ([]byte, []*file, error) {
	q, err := proto.Decode[proto.SegmentArgs](body)
	if err != nil {
		return nil, nil, err
	}
	id, f, err := n.segments.alloc(q.Size, n.segments.keep)
	if err != nil {
		return nil, nil, err
	}
	return proto.Encode(proto.SegmentReply{Number: id, Size: q.Size}), []*file{f}, nil
}

func (n *session) freeSegment(body []byte) error {
	q, err := proto.Decode[proto.HandleArgs](body)
	if err != nil {
		return err
	}
	return n.segments.free(uint32(q.Handle))
}
