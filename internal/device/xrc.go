package device

import (
	"context"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/transport"
)

// xrcDomain is an XRC domain (IBA annex A14.2): shared receive queues, and the target QPs whose messages may be for any of
// them. Programs of one user that open it by the same file share it.
type xrcDomain struct {
	adapter *adapter
	number  uint32 // by which the engine knows it
	file    *fileOfUser
	opens   int
}

// fileOfUser is what programs that share a domain have in common.
type fileOfUser struct {
	uid           int
	device, inode uint64
}

// xrcd is a program's handle of a domain.
type xrcd struct {
	handle command.Handle
	domain *xrcDomain
	uses   int // SRQs and target QPs of this program that were made or opened through it
}

// xrcTarget is what the handles of a target QP share.
type xrcTarget struct{ handles []*qp }

// OpenXRCD implements command.Extended.
func (c *Client) OpenXRCD(ctx context.Context, r command.OpenXRCD) (command.Handle, error) {
	const flags = command.XRCDCreate | command.XRCDExclusive | command.XRCDFile
	if r.Flags&^flags != 0 {
		return 0, command.Errorf(command.Invalid, "Flags is %#x, want bits of %#x", r.Flags, uint32(flags))
	}
	a, err := c.begin(ctx, r.Adapter)
	if err != nil {
		return 0, err
	}
	defer c.host.unlock()
	d, err := a.domainFor(c, &r)
	if err != nil {
		return 0, err
	}
	if err := c.room(a, "XRC domains", a.objects.XRCD, a.limits.PD); err != nil {
		return 0, err
	}
	x := &xrcd{domain: d}
	if x.handle, err = c.xrcds.Add(x); err != nil {
		return 0, err
	}
	a.objects.XRCD++
	if d.opens++; d.file != nil {
		a.domains[*d.file] = d
	}
	return x.handle, nil
}

// domainFor returns the domain that a program asks for: the one of its file, or else a new one.
func (a *adapter) domainFor(c *Client, r *command.OpenXRCD) (*xrcDomain, error) {
	var file *fileOfUser
	if r.Flags&command.XRCDFile != 0 {
		file = &fileOfUser{c.cfg.UID, r.Device, r.Inode}
		if d := a.domains[*file]; d != nil {
			if r.Flags&command.XRCDExclusive != 0 {
				return nil, command.Errorf(command.InUse, "the file already has an XRC domain")
			}
			return d, nil
		}
	}
	if r.Flags&command.XRCDCreate == 0 {
		return nil, command.Errorf(command.NotFound, "the file has no XRC domain, and Flags do not ask for a new one")
	}
	a.nextDomain++
	return &xrcDomain{adapter: a, number: a.nextDomain, file: file}, nil
}

// xrcDomain returns a domain of the client on an adapter that accepts new requests.
func (c *Client) xrcDomain(h command.Handle) (*xrcd, error) {
	x := c.xrcds.Get(h)
	if x == nil {
		return nil, notFound("XRCD", h)
	}
	return x, x.domain.adapter.usable()
}

func (c *Client) destroyXRCD(h command.Handle) error {
	x := c.xrcds.Get(h)
	if x == nil {
		return notFound("XRCD", h)
	}
	if x.uses > 0 {
		return busy("the XRC domain", x.uses)
	}
	c.xrcds.Remove(h)
	d := x.domain
	d.adapter.objects.XRCD--
	if d.opens--; d.opens == 0 && d.file != nil {
		delete(d.adapter.domains, *d.file)
	}
	return nil
}

// CreateXRCSRQ implements command.Extended.
func (c *Client) CreateXRCSRQ(ctx context.Context, r command.CreateXRCSRQ) (command.Queue, error) {
	if err := c.enter(ctx); err != nil {
		return command.Queue{}, err
	}
	defer c.host.unlock()
	x, err := c.xrcDomain(r.XRCD)
	if err != nil {
		return command.Queue{}, err
	}
	q, err := c.completionOf(r.CQ, r.CreateSRQ.PD)
	if err != nil {
		return command.Queue{}, err
	}
	if q.adapter != x.domain.adapter {
		return command.Queue{}, command.Errorf(command.Invalid, "XRCD and CQ are of different adapters")
	}
	return c.createSRQ(r.CreateSRQ, x, q)
}

// share makes s an SRQ of an XRC domain.
func (s *srq) share(x *xrcd, q *cq) {
	s.xrcd, s.cq = x, q
	a := s.pd.adapter
	s.shared = &transport.SharedQueue{Domain: x.domain.number, PD: s.pd.number, CQ: transport.CQRef(q.ref), Queue: s}
	for {
		a.nextSRQ++
		if s.shared.Number = a.nextSRQ & 0xffffff; a.engine.AddSharedQueue(s.shared) == nil {
			break // there are many more numbers than SRQs
		}
	}
	s.number = s.shared.Number
	x.uses++
	q.uses++
}

// unshare takes an SRQ out of its XRC domain.
func (s *srq) unshare() {
	if s.shared == nil {
		return
	}
	a := s.pd.adapter
	a.function.Drain(a.host.now()) // what has completed reaches the CQ first
	a.engine.RemoveSharedQueue(s.shared)
	s.shared = nil
	s.xrcd.uses--
	s.cq.uses--
}

// checkXRC resolves the objects of a QP of XRC: an initiator has a send queue only, a target a domain.
func (q *qp) checkXRC(r *command.CreateQP) (err error) {
	if r.Type == command.XRCInitiator {
		if q.send, err = q.client.completion("SendCQ", r.SendCQ); err != nil {
			return err
		}
		if q.send.adapter != q.adapter {
			return command.Errorf(command.Invalid, "SendCQ and PD are of different adapters")
		}
	}
	if r.SRQ != 0 {
		return command.Errorf(command.Invalid, "SRQ is %#x, want none: the requests of an XRC connection name theirs", uint32(r.SRQ))
	}
	return nil
}

// createTarget creates a target QP in a domain. It has no rings: it sends nothing, and receives into the domain's SRQs.
func (c *Client) createTarget(r *command.CreateQP) (command.QueuePair, error) {
	x, err := c.xrcDomain(r.XRCD)
	if err != nil {
		return command.QueuePair{}, err
	}
	a := x.domain.adapter
	if err := c.barred(a); err != nil {
		return command.QueuePair{}, err
	}
	q := &qp{client: c, adapter: a, xrcd: x, context: r.Context, target: &xrcTarget{}}
	if err := q.checkXRC(r); err != nil {
		return command.QueuePair{}, err
	}
	if err := c.room(a, "QPs", a.objects.QP, a.limits.QP); err != nil {
		return command.QueuePair{}, err
	}
	if q.tq, err = a.engine.CreateQP(c.host.now(), transport.QPConfig{
		Type: command.XRCTarget, Domain: x.domain.number, Context: r.Context,
	}); err != nil {
		return command.QueuePair{}, engineError(err)
	}
	q.number = q.tq.Number()
	if q.handle, err = c.qps.Add(q); err != nil {
		a.engine.Destroy(c.host.now(), q.tq)
		return command.QueuePair{}, err
	}
	a.byNumber[q.number] = q
	a.objects.QP++
	x.uses++
	q.target.handles = append(q.target.handles, q)
	return command.QueuePair{Handle: q.handle, Number: q.number}, nil
}

// OpenQP implements command.Extended: the program gets a handle of a target QP that another has created in a domain that
// both have open. The QP ends with its last handle, and each handle gets its events.
func (c *Client) OpenQP(ctx context.Context, r command.OpenQP) (command.QueuePair, error) {
	if err := c.enter(ctx); err != nil {
		return command.QueuePair{}, err
	}
	defer c.host.unlock()
	x, err := c.xrcDomain(r.XRCD)
	if err != nil {
		return command.QueuePair{}, err
	}
	a := x.domain.adapter
	first := a.byNumber[r.Number]
	if first == nil || first.target == nil || first.tq == nil || first.xrcd.domain != x.domain {
		return command.QueuePair{}, command.Errorf(command.NotFound, "Number is %#x, want that of a target QP in the XRC domain", r.Number)
	}
	q := &qp{client: c, adapter: a, xrcd: x, context: r.Context, target: first.target, tq: first.tq, number: r.Number}
	if err := c.room(a, "QPs", a.objects.QP, a.limits.QP); err != nil {
		return command.QueuePair{}, err
	}
	if q.handle, err = c.qps.Add(q); err != nil {
		return command.QueuePair{}, err
	}
	a.objects.QP++
	x.uses++
	q.target.handles = append(q.target.handles, q)
	return command.QueuePair{Handle: q.handle, Number: q.number}, nil
}

// abandon drops a handle of a target QP. It returns false if it was the last one.
func (q *qp) abandon() bool {
	t := q.target
	t.handles = slices.DeleteFunc(t.handles, func(o *qp) bool { return o == q })
	q.xrcd.uses--
	if len(t.handles) == 0 {
		return false
	}
	if q.tq != nil {
		q.adapter.objects.QP--
		if q.adapter.byNumber[q.number] == q {
			q.adapter.byNumber[q.number] = t.handles[0]
			q.passOn(t.handles[0])
		}
	}
	q.tq = nil
	return true
}

// passOn leaves to another handle what the host keeps of the QP.
func (q *qp) passOn(next *qp) {
	if o := q.cm; o != nil {
		o.qp, next.cm, q.cm = next, o, nil
	}
	next.delegable, next.joining, next.choice = q.delegable, q.joining, q.choice
	if j := q.joining; j != nil {
		if j.q == q {
			j.q = next
		}
		if j.p == q {
			j.p = next
		}
	}
	q.joining = nil
}

// first returns the handle by which the host knows the QP.
func (q *qp) first() *qp {
	if q.target != nil {
		if o := q.adapter.byNumber[q.number]; o != nil {
			return o
		}
	}
	return q
}

// tell raises an event of a QP, for each of its handles.
func (q *qp) tell(e command.EventType) {
	if q.target == nil {
		q.client.event(command.Event{Type: e, Object: q.handle, Context: q.context, Adapter: q.adapter.index})
		return
	}
	for _, o := range q.target.handles {
		o.client.event(command.Event{Type: e, Object: o.handle, Context: o.context, Adapter: o.adapter.index})
	}
}

// endShared ends the SRQs that complete in a CQ which has ended: messages for them are refused from now on.
func (q *cq) endShared() {
	q.client.srqs.Each(func(s *srq) {
		if s.cq == q && s.shared != nil {
			s.pd.adapter.engine.RemoveSharedQueue(s.shared)
			s.fail()
		}
	})
}
