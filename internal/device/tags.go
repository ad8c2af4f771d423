package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/tagmatch"
	"github.com/softvpi/softvpi/internal/transport"
)

// CreateTagSRQ implements command.Extended.
func (c *Client) CreateTagSRQ(ctx context.Context, r command.CreateTagSRQ) (command.Queue, error) {
	if err := c.enter(ctx); err != nil {
		return command.Queue{}, err
	}
	defer c.host.unlock()
	if err := within("Tags", r.Tags, 1, tagmatch.MaxTags); err != nil {
		return command.Queue{}, err
	}
	q, err := c.completionOf(r.CQ, r.CreateSRQ.PD)
	if err != nil {
		return command.Queue{}, err
	}
	out, err := c.createSRQ(r.CreateSRQ, nil, nil)
	if err != nil {
		return out, err
	}
	s := c.srqs.Get(out.Handle)
	s.tags, s.cq = tagmatch.New(int(r.Tags)), q
	q.uses++
	return out, nil
}

// TagOp implements command.Extended. What it does has happened when it returns.
func (c *Client) TagOp(ctx context.Context, r command.TagOp) (command.Handle, error) {
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	defer c.host.unlock()
	s, err := c.shared(r.SRQ)
	if err != nil {
		return 0, err
	}
	if err := s.checkTagOp(&r); err != nil {
		return 0, err
	}
	a := s.pd.adapter
	a.function.Drain(a.host.now()) // what has completed reaches the CQ first
	if r.Flags&command.TagCounts != 0 || r.Kind == command.TagSync {
		s.tags.Sync(r.Unexpected)
	}
	e := transport.Completion{CQ: transport.CQRef(s.cq.ref), CQE: ring.CQE{ID: r.ID, Timestamp: uint64(a.host.now())}}
	var entry uint32
	switch r.Kind {
	case command.TagAdd:
		e.Op = ring.CQTagAdd
		if entry, err = s.tags.Add(entryOf(&r)); err != nil {
			return 0, command.Errorf(command.Exhausted, "tags: %v", err)
		}
	case command.TagRemove:
		if e.Op = ring.CQTagRemove; !s.tags.Remove(r.Entry) {
			e.Status = ring.TagError
		}
	case command.TagSync:
		e.Op = ring.CQTagSync
	}
	if !s.tags.InSync() {
		e.Flags |= ring.TagSyncNeeded
	}
	if r.Flags&command.TagSignaled != 0 || e.Status != ring.Success {
		s.cq.push(a.host.now(), []transport.Completion{e})
	}
	return command.Handle(entry), nil
}

// checkTagOp checks the fields of a TagOp, so that nothing is half done.
func (s *srq) checkTagOp(r *command.TagOp) error {
	switch {
	case s.tags == nil:
		return command.Errorf(command.Invalid, "SRQ %#x matches no tags", uint32(r.SRQ))
	case r.Kind < command.TagAdd || r.Kind > command.TagSync:
		return command.Errorf(command.Invalid, "Kind is %d, want 1 (add), 2 (remove) or 3 (sync)", r.Kind)
	case r.Flags&^(command.TagSignaled|command.TagCounts) != 0:
		return command.Errorf(command.Invalid, "Flags is %#x, want bits of 0x3", r.Flags)
	case r.NumSGE > command.MaxTagSGE:
		return command.Errorf(command.Invalid, "NumSGE is %d, want 0 to %d", r.NumSGE, command.MaxTagSGE)
	case s.cq.failed:
		return command.Errorf(command.State, "the CQ of the SRQ has failed")
	}
	return nil
}

func entryOf(r *command.TagOp) *tagmatch.Entry {
	e := &tagmatch.Entry{ID: r.RecvID, Tag: r.Tag, Mask: r.Mask, NumSGE: uint8(r.NumSGE)}
	for i := range r.NumSGE {
		v := r.SGE[2*i+1]
		e.SGE[i] = ring.SGE{Addr: r.SGE[2*i], Length: uint32(v), LKey: uint32(v >> 32)}
	}
	return e
}

// matchesTags reports whether q receives from an SRQ that matches tags, for which it has to see packets.
func (q *qp) matchesTags() bool { return q.srq != nil && q.srq.tags != nil }

// checkTags makes a QP complete where its SRQ does, if that matches tags.
func (q *qp) checkTags(r *command.CreateQP) error {
	if !q.matchesTags() {
		return nil
	}
	if r.Type != command.RC {
		return command.Errorf(command.Invalid, "SRQ matches tags, and Type is %d, want 1 (RC)", r.Type)
	}
	q.recv = q.srq.cq
	return nil
}

// tagList returns the matching list of q, nil if it has none.
func (q *qp) tagList() *tagmatch.List {
	if !q.matchesTags() {
		return nil
	}
	return q.srq.tags
}
