package client

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/memory"
)

// ask sends a request with one answer.
func ask[R, Q any](ctx context.Context, c *Client, op proto.Opcode, q Q) (r R, err error) {
	a, err := c.call(ctx, op, proto.Encode(q))
	if err != nil {
		return r, err
	}
	return answerIn[R](a)
}

func answerIn[R any](a reply) (r R, err error) {
	if r, err = proto.Decode[R](a.body); err != nil {
		return r, command.Errorf(command.Internal, "the driver's answer: %v", err)
	}
	return r, nil
}

func askList[R, Q any](ctx context.Context, c *Client, op proto.Opcode, q Q) ([]R, error) {
	a, err := c.call(ctx, op, proto.Encode(q))
	if err != nil {
		return nil, err
	}
	r, err := proto.DecodeList[R](a.body)
	if err != nil {
		return nil, command.Errorf(command.Internal, "the driver's answer: %v", err)
	}
	return r, nil
}

func tell[Q any](ctx context.Context, c *Client, op proto.Opcode, q Q) error {
	_, err := ask[proto.Empty](ctx, c, op, q)
	return err
}

var _ command.Commands = (*Client)(nil)

// Adapters implements command.Commands.
func (c *Client) Adapters(ctx context.Context) ([]command.AdapterInfo, error) {
	return askList[command.AdapterInfo](ctx, c, proto.OpAdapters, proto.Empty{})
}

// GIDs implements command.Commands.
func (c *Client) GIDs(ctx context.Context, adapter uint32) ([]command.GID, error) {
	return askList[command.GID](ctx, c, proto.OpGIDs, proto.AdapterArgs{Adapter: adapter})
}

// Interfaces implements command.Commands.
func (c *Client) Interfaces(ctx context.Context, adapter uint32) ([]command.Interface, error) {
	return askList[command.Interface](ctx, c, proto.OpInterfaces, proto.AdapterArgs{Adapter: adapter})
}

// Counters implements command.Commands.
func (c *Client) Counters(ctx context.Context, adapter uint32) ([]command.Counter, error) {
	return askList[command.Counter](ctx, c, proto.OpCounters, proto.AdapterArgs{Adapter: adapter})
}

// Port implements command.Commands.
func (c *Client) Port(ctx context.Context, adapter uint32) (command.PortInfo, error) {
	return ask[command.PortInfo](ctx, c, proto.OpPort, proto.AdapterArgs{Adapter: adapter})
}

// MemoryInfo returns how much device memory an adapter has.
func (c *Client) MemoryInfo(ctx context.Context, adapter uint32) (command.MemoryInfo, error) {
	return ask[command.MemoryInfo](ctx, c, proto.OpMemoryInfo, proto.AdapterArgs{Adapter: adapter})
}

// AllocPD implements command.Commands.
func (c *Client) AllocPD(ctx context.Context, adapter uint32) (command.Handle, error) {
	return ask[command.Handle](ctx, c, proto.OpAllocPD, proto.AdapterArgs{Adapter: adapter})
}

// RegisterMemory implements command.Commands. Memory outside segments must stay in place until the region
// is destroyed. If the kernel copies it for the driver, it is moved to large pages, unless it is on demand.
func (c *Client) RegisterMemory(ctx context.Context, r command.RegisterMemory) (command.Memory, error) {
	m, err := ask[command.Memory](ctx, c, proto.OpRegisterMemory, r)
	if err == nil && m.Path == command.MemoryProcessVM && memory.Access(r.Access)&memory.OnDemand == 0 {
		c.gathering.add(m.Handle, r.Base, r.Length)
	}
	return m, err
}

// AllocWindow implements command.Commands.
func (c *Client) AllocWindow(ctx context.Context, pd command.Handle, typ uint32) (command.Memory, error) {
	return ask[command.Memory](ctx, c, proto.OpAllocWindow, proto.WindowArgs{PD: pd, Type: typ})
}

// CreateCQ implements command.Commands.
func (c *Client) CreateCQ(ctx context.Context, q command.CreateCQ) (command.Queue, error) {
	if q.Flags&^command.QPSignalAll != 0 && c.about.Minor < timesMinor {
		return command.Queue{}, c.older("flags of completion queues", timesMinor)
	}
	r, err := ask[command.Queue](ctx, c, proto.OpCreateCQ, q)
	if err == nil {
		err = c.words.set(c, r)
	}
	return r, err
}

// ResizeCQ implements command.Commands.
func (c *Client) ResizeCQ(ctx context.Context, cq command.Handle, depth uint32) (command.Queue, error) {
	r, err := ask[command.Queue](ctx, c, proto.OpResizeCQ, proto.ResizeArgs{Queue: cq, Depth: depth})
	if err == nil {
		err = c.words.set(c, r)
	}
	return r, err
}

// ModerateCQ implements command.Commands.
func (c *Client) ModerateCQ(ctx context.Context, m command.ModerateCQ) error {
	return tell(ctx, c, proto.OpModerateCQ, m)
}

// CreateSRQ implements command.Commands.
func (c *Client) CreateSRQ(ctx context.Context, q command.CreateSRQ) (command.Queue, error) {
	return ask[command.Queue](ctx, c, proto.OpCreateSRQ, q)
}

// ModifySRQ implements command.Commands.
func (c *Client) ModifySRQ(ctx context.Context, m command.ModifySRQ) error {
	return tell(ctx, c, proto.OpModifySRQ, m)
}

// ResizeSRQ implements command.Commands. Nothing may be posted to the SRQ from before the call until the
// program has switched to the new ring.
func (c *Client) ResizeSRQ(ctx context.Context, srq command.Handle, depth uint32) (command.Queue, error) {
	return ask[command.Queue](ctx, c, proto.OpResizeSRQ, proto.ResizeArgs{Queue: srq, Depth: depth})
}

// QuerySRQ implements command.Commands.
func (c *Client) QuerySRQ(ctx context.Context, srq command.Handle) (command.SRQInfo, error) {
	return ask[command.SRQInfo](ctx, c, proto.OpQuerySRQ, proto.HandleArgs{Handle: srq})
}

// CreateQP implements command.Commands.
func (c *Client) CreateQP(ctx context.Context, q command.CreateQP) (command.QueuePair, error) {
	if q.Flags&^command.QPSignalAll != 0 && c.about.Minor < qpFlagsMinor {
		return command.QueuePair{}, c.older("flags of queue pairs", qpFlagsMinor)
	}
	return ask[command.QueuePair](ctx, c, proto.OpCreateQP, q)
}

// ModifyQP implements command.Commands.
func (c *Client) ModifyQP(ctx context.Context, m command.ModifyQP) error {
	if m.Mask&command.MaskRoute != 0 && m.Route.StaticRate != 0 && c.minor() < staticRateMinor {
		return c.older("static rates", staticRateMinor)
	}
	return tell(ctx, c, proto.OpModifyQP, m)
}

// QueryQP implements command.Commands.
func (c *Client) QueryQP(ctx context.Context, qp command.Handle) (command.QPInfo, error) {
	return ask[command.QPInfo](ctx, c, proto.OpQueryQP, proto.HandleArgs{Handle: qp})
}

// CreateAH implements command.Commands.
func (c *Client) CreateAH(ctx context.Context, a command.CreateAH) (command.Handle, error) {
	if a.AV.StaticRate != 0 && c.minor() < staticRateMinor {
		return 0, c.older("static rates", staticRateMinor)
	}
	return ask[command.Handle](ctx, c, proto.OpCreateAH, a)
}

// AttachMulticast implements command.Commands.
func (c *Client) AttachMulticast(ctx context.Context, qp command.Handle, group command.Addr) error {
	return tell(ctx, c, proto.OpAttachMulticast, proto.MulticastArgs{QP: qp, Group: group})
}

// DetachMulticast implements command.Commands.
func (c *Client) DetachMulticast(ctx context.Context, qp command.Handle, group command.Addr) error {
	return tell(ctx, c, proto.OpDetachMulticast, proto.MulticastArgs{QP: qp, Group: group})
}

// Destroy implements command.Commands.
func (c *Client) Destroy(ctx context.Context, kind command.Kind, h command.Handle) error {
	if kind == command.KindMemory {
		c.gathering.forget(h) // the program may unmap it after this
	}
	err := tell(ctx, c, proto.OpDestroy, proto.DestroyArgs{Kind: kind, Handle: h})
	if err == nil && kind == command.KindCQ {
		c.words.drop(h)
	}
	if err == nil && kind == command.KindQP {
		c.introduced.forget(h)
	}
	return err
}

// CMCreate implements command.Commands.
func (c *Client) CMCreate(ctx context.Context, q command.CMCreate) (command.Handle, error) {
	if q.Space == command.IB && c.minor() < ibSpaceMinor {
		return 0, command.Errorf(command.Unsupported, "the driver knows no connections of the IB port space")
	}
	return ask[command.Handle](ctx, c, proto.OpCMCreate, q)
}

// CMBind implements command.Commands.
func (c *Client) CMBind(ctx context.Context, id command.Handle, local command.Endpoint) (command.Endpoint, error) {
	return ask[command.Endpoint](ctx, c, proto.OpCMBind, proto.BindArgs{ID: id, Local: local})
}

// CMOption implements command.Extended's.
func (c *Client) CMOption(ctx context.Context, q command.CMOption) error {
	return tell(ctx, c, proto.OpCMOption, q)
}

// CMResolveAddr implements command.Extended's.
func (c *Client) CMResolveAddr(ctx context.Context, q command.CMResolveAddr) error {
	return tell(ctx, c, proto.OpCMResolveAddr, q)
}

// CMListen implements command.Commands.
func (c *Client) CMListen(ctx context.Context, id command.Handle, backlog uint32) error {
	return tell(ctx, c, proto.OpCMListen, proto.ListenArgs{ID: id, Backlog: backlog})
}

// CMConnect implements command.Commands.
func (c *Client) CMConnect(ctx context.Context, q command.CMConnect) (command.Handle, error) {
	return ask[command.Handle](ctx, c, proto.OpCMConnect, q)
}

// CMAccept implements command.Commands.
func (c *Client) CMAccept(ctx context.Context, q command.CMAccept) error {
	return tell(ctx, c, proto.OpCMAccept, q)
}

// BeginConnect is CMConnect without waiting for the driver: whoever receives the answer passes it to then,
// which must not block. Events of the id may come before. If BeginConnect returns an error, nothing was
// begun.
func (c *Client) BeginConnect(ctx context.Context, q command.CMConnect, then func(command.Handle, error)) error {
	return c.begin(ctx, proto.OpCMConnect, proto.Encode(q), func(r reply) {
		var h command.Handle
		err := r.err
		if err == nil {
			h, err = answerIn[command.Handle](r)
		}
		then(h, err)
	})
}

// BeginAccept is CMAccept without waiting, like BeginConnect.
func (c *Client) BeginAccept(ctx context.Context, q command.CMAccept, then func(error)) error {
	return c.begin(ctx, proto.OpCMAccept, proto.Encode(q), func(r reply) { then(r.err) })
}

// CMEstablish implements command.Commands. It does not wait for the driver.
func (c *Client) CMEstablish(ctx context.Context, id command.Handle) error {
	if ctx.Err() != nil {
		return command.Ended(ctx)
	}
	if err := c.calls.failure(); err != nil {
		return err
	}
	if err := c.send(proto.OpCMEstablish, proto.Unanswered, proto.Encode(proto.HandleArgs{Handle: id})); err != nil {
		return removed(err)
	}
	return nil
}

// CMReject implements command.Commands.
func (c *Client) CMReject(ctx context.Context, q command.CMReject) error {
	return tell(ctx, c, proto.OpCMReject, q)
}

// CMDisconnect implements command.Commands.
func (c *Client) CMDisconnect(ctx context.Context, id command.Handle) error {
	return tell(ctx, c, proto.OpCMDisconnect, proto.HandleArgs{Handle: id})
}

// CMQuery implements command.Commands.
func (c *Client) CMQuery(ctx context.Context, id command.Handle) (command.CMInfo, error) {
	return ask[command.CMInfo](ctx, c, proto.OpCMQuery, proto.HandleArgs{Handle: id})
}

// CMAttributes implements command.Commands.
func (c *Client) CMAttributes(ctx context.Context, id command.Handle, state command.QPState) (command.ModifyQP, error) {
	return ask[command.ModifyQP](ctx, c, proto.OpCMAttributes, proto.AttributesArgs{ID: id, State: state})
}
