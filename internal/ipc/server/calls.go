package server

import (
	"context"
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// handler executes one kind of request in the driver.
type handler func(ctx context.Context, s Session, body []byte) (reply []byte, err error)

// call is a command as method expressions have it: S is the interface that it is a method of, Q its arguments as a frame has them, R what
// it answers.
type call[S, Q, R any] = func(s S, ctx context.Context, q Q) (R, error)

// memoryInformer is what sessions have that tell of their memory.
type memoryInformer interface {
	MemoryInfo(ctx context.Context, adapter uint32) (command.MemoryInfo, error)
}

// execute decodes the arguments of a command and executes it; sessions that lack it refuse.
func execute[S, Q, R any](ctx context.Context, session Session, body []byte, f call[S, Q, R]) (r R, err error) {
	q, err := proto.Decode[Q](body)
	if err != nil {
		return r, err
	}
	s, err := able[S](session)
	if err != nil {
		return r, err
	}
	return f(s, ctx, q)
}

// able returns the session as one that has certain commands. The error is a *command.Error: Unsupported.
func able[S any](session Session) (S, error) {
	s, ok := session.(S)
	if !ok {
		return s, command.Errorf(command.Unsupported, "not by this driver")
	}
	return s, nil
}

// replies makes a handler from a command with one answer.
func replies[S, Q, R any](f call[S, Q, R]) handler {
	return func(ctx context.Context, s Session, body []byte) ([]byte, error) {
		r, err := execute(ctx, s, body, f)
		if err != nil {
			return nil, err
		}
		return proto.Encode(r), nil
	}
}

// lists makes a handler from a command that answers with a list.
func lists[S, Q, R any](f call[S, Q, []R]) handler {
	return func(ctx context.Context, s Session, body []byte) ([]byte, error) {
		r, err := execute(ctx, s, body, f)
		if err != nil {
			return nil, err
		}
		var one R
		if most := (proto.MaxFrame - proto.HeaderSize) / binary.Size(one); len(r) > most {
			r = r[:most]
		}
		return proto.EncodeList(r), nil
	}
}

// does makes a handler from a command without an answer.
func does[S, Q any](f func(s S, ctx context.Context, q Q) error) handler {
	return replies(func(s S, ctx context.Context, q Q) (proto.Empty, error) { return proto.Empty{}, f(s, ctx, q) })
}

// plain is a command without arguments.
func plain[S, R any](f func(s S, ctx context.Context) (R, error)) call[S, proto.Empty, R] {
	return func(s S, ctx context.Context, _ proto.Empty) (R, error) { return f(s, ctx) }
}

// adapter is a command to an adapter.
func adapter[S, R any](f call[S, uint32, R]) call[S, proto.AdapterArgs, R] {
	return func(s S, ctx context.Context, q proto.AdapterArgs) (R, error) { return f(s, ctx, q.Adapter) }
}

// object is a command to an object.
func object[S, R any](f call[S, command.Handle, R]) call[S, proto.HandleArgs, R] {
	return func(s S, ctx context.Context, q proto.HandleArgs) (R, error) { return f(s, ctx, q.Handle) }
}

// objectDone is a command to an object without an answer.
func objectDone[S any](f func(s S, ctx context.Context, object command.Handle) error) func(S, context.Context, proto.HandleArgs) error {
	return func(s S, ctx context.Context, q proto.HandleArgs) error { return f(s, ctx, q.Handle) }
}

// handlers are the handlers of a client's commands.
var handlers = [proto.OpEnd]handler{
	proto.OpAdapters:       lists(plain(Session.Adapters)),
	proto.OpGIDs:           lists(adapter(Session.GIDs)),
	proto.OpInterfaces:     lists(adapter(Session.Interfaces)),
	proto.OpLinkAddresses:  lists(adapter(command.Extended.LinkAddresses)),
	proto.OpFirmware:       replies(adapter(command.Extended.Firmware)),
	proto.OpPort:           replies(adapter(Session.Port)),
	proto.OpCounters:       lists(adapter(Session.Counters)),
	proto.OpAllocPD:        replies(adapter(Session.AllocPD)),
	proto.OpRegisterMemory: replies(Session.RegisterMemory),
	proto.OpAllocWindow: replies(func(s Session, ctx context.Context, q proto.WindowArgs) (command.Memory, error) {
		return s.AllocWindow(ctx, q.PD, q.Type)
	}),
	proto.OpCreateCQ: replies(Session.CreateCQ),
	proto.OpResizeCQ: replies(func(s Session, ctx context.Context, q proto.ResizeArgs) (command.Queue, error) {
		return s.ResizeCQ(ctx, q.Queue, q.Depth)
	}),
	proto.OpModerateCQ: does(Session.ModerateCQ),
	proto.OpCreateSRQ:  replies(Session.CreateSRQ),
	proto.OpModifySRQ:  does(Session.ModifySRQ),
	proto.OpResizeSRQ: replies(func(s Session, ctx context.Context, q proto.ResizeArgs) (command.Queue, error) {
		return s.ResizeSRQ(ctx, q.Queue, q.Depth)
	}),
	proto.OpQuerySRQ: replies(object(Session.QuerySRQ)),
	proto.OpCreateQP: replies(Session.CreateQP),
	proto.OpModifyQP: does(Session.ModifyQP),
	proto.OpQueryQP:  replies(object(Session.QueryQP)),
	proto.OpCreateAH: replies(Session.CreateAH),
	proto.OpAttachMulticast: does(func(s Session, ctx context.Context, q proto.MulticastArgs) error {
		return s.AttachMulticast(ctx, q.QP, q.Group)
	}),
	proto.OpDetachMulticast: does(func(s Session, ctx context.Context, q proto.MulticastArgs) error {
		return s.DetachMulticast(ctx, q.QP, q.Group)
	}),
	proto.OpDestroy: does(func(s Session, ctx context.Context, q proto.DestroyArgs) error {
		return s.Destroy(ctx, q.Kind, q.Handle)
	}),
	proto.OpCMCreate: replies(Session.CMCreate),
	proto.OpCMBind: replies(func(s Session, ctx context.Context, q proto.BindArgs) (command.Endpoint, error) {
		return s.CMBind(ctx, q.ID, q.Local)
	}),
	proto.OpCMListen: does(func(s Session, ctx context.Context, q proto.ListenArgs) error {
		return s.CMListen(ctx, q.ID, q.Backlog)
	}),
	proto.OpCMConnect:    replies(Session.CMConnect),
	proto.OpCMAccept:     does(Session.CMAccept),
	proto.OpCMEstablish:  does(objectDone(Session.CMEstablish)),
	proto.OpCMReject:     does(Session.CMReject),
	proto.OpCMDisconnect: does(objectDone(Session.CMDisconnect)),
	proto.OpCMQuery:      replies(object(Session.CMQuery)),
	proto.OpCMAttributes: replies(func(s Session, ctx context.Context, q proto.AttributesArgs) (command.ModifyQP, error) {
		return s.CMAttributes(ctx, q.ID, q.State)
	}),
	proto.OpRegisterMemoryAt: replies(command.Extended.RegisterMemoryAt),
	proto.OpClock:            replies(plain(command.Extended.Clock)),
	proto.OpReregisterMemory: replies(command.Extended.ReregisterMemory),
	proto.OpMemoryInfo:       replies(adapter(memoryInformer.MemoryInfo)),
	proto.OpOpenXRCD:         replies(command.Extended.OpenXRCD),
	proto.OpCreateFlow:       replies(command.Extended.CreateFlow),
	proto.OpLimitQP:          does(command.Extended.LimitQP),
	proto.OpCreateRSS:        replies(command.Extended.CreateRSS),
	proto.OpSetRSS:           does(command.Extended.SetRSS),
	proto.OpSetFrameFlags:    does(command.Extended.SetFrameFlags),
	proto.OpFlowCounters:     replies(object(command.Extended.FlowCounters)),
	proto.OpFramePort:        replies(adapter(command.Extended.FramePort)),
	proto.OpCreateXRCSRQ:     replies(command.Extended.CreateXRCSRQ),
	proto.OpCreateTagSRQ:     replies(command.Extended.CreateTagSRQ),
	proto.OpTag:              replies(command.Extended.TagOp),
	proto.OpOpenQP:           replies(command.Extended.OpenQP),
	proto.OpCMSetChannel:     does(command.Extended.CMSetChannel),
	proto.OpCMResolveAddr:    does(command.Extended.CMResolveAddr),
	proto.OpCMResolveRoute:   does(command.Extended.CMResolveRoute),
	proto.OpCMJoin:           does(command.Extended.CMJoin),
	proto.OpCMLeave:          does(command.Extended.CMLeave),
	proto.OpCMOption:         does(command.Extended.CMOption),
	proto.OpCMNotify:         does(command.Extended.CMNotify),
}
