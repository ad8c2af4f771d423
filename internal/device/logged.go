package device

import (
	"context"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// The commands that name an object or an adapter, as command.Commands has them: each is carried out, and noted
// with the time that it took.

// AllocPD implements command.Commands.
func (c *LoggedClient) AllocPD(ctx context.Context, adapter uint32) (command.Handle, error) {
	began := time.Now()
	out, err := c.Client.AllocPD(ctx, adapter)
	c.made(commandAllocPD, began, int(adapter), out, err)
	return out, err
}

// RegisterMemory implements command.Commands.
func (c *LoggedClient) RegisterMemory(ctx context.Context, r command.RegisterMemory) (command.Memory, error) {
	began := time.Now()
	out, err := c.Client.RegisterMemory(ctx, r)
	c.made(commandRegisterMemory, began, c.where(r.PD), out.Handle, err)
	return out, err
}

// AllocWindow implements command.Commands.
func (c *LoggedClient) AllocWindow(ctx context.Context, pd command.Handle, typ uint32) (command.Memory, error) {
	began := time.Now()
	out, err := c.Client.AllocWindow(ctx, pd, typ)
	c.made(commandAllocWindow, began, c.where(pd), out.Handle, err)
	return out, err
}

// CreateCQ implements command.Commands.
func (c *LoggedClient) CreateCQ(ctx context.Context, r command.CreateCQ) (command.Queue, error) {
	began := time.Now()
	out, err := c.Client.CreateCQ(ctx, r)
	c.made(commandCreateCQ, began, int(r.Adapter), out.Handle, err)
	return out, err
}

// ResizeCQ implements command.Commands.
func (c *LoggedClient) ResizeCQ(ctx context.Context, cq command.Handle, depth uint32) (command.Queue, error) {
	began := time.Now()
	out, err := c.Client.ResizeCQ(ctx, cq, depth)
	c.note(commandResizeCQ, began, c.where(cq), err)
	return out, err
}

// ModerateCQ implements command.Commands.
func (c *LoggedClient) ModerateCQ(ctx context.Context, r command.ModerateCQ) error {
	began := time.Now()
	err := c.Client.ModerateCQ(ctx, r)
	c.note(commandModerateCQ, began, c.where(r.CQ), err)
	return err
}

// CreateSRQ implements command.Commands.
func (c *LoggedClient) CreateSRQ(ctx context.Context, r command.CreateSRQ) (command.Queue, error) {
	began := time.Now()
	out, err := c.Client.CreateSRQ(ctx, r)
	c.made(commandCreateSRQ, began, c.where(r.PD), out.Handle, err)
	return out, err
}

// ModifySRQ implements command.Commands.
func (c *LoggedClient) ModifySRQ(ctx context.Context, r command.ModifySRQ) error {
	began := time.Now()
	err := c.Client.ModifySRQ(ctx, r)
	c.note(commandModifySRQ, began, c.where(r.SRQ), err)
	return err
}

// ResizeSRQ implements command.Commands.
func (c *LoggedClient) ResizeSRQ(ctx context.Context, srq command.Handle, depth uint32) (command.Queue, error) {
	began := time.Now()
	out, err := c.Client.ResizeSRQ(ctx, srq, depth)
	c.note(commandResizeSRQ, began, c.where(srq), err)
	return out, err
}

// QuerySRQ implements command.Commands.
func (c *LoggedClient) QuerySRQ(ctx context.Context, srq command.Handle) (command.SRQInfo, error) {
	began := time.Now()
	out, err := c.Client.QuerySRQ(ctx, srq)
	c.note(commandQuerySRQ, began, c.where(srq), err)
	return out, err
}

// CreateQP implements command.Commands.
func (c *LoggedClient) CreateQP(ctx context.Context, r command.CreateQP) (command.QueuePair, error) {
	began := time.Now()
	out, err := c.Client.CreateQP(ctx, r)
	c.made(commandCreateQP, began, c.where(r.PD), out.Handle, err)
	return out, err
}

// ModifyQP implements command.Commands.
func (c *LoggedClient) ModifyQP(ctx context.Context, r command.ModifyQP) error {
	began := time.Now()
	err := c.Client.ModifyQP(ctx, r)
	c.note(commandModifyQP, began, c.where(r.QP), err)
	return err
}

// QueryQP implements command.Commands.
func (c *LoggedClient) QueryQP(ctx context.Context, qp command.Handle) (command.QPInfo, error) {
	began := time.Now()
	out, err := c.Client.QueryQP(ctx, qp)
	c.note(commandQueryQP, began, c.where(qp), err)
	return out, err
}

// CreateAH implements command.Commands.
func (c *LoggedClient) CreateAH(ctx context.Context, r command.CreateAH) (command.Handle, error) {
	began := time.Now()
	out, err := c.Client.CreateAH(ctx, r)
	c.made(commandCreateAH, began, c.where(r.PD), out, err)
	return out, err
}

// AttachMulticast implements command.Commands.
func (c *LoggedClient) AttachMulticast(ctx context.Context, qp command.Handle, group command.Addr) error {
	began := time.Now()
	err := c.Client.AttachMulticast(ctx, qp, group)
	c.note(commandAttachMulticast, began, c.where(qp), err)
	return err
}

// DetachMulticast implements command.Commands.
func (c *LoggedClient) DetachMulticast(ctx context.Context, qp command.Handle, group command.Addr) error {
	began := time.Now()
	err := c.Client.DetachMulticast(ctx, qp, group)
	c.note(commandDetachMulticast, began, c.where(qp), err)
	return err
}

// CMBind implements command.Commands.
func (c *LoggedClient) CMBind(ctx context.Context, id command.Handle, local command.Endpoint) (command.Endpoint, error) {
	began := time.Now()
	out, err := c.Client.CMBind(ctx, id, local)
	c.note(commandCMBind, began, c.where(id), err)
	return out, err
}

// CMListen implements command.Commands.
func (c *LoggedClient) CMListen(ctx context.Context, id command.Handle, backlog uint32) error {
	began := time.Now()
	err := c.Client.CMListen(ctx, id, backlog)
	c.note(commandCMListen, began, c.where(id), err)
	return err
}

// CMConnect implements command.Commands.
func (c *LoggedClient) CMConnect(ctx context.Context, r command.CMConnect) (command.Handle, error) {
	began := time.Now()
	out, err := c.Client.CMConnect(ctx, r)
	switch {
	case r.ID != 0:
		c.note(commandCMConnect, began, c.where(r.ID), err)
	case r.Adapter != anyAdapter:
		c.made(commandCMConnect, began, int(r.Adapter), out, err)
	default:
		c.note(commandCMConnect, began, c.where(out), err)
	}
	return out, err
}

// CMAccept implements command.Commands.
func (c *LoggedClient) CMAccept(ctx context.Context, r command.CMAccept) error {
	began := time.Now()
	err := c.Client.CMAccept(ctx, r)
	c.note(commandCMAccept, began, c.where(r.ID), err)
	return err
}

// CMEstablish implements command.Commands.
func (c *LoggedClient) CMEstablish(ctx context.Context, id command.Handle) error {
	began := time.Now()
	err := c.Client.CMEstablish(ctx, id)
	c.note(commandCMEstablish, began, c.where(id), err)
	return err
}

// CMReject implements command.Commands.
func (c *LoggedClient) CMReject(ctx context.Context, r command.CMReject) error {
	began := time.Now()
	err := c.Client.CMReject(ctx, r)
	c.note(commandCMReject, began, c.where(r.ID), err)
	return err
}

// CMDisconnect implements command.Commands.
func (c *LoggedClient) CMDisconnect(ctx context.Context, id command.Handle) error {
	began := time.Now()
	err := c.Client.CMDisconnect(ctx, id)
	c.note(commandCMDisconnect, began, c.where(id), err)
	return err
}

// CMQuery implements command.Commands.
func (c *LoggedClient) CMQuery(ctx context.Context, id command.Handle) (command.CMInfo, error) {
	began := time.Now()
	out, err := c.Client.CMQuery(ctx, id)
	c.note(commandCMQuery, began, c.where(id), err)
	return out, err
}

// CMAttributes implements command.Commands.
func (c *LoggedClient) CMAttributes(ctx context.Context, id command.Handle, state command.QPState) (command.ModifyQP, error) {
	began := time.Now()
	out, err := c.Client.CMAttributes(ctx, id, state)
	c.note(commandCMAttributes, began, c.where(id), err)
	return out, err
}

// CMCreate implements command.Commands.
func (c *LoggedClient) CMCreate(ctx context.Context, r command.CMCreate) (command.Handle, error) {
	began := time.Now()
	out, err := c.Client.CMCreate(ctx, r)
	adapter := unknownAdapter // until it is bound
	if r.Adapter != anyAdapter {
		adapter = int(r.Adapter)
	}
	c.made(commandCMCreate, began, adapter, out, err)
	return out, err
}

// Destroy implements command.Commands.
func (c *LoggedClient) Destroy(ctx context.Context, kind command.Kind, h command.Handle) error {
	began, adapter := time.Now(), c.where(h) // afterwards it is nowhere
	err := c.Client.Destroy(ctx, kind, h)
	c.note(commandDestroy, began, adapter, err)
	return err
}

// Events implements command.Commands. Waiting for events is not noted; the connections that they bring are known
// from then on.
func (c *LoggedClient) Events(ctx context.Context, out []command.Event) (int, error) {
	n, err := c.Client.Events(ctx, out)
	for i := range out[:n] {
		if out[i].Type == command.EventConnectRequest {
			c.learn(out[i].NewID, int(out[i].Adapter))
		}
	}
	return n, err
}
