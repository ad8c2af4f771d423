package ipc

import (
	"context"
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/command"
)

// handler executes one kind of request in the driver.
type handler func(ctx context.Context, s Session, body []byte) (reply []byte, err error)

// replies makes a handler from a command with one answer.
func replies[Q, R any](f func(ctx context.Context, s Session, q Q) (R, error)) handler {
	return func(ctx context.Context, s Session, body []byte) ([]byte, error) {
		q, err := decode[Q](body)
		if err != nil {
			return nil, err
		}
		r, err := f(ctx, s, q)
		if err != nil {
			return nil, err
		}
		return encode(r), nil
	}
}

// lists makes a handler from a command that answers with a list.
func lists[Q, R any](f func(ctx context.Context, s Session, q Q) ([]R, error)) handler {
	return func(ctx context.Context, s Session, body []byte) ([]byte, error) {
		q, err := decode[Q](body)
		if err != nil {
			return nil, err
		}
		r, err := f(ctx, s, q)
		if err != nil {
			return nil, err
		}
		var one R
		if most := (maxFrame - headerSize) / binary.Size(one); len(r) > most {
			r = r[:most]
		}
		return encodeList(r), nil
	}
}

// does makes a handler from a command without an answer.
func does[Q any](f func(ctx context.Context, s Session, q Q) error) handler {
	return replies(func(ctx context.Context, s Session, q Q) (empty, error) { return empty{}, f(ctx, s, q) })
}

// extended returns the session of a driver that supports the commands beyond command.Commands.
func extended(s Session) (command.Extended, error) {
	if x, ok := s.(command.Extended); ok {
		return x, nil
	}
	return nil, command.Errorf(command.Unsupported, "not by this driver")
}

// extends makes a handler from a command of command.Extended without an answer.
func extends[Q any](f func(ctx context.Context, x command.Extended, q Q) error) handler {
	return does(func(ctx context.Context, s Session, q Q) error {
		x, err := extended(s)
		if err != nil {
			return err
		}
		return f(ctx, x, q)
	})
}

// handlers are the handlers of a client's commands.
var handlers = [opEnd]handler{
	opAdapters: lists(func(ctx context.Context, s Session, _ empty) ([]command.AdapterInfo, error) { return s.Adapters(ctx) }),
	opGIDs: lists(func(ctx context.Context, s Session, q adapterArgs) ([]command.GID, error) {
		return s.GIDs(ctx, q.Adapter)
	}),
	opPort: replies(func(ctx context.Context, s Session, q adapterArgs) (command.PortInfo, error) {
		return s.Port(ctx, q.Adapter)
	}),
	opCounters: lists(func(ctx context.Context, s Session, q adapterArgs) ([]command.Counter, error) {
		return s.Counters(ctx, q.Adapter)
	}),
	opAllocPD: replies(func(ctx context.Context, s Session, q adapterArgs) (command.Handle, error) {
		return s.AllocPD(ctx, q.Adapter)
	}),
	opRegisterMemory: replies(func(ctx context.Context, s Session, q command.RegisterMemory) (command.Memory, error) {
		return s.RegisterMemory(ctx, q)
	}),
	opAllocWindow: replies(func(ctx context.Context, s Session, q windowArgs) (command.Memory, error) {
		return s.AllocWindow(ctx, q.PD, q.Type)
	}),
	opCreateCQ: replies(func(ctx context.Context, s Session, q command.CreateCQ) (command.Queue, error) {
		return s.CreateCQ(ctx, q)
	}),
	opResizeCQ: replies(func(ctx context.Context, s Session, q resizeArgs) (command.Queue, error) {
		return s.ResizeCQ(ctx, q.Queue, q.Depth)
	}),
	opModerateCQ: does(func(ctx context.Context, s Session, q command.ModerateCQ) error { return s.ModerateCQ(ctx, q) }),
	opCreateSRQ: replies(func(ctx context.Context, s Session, q command.CreateSRQ) (command.Queue, error) {
		return s.CreateSRQ(ctx, q)
	}),
	opModifySRQ: does(func(ctx context.Context, s Session, q command.ModifySRQ) error { return s.ModifySRQ(ctx, q) }),
	opResizeSRQ: replies(func(ctx context.Context, s Session, q resizeArgs) (command.Queue, error) {
		return s.ResizeSRQ(ctx, q.Queue, q.Depth)
	}),
	opQuerySRQ: replies(func(ctx context.Context, s Session, q handleArgs) (command.SRQInfo, error) {
		return s.QuerySRQ(ctx, q.Handle)
	}),
	opCreateQP: replies(func(ctx context.Context, s Session, q command.CreateQP) (command.QueuePair, error) {
		return s.CreateQP(ctx, q)
	}),
	opModifyQP: does(func(ctx context.Context, s Session, q command.ModifyQP) error { return s.ModifyQP(ctx, q) }),
	opQueryQP: replies(func(ctx context.Context, s Session, q handleArgs) (command.QPInfo, error) {
		return s.QueryQP(ctx, q.Handle)
	}),
	opCreateAH: replies(func(ctx context.Context, s Session, q command.CreateAH) (command.Handle, error) {
		return s.CreateAH(ctx, q)
	}),
	opAttachMulticast: does(func(ctx context.Context, s Session, q multicastArgs) error {
		return s.AttachMulticast(ctx, q.QP, q.Group)
	}),
	opDetachMulticast: does(func(ctx context.Context, s Session, q multicastArgs) error {
		return s.DetachMulticast(ctx, q.QP, q.Group)
	}),
	opDestroy: does(func(ctx context.Context, s Session, q destroyArgs) error { return s.Destroy(ctx, q.Kind, q.Handle) }),
	opCMCreate: replies(func(ctx context.Context, s Session, q command.CMCreate) (command.Handle, error) {
		return s.CMCreate(ctx, q)
	}),
	opCMBind: replies(func(ctx context.Context, s Session, q bindArgs) (command.Endpoint, error) {
		return s.CMBind(ctx, q.ID, q.Local)
	}),
	opCMListen: does(func(ctx context.Context, s Session, q listenArgs) error { return s.CMListen(ctx, q.ID, q.Backlog) }),
	opCMConnect: replies(func(ctx context.Context, s Session, q command.CMConnect) (command.Handle, error) {
		return s.CMConnect(ctx, q)
	}),
	opCMAccept:     does(func(ctx context.Context, s Session, q command.CMAccept) error { return s.CMAccept(ctx, q) }),
	opCMEstablish:  does(func(ctx context.Context, s Session, q handleArgs) error { return s.CMEstablish(ctx, q.Handle) }),
	opCMReject:     does(func(ctx context.Context, s Session, q command.CMReject) error { return s.CMReject(ctx, q) }),
	opCMDisconnect: does(func(ctx context.Context, s Session, q handleArgs) error { return s.CMDisconnect(ctx, q.Handle) }),
	opCMQuery: replies(func(ctx context.Context, s Session, q handleArgs) (command.CMInfo, error) {
		return s.CMQuery(ctx, q.Handle)
	}),
	opCMAttributes: replies(func(ctx context.Context, s Session, q attributesArgs) (command.ModifyQP, error) {
		return s.CMAttributes(ctx, q.ID, q.State)
	}),
	opRegisterMemoryAt: replies(func(ctx context.Context, s Session, q command.RegisterMemoryAt) (command.Memory, error) {
		x, err := extended(s)
		if err != nil {
			return command.Memory{}, err
		}
		return x.RegisterMemoryAt(ctx, q)
	}),
	opReregisterMemory: replies(func(ctx context.Context, s Session, q command.ReregisterMemory) (command.Memory, error) {
		x, err := extended(s)
		if err != nil {
			return command.Memory{}, err
		}
		return x.ReregisterMemory(ctx, q)
	}),
	opCMSetChannel: extends(func(ctx context.Context, x command.Extended, q command.CMSetChannel) error {
		return x.CMSetChannel(ctx, q)
	}),
	opCMResolveAddr: extends(func(ctx context.Context, x command.Extended, q command.CMResolveAddr) error {
		return x.CMResolveAddr(ctx, q)
	}),
	opCMResolveRoute: extends(func(ctx context.Context, x command.Extended, q command.CMResolveRoute) error {
		return x.CMResolveRoute(ctx, q)
	}),
	opCMJoin:   extends(func(ctx context.Context, x command.Extended, q command.CMJoin) error { return x.CMJoin(ctx, q) }),
	opCMLeave:  extends(func(ctx context.Context, x command.Extended, q command.CMLeave) error { return x.CMLeave(ctx, q) }),
	opCMOption: extends(func(ctx context.Context, x command.Extended, q command.CMOption) error { return x.CMOption(ctx, q) }),
	opCMNotify: extends(func(ctx context.Context, x command.Extended, q command.CMNotify) error { return x.CMNotify(ctx, q) }),
}
