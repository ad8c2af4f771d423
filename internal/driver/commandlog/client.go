package commandlog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/device/handle"
)

// Client is a program whose commands a Log records.
type Client struct {
	*device.Client
	log     *Log
	program string
	pid     int

	mu sync.Mutex
	// known holds the adapter of each object, by kind and index of its handle, as one more than the
	// adapter's index; 0: unknown.
	known [command.KindCM + 1][]uint8
}

// Client returns c with its commands recorded as those of a program.
func (l *Log) Client(c *device.Client, program string, pid int) *Client {
	return &Client{Client: c, log: l, program: program, pid: pid}
}

// unknownAdapter is the adapter of an object whose adapter is unknown.
const unknownAdapter = -1

// where returns the adapter of an object.
func (c *Client) where(h command.Handle) int {
	kind, i := handle.Kind(h), handle.Index(h)
	if kind == 0 || kind > command.KindCM {
		return unknownAdapter
	}
	c.mu.Lock()
	adapter := unknownAdapter
	if i < uint32(len(c.known[kind])) {
		adapter = int(c.known[kind][i]) - 1
	}
	c.mu.Unlock()
	if adapter != unknownAdapter {
		return adapter
	}
	if index, ok := c.Client.AdapterOf(h); ok {
		c.learn(h, int(index))
		return int(index)
	}
	return unknownAdapter
}

// learn records the adapter of an object.
func (c *Client) learn(h command.Handle, adapter int) {
	kind, i := handle.Kind(h), int(handle.Index(h))
	if kind == 0 || kind > command.KindCM || adapter >= 1<<8-1 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.known[kind]) <= i {
		c.known[kind] = append(c.known[kind], 0)
	}
	c.known[kind][i] = uint8(adapter + 1)
}

// made records a command that created an object.
func (c *Client) made(kind int, began time.Time, adapter int, h command.Handle, err error) {
	if err == nil {
		c.learn(h, adapter)
	}
	c.note(kind, began, adapter, err)
}

// note records a command.
func (c *Client) note(kind int, began time.Time, adapter int, err error) {
	if adapter < 0 || adapter >= len(c.log.adapters) || errors.Is(err, device.ErrWaits) {
		return // not for an adapter, or not executed yet
	}
	r := Record{Began: began, Took: time.Since(began), Command: commandNames[kind], Program: c.program, PID: c.pid}
	if err != nil {
		r.Failure = command.Internal
		var e *command.Error
		if errors.As(err, &e) {
			r.Failure = e.Code
		}
	}
	c.log.adapters[adapter].add(kind, r)
}

// The commands of command.Commands that refer to an object or an adapter: each is executed, and recorded
// with the time that it took.

// AllocPD implements command.Commands.
func (c *Client) AllocPD(ctx context.Context, adapter uint32) (command.Handle, error) {
	began := time.Now()
	out, err := c.Client.AllocPD(ctx, adapter)
	c.made(commandAllocPD, began, int(adapter), out, err)
	return out, err
}

// RegisterMemory implements command.Commands.
func (c *Client) RegisterMemory(ctx context.Context, r command.RegisterMemory) (command.Memory, error) {
	began := time.Now()
	out, err := c.Client.RegisterMemory(ctx, r)
	c.made(commandRegisterMemory, began, c.where(r.PD), out.Handle, err)
	return out, err
}

// ReregisterMemory implements command.Extended.
func (c *Client) ReregisterMemory(ctx context.Context, r command.ReregisterMemory) (command.Memory, error) {
	began := time.Now()
	out, err := c.Client.ReregisterMemory(ctx, r)
	c.note(commandReregister, began, c.where(r.PD), err)
	return out, err
}

// AllocWindow implements command.Commands.
func (c *Client) AllocWindow(ctx context.Context, pd command.Handle, typ uint32) (command.Memory, error) {
	began := time.Now()
	out, err := c.Client.AllocWindow(ctx, pd, typ)
	c.made(commandAllocWindow, began, c.where(pd), out.Handle, err)
	return out, err
}

// CreateCQ implements command.Commands.
func (c *Client) CreateCQ(ctx context.Context, r command.CreateCQ) (command.Queue, error) {
	began := time.Now()
	out, err := c.Client.CreateCQ(ctx, r)
	c.made(commandCreateCQ, began, int(r.Adapter), out.Handle, err)
	return out, err
}

// ResizeCQ implements command.Commands.
func (c *Client) ResizeCQ(ctx context.Context, cq command.Handle, depth uint32) (command.Queue, error) {
	began := time.Now()
	out, err := c.Client.ResizeCQ(ctx, cq, depth)
	c.note(commandResizeCQ, began, c.where(cq), err)
	return out, err
}

// ModerateCQ implements command.Commands.
func (c *Client) ModerateCQ(ctx context.Context, r command.ModerateCQ) error {
	began := time.Now()
	err := c.Client.ModerateCQ(ctx, r)
	c.note(commandModerateCQ, began, c.where(r.CQ), err)
	return err
}

// CreateSRQ implements command.Commands.
func (c *Client) CreateSRQ(ctx context.Context, r command.CreateSRQ) (command.Queue, error) {
	began := time.Now()
	out, err := c.Client.CreateSRQ(ctx, r)
	c.made(commandCreateSRQ, began, c.where(r.PD), out.Handle, err)
	return out, err
}

// ModifySRQ implements command.Commands.
func (c *Client) ModifySRQ(ctx context.Context, r command.ModifySRQ) error {
	began := time.Now()
	err := c.Client.ModifySRQ(ctx, r)
	c.note(commandModifySRQ, began, c.where(r.SRQ), err)
	return err
}

// ResizeSRQ implements command.Commands.
func (c *Client) ResizeSRQ(ctx context.Context, srq command.Handle, depth uint32) (command.Queue, error) {
	began := time.Now()
	out, err := c.Client.ResizeSRQ(ctx, srq, depth)
	c.note(commandResizeSRQ, began, c.where(srq), err)
	return out, err
}

// QuerySRQ implements command.Commands.
func (c *Client) QuerySRQ(ctx context.Context, srq command.Handle) (command.SRQInfo, error) {
	began := time.Now()
	out, err := c.Client.QuerySRQ(ctx, srq)
	c.note(commandQuerySRQ, began, c.where(srq), err)
	return out, err
}

// CreateQP implements command.Commands.
func (c *Client) CreateQP(ctx context.Context, r command.CreateQP) (command.QueuePair, error) {
	began := time.Now()
	out, err := c.Client.CreateQP(ctx, r)
	c.made(commandCreateQP, began, c.where(r.PD), out.Handle, err)
	return out, err
}

// ModifyQP implements command.Commands.
func (c *Client) ModifyQP(ctx context.Context, r command.ModifyQP) error {
	began := time.Now()
	err := c.Client.ModifyQP(ctx, r)
	c.note(commandModifyQP, began, c.where(r.QP), err)
	return err
}

// QueryQP implements command.Commands.
func (c *Client) QueryQP(ctx context.Context, qp command.Handle) (command.QPInfo, error) {
	began := time.Now()
	out, err := c.Client.QueryQP(ctx, qp)
	c.note(commandQueryQP, began, c.where(qp), err)
	return out, err
}

// CreateAH implements command.Commands.
func (c *Client) CreateAH(ctx context.Context, r command.CreateAH) (command.Handle, error) {
	began := time.Now()
	out, err := c.Client.CreateAH(ctx, r)
	c.made(commandCreateAH, began, c.where(r.PD), out, err)
	return out, err
}

// AttachMulticast implements command.Commands.
func (c *Client) AttachMulticast(ctx context.Context, qp command.Handle, group command.Addr) error {
	began := time.Now()
	err := c.Client.AttachMulticast(ctx, qp, group)
	c.note(commandAttachMulticast, began, c.where(qp), err)
	return err
}

// DetachMulticast implements command.Commands.
func (c *Client) DetachMulticast(ctx context.Context, qp command.Handle, group command.Addr) error {
	began := time.Now()
	err := c.Client.DetachMulticast(ctx, qp, group)
	c.note(commandDetachMulticast, began, c.where(qp), err)
	return err
}

// CMBind implements command.Commands.
func (c *Client) CMBind(ctx context.Context, id command.Handle, local command.Endpoint) (command.Endpoint, error) {
	began := time.Now()
	out, err := c.Client.CMBind(ctx, id, local)
	c.note(commandCMBind, began, c.where(id), err)
	return out, err
}

// CMListen implements command.Commands.
func (c *Client) CMListen(ctx context.Context, id command.Handle, backlog uint32) error {
	began := time.Now()
	err := c.Client.CMListen(ctx, id, backlog)
	c.note(commandCMListen, began, c.where(id), err)
	return err
}

// CMConnect implements command.Commands.
func (c *Client) CMConnect(ctx context.Context, r command.CMConnect) (command.Handle, error) {
	began := time.Now()
	out, err := c.Client.CMConnect(ctx, r)
	switch {
	case r.ID != 0:
		c.note(commandCMConnect, began, c.where(r.ID), err)
	case r.Adapter != command.AnyAdapter:
		c.made(commandCMConnect, began, int(r.Adapter), out, err)
	default:
		c.note(commandCMConnect, began, c.where(out), err)
	}
	return out, err
}

// CMAccept implements command.Commands.
func (c *Client) CMAccept(ctx context.Context, r command.CMAccept) error {
	began := time.Now()
	err := c.Client.CMAccept(ctx, r)
	c.note(commandCMAccept, began, c.where(r.ID), err)
	return err
}

// CMEstablish implements command.Commands.
func (c *Client) CMEstablish(ctx context.Context, id command.Handle) error {
	began := time.Now()
	err := c.Client.CMEstablish(ctx, id)
	c.note(commandCMEstablish, began, c.where(id), err)
	return err
}

// CMReject implements command.Commands.
func (c *Client) CMReject(ctx context.Context, r command.CMReject) error {
	began := time.Now()
	err := c.Client.CMReject(ctx, r)
	c.note(commandCMReject, began, c.where(r.ID), err)
	return err
}

// CMDisconnect implements command.Commands.
func (c *Client) CMDisconnect(ctx context.Context, id command.Handle) error {
	began := time.Now()
	err := c.Client.CMDisconnect(ctx, id)
	c.note(commandCMDisconnect, began, c.where(id), err)
	return err
}

// CMQuery implements command.Commands.
func (c *Client) CMQuery(ctx context.Context, id command.Handle) (command.CMInfo, error) {
	began := time.Now()
	out, err := c.Client.CMQuery(ctx, id)
	c.note(commandCMQuery, began, c.where(id), err)
	return out, err
}

// CMAttributes implements command.Commands.
func (c *Client) CMAttributes(ctx context.Context, id command.Handle, state command.QPState) (command.ModifyQP, error) {
	began := time.Now()
	out, err := c.Client.CMAttributes(ctx, id, state)
	c.note(commandCMAttributes, began, c.where(id), err)
	return out, err
}

// CMCreate implements command.Commands.
func (c *Client) CMCreate(ctx context.Context, r command.CMCreate) (command.Handle, error) {
	began := time.Now()
	out, err := c.Client.CMCreate(ctx, r)
	adapter := unknownAdapter // until it is bound
	if r.Adapter != command.AnyAdapter {
		adapter = int(r.Adapter)
	}
	c.made(commandCMCreate, began, adapter, out, err)
	return out, err
}

// Destroy implements command.Commands.
func (c *Client) Destroy(ctx context.Context, kind command.Kind, h command.Handle) error {
	began, adapter := time.Now(), c.where(h) // before it is gone
	err := c.Client.Destroy(ctx, kind, h)
	c.note(commandDestroy, began, adapter, err)
	return err
}

// Events implements command.Commands. Waiting for events is not recorded; the connections that they bring
// are known from then on.
func (c *Client) Events(ctx context.Context, out []command.Event) (int, error) {
	n, err := c.Client.Events(ctx, out)
	for i := range out[:n] {
		if out[i].Type == command.EventConnectRequest {
			c.learn(out[i].NewID, int(out[i].Adapter))
		}
	}
	return n, err
}
