package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
)

var errUnbuilt = command.Errorf(command.Unsupported, "not built yet")

// Adapters implements command.Commands.
func (cl *Client) Adapters(ctx context.Context) (out []command.AdapterInfo, err error) {
	err = errUnbuilt
	return
}

// GIDs implements command.Commands.
func (cl *Client) GIDs(ctx context.Context, adapter uint32) (out []command.GID, err error) {
	err = errUnbuilt
	return
}

// Counters implements command.Commands.
func (cl *Client) Counters(ctx context.Context, adapter uint32) (out []command.Counter, err error) {
	err = errUnbuilt
	return
}

// AllocPD implements command.Commands.
func (cl *Client) AllocPD(ctx context.Context, adapter uint32) (out command.Handle, err error) {
	err = errUnbuilt
	return
}

// RegisterMemory implements command.Commands.
func (cl *Client) RegisterMemory(ctx context.Context, r command.RegisterMemory) (out command.Memory, err error) {
	err = errUnbuilt
	return
}

// AllocWindow implements command.Commands.
func (cl *Client) AllocWindow(ctx context.Context, pd command.Handle, typ uint32) (out command.Memory, err error) {
	err = errUnbuilt
	return
}

// CreateCQ implements command.Commands.
func (cl *Client) CreateCQ(ctx context.Context, c command.CreateCQ) (out command.Queue, err error) {
	err = errUnbuilt
	return
}

// ResizeCQ implements command.Commands.
func (cl *Client) ResizeCQ(ctx context.Context, cq command.Handle, depth uint32) (out command.Queue, err error) {
	err = errUnbuilt
	return
}

// ModerateCQ implements command.Commands.
func (cl *Client) ModerateCQ(ctx context.Context, m command.ModerateCQ) (err error) {
	err = errUnbuilt
	return
}

// CreateSRQ implements command.Commands.
func (cl *Client) CreateSRQ(ctx context.Context, c command.CreateSRQ) (out command.Queue, err error) {
	err = errUnbuilt
	return
}

// ModifySRQ implements command.Commands.
func (cl *Client) ModifySRQ(ctx context.Context, m command.ModifySRQ) (err error) {
	err = errUnbuilt
	return
}

// QuerySRQ implements command.Commands.
func (cl *Client) QuerySRQ(ctx context.Context, srq command.Handle) (out command.SRQInfo, err error) {
	err = errUnbuilt
	return
}

// CreateQP implements command.Commands.
func (cl *Client) CreateQP(ctx context.Context, c command.CreateQP) (out command.QueuePair, err error) {
	err = errUnbuilt
	return
}

// ModifyQP implements command.Commands.
func (cl *Client) ModifyQP(ctx context.Context, m command.ModifyQP) (err error) {
	err = errUnbuilt
	return
}

// QueryQP implements command.Commands.
func (cl *Client) QueryQP(ctx context.Context, qp command.Handle) (out command.QPInfo, err error) {
	err = errUnbuilt
	return
}

// CreateAH implements command.Commands.
func (cl *Client) CreateAH(ctx context.Context, c command.CreateAH) (out command.Handle, err error) {
	err = errUnbuilt
	return
}

// AttachMulticast implements command.Commands.
func (cl *Client) AttachMulticast(ctx context.Context, qp command.Handle, group command.Addr) (err error) {
	err = errUnbuilt
	return
}

// DetachMulticast implements command.Commands.
func (cl *Client) DetachMulticast(ctx context.Context, qp command.Handle, group command.Addr) (err error) {
	err = errUnbuilt
	return
}

// Destroy implements command.Commands.
func (cl *Client) Destroy(ctx context.Context, kind command.Kind, h command.Handle) (err error) {
	err = errUnbuilt
	return
}

// CMCreate implements command.Commands.
func (cl *Client) CMCreate(ctx context.Context, c command.CMCreate) (out command.Handle, err error) {
	err = errUnbuilt
	return
}

// CMBind implements command.Commands.
func (cl *Client) CMBind(ctx context.Context, id command.Handle, local command.Endpoint) (out command.Endpoint, err error) {
	err = errUnbuilt
	return
}

// CMListen implements command.Commands.
func (cl *Client) CMListen(ctx context.Context, id command.Handle, backlog uint32) (err error) {
	err = errUnbuilt
	return
}

// CMConnect implements command.Commands.
func (cl *Client) CMConnect(ctx context.Context, c command.CMConnect) (err error) {
	err = errUnbuilt
	return
}

// CMAccept implements command.Commands.
func (cl *Client) CMAccept(ctx context.Context, c command.CMAccept) (err error) {
	err = errUnbuilt
	return
}

// CMEstablish implements command.Commands.
func (cl *Client) CMEstablish(ctx context.Context, id command.Handle) (err error) {
	err = errUnbuilt
	return
}

// CMReject implements command.Commands.
func (cl *Client) CMReject(ctx context.Context, c command.CMReject) (err error) {
	err = errUnbuilt
	return
}

// CMDisconnect implements command.Commands.
func (cl *Client) CMDisconnect(ctx context.Context, id command.Handle) (err error) {
	err = errUnbuilt
	return
}

// CMQuery implements command.Commands.
func (cl *Client) CMQuery(ctx context.Context, id command.Handle) (out command.CMInfo, err error) {
	err = errUnbuilt
	return
}

// CMAttributes implements command.Commands.
func (cl *Client) CMAttributes(ctx context.Context, id command.Handle, state command.QPState) (out command.ModifyQP, err error) {
	err = errUnbuilt
	return
}

// Events implements command.Commands.
func (cl *Client) Events(ctx context.Context, out []command.Event) (n int, err error) {
	err = errUnbuilt
	return
}
