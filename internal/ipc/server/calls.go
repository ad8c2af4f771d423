package server

import (
	"context"
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// handler executes one kind of request in the driver.
type handler func(ctx context.Context, s Session, body []byte) (reply []byte, err error)

// replies makes a handler from a command with one answer.
func replies[Q, R any](f func(ctx context.Context, s Session, q Q) (R, error)) handler {
	return func(ctx context.Context, s Session, body []byte) ([]byte, error) {
		q, err := proto.Decode[Q](body)
		if err != nil {
			return nil, err
		}
		r, err := f(ctx, s, q)
		if err != nil {
			return nil, err
		}
		return proto.Encode(r), nil
	}
}

// lists makes a handler from a command that answers with a list.
func lists[Q, R any](f func(ctx context.Context, s Session, q Q) ([]R, error)) handler {
	return func(ctx context.Context, s Session, body []byte) ([]byte, error) {
		q, err := proto.Decode[Q](body)
		if err != nil {
			return nil, err
		}
		r, err := f(ctx, s, q)
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
func does[Q any](f func(ctx context.Context, s Session, q Q) error) handler {
	return replies(func(ctx context.Context, s Session, q Q) (proto.Empty, error) { return proto.Empty{}, f(ctx, s, q) })
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
var handlers = [proto.OpEnd]handler{
	proto.OpAdapters: lists(func(ctx context.Context, s Session, _ proto.Empty) ([]command.AdapterInfo, error) {
		return s.Adapters(ctx)
	}),
	proto.OpGIDs: lists(func(ctx context.Context, s Session, q proto.AdapterArgs) ([]command.GID, error) {
		return s.GIDs(ctx, q.Adapter)
	}),
	proto.OpInterfaces: lists(func(ctx context.Context, s Session, q proto.AdapterArgs) ([]command.Interface, error) {
		return s.Interfaces(ctx, q.Adapter)
	}),
	proto.OpLinkAddresses: lists(func(ctx context.Context, s Session, q proto.AdapterArgs) ([]command.LinkAddress, error) {
		x, err := extended(s)
		if err != nil {
			return nil, err
		}
		return x.LinkAddresses(ctx, q.Adapter)
	}),
	proto.OpFirmware: replies(func(ctx context.Context, s Session, q proto.AdapterArgs) (command.Firmware, error) {
		x, err := extended(s)
		if err != nil {
			return command.Firmware{}, err
		}
		return x.Firmware(ctx, q.Adapter)
	}),
	proto.OpPort: replies(func(ctx context.Context, s Session, q proto.AdapterArgs) (command.PortInfo, error) {
		return s.Port(ctx, q.Adapter)
	}),
	proto.OpCounters: lists(func(ctx context.Context, s Session, q proto.AdapterArgs) ([]command.Counter, error) {
		return s.Counters(ctx, q.Adapter)
	}),
	proto.OpAllocPD: replies(func(ctx context.Context, s Session, q proto.AdapterArgs) (command.Handle, error) {
		return s.AllocPD(ctx, q.Adapter)
	}),
	proto.OpRegisterMemory: replies(func(ctx context.Context, s Session, q command.RegisterMemory) (command.Memory, error) {
		return s.RegisterMemory(ctx, q)
	}),
	proto.OpAllocWindow: replies(func(ctx context.Context, s Session, q proto.WindowArgs) (command.Memory, error) {
		return s.AllocWindow(ctx, q.PD, q.Type)
	}),
	proto.OpCreateCQ: replies(func(ctx context.Context, s Session, q command.CreateCQ) (command.Queue, error) {
		return s.CreateCQ(ctx, q)
	}),
	proto.OpResizeCQ: replies(func(ctx context.Context, s Session, q proto.ResizeArgs) (command.Queue, error) {
		return s.ResizeCQ(ctx, q.Queue, q.Depth)
	}),
	proto.OpModerateCQ: does(func(ctx context.Context, s Session, q command.ModerateCQ) error { return s.ModerateCQ(ctx, q) }),
	proto.OpCreateSRQ: replies(func(ctx context.Context, s Session, q command.CreateSRQ) (command.Queue, error) {
		return s.CreateSRQ(ctx, q)
	}),
	proto.OpModifySRQ: does(func(ctx context.Context, s Session, q command.ModifySRQ) error { return s.ModifySRQ(ctx, q) }),
	proto.OpResizeSRQ: replies(func(ctx context.Context, s Session, q proto.ResizeArgs) (command.Queue, error) {
		return s.ResizeSRQ(ctx, q.Queue, q.Depth)
	}),
	proto.OpQuerySRQ: replies(func(ctx context.Context, s Session, q proto.HandleArgs) (command.SRQInfo, error) {
		return s.QuerySRQ(ctx, q.Handle)
	}),
	proto.OpCreateQP: replies(func(ctx context.Context, s Session, q command.CreateQP) (command.QueuePair, error) {
		return s.CreateQP(ctx, q)
	}),
	proto.OpModifyQP: does(func(ctx context.Context, s Session, q command.ModifyQP) error { return s.ModifyQP(ctx, q) }),
	proto.OpQueryQP: replies(func(ctx context.Context, s Session, q proto.HandleArgs) (command.QPInfo, error) {
		return s.QueryQP(ctx, q.Handle)
	}),
	proto.OpCreateAH: replies(func(ctx context.Context, s Session, q command.CreateAH) (command.Handle, error) {
		return s.CreateAH(ctx, q)
	}),
	proto.OpAttachMulticast: does(func(ctx context.Context, s Session, q proto.MulticastArgs) error {
		return s.AttachMulticast(ctx, q.QP, q.Group)
	}),
	proto.OpDetachMulticast: does(func(ctx context.Context, s Session, q proto.MulticastArgs) error {
		return s.DetachMulticast(ctx, q.QP, q.Group)
	}),
	proto.OpDestroy: does(func(ctx context.Context, s Session, q proto.DestroyArgs) error {
		return s.Destroy(ctx, q.Kind, q.Handle)
	}),
	proto.OpCMCreate: replies(func(ctx context.Context, s Session, q command.CMCreate) (command.Handle, error) {
		return s.CMCreate(ctx, q)
	}),
	proto.OpCMBind: replies(func(ctx context.Context, s Session, q proto.BindArgs) (command.Endpoint, error) {
		return s.CMBind(ctx, q.ID, q.Local)
	}),
	proto.OpCMListen: does(func(ctx context.Context, s Session, q proto.ListenArgs) error {
		return s.CMListen(ctx, q.ID, q.Backlog)
	}),
	proto.OpCMConnect: replies(func(ctx context.Context, s Session, q command.CMConnect) (command.Handle, error) {
		return s.CMConnect(ctx, q)
	}),
	proto.OpCMAccept:     does(func(ctx context.Context, s Session, q command.CMAccept) error { return s.CMAccept(ctx, q) }),
	proto.OpCMEstablish:  does(func(ctx context.Context, s Session, q proto.HandleArgs) error { return s.CMEstablish(ctx, q.Handle) }),
	proto.OpCMReject:     does(func(ctx context.Context, s Session, q command.CMReject) error { return s.CMReject(ctx, q) }),
	proto.OpCMDisconnect: does(func(ctx context.Context, s Session, q proto.HandleArgs) error { return s.CMDisconnect(ctx, q.Handle) }),
	proto.OpCMQuery: replies(func(ctx context.Context, s Session, q proto.HandleArgs) (command.CMInfo, error) {
		return s.CMQuery(ctx, q.Handle)
	}),
	proto.OpCMAttributes: replies(func(ctx context.Context, s Session, q proto.AttributesArgs) (command.ModifyQP, error) {
		return s.CMAttributes(ctx, q.ID, q.State)
	}),
	proto.OpRegisterMemoryAt: replies(func(ctx context.Context, s Session, q command.RegisterMemoryAt) (command.Memory, error) {
		x, err := extended(s)
		if err != nil {
			return command.Memory{}, err
		}
		return x.RegisterMemoryAt(ctx, q)
	}),
	proto.OpClock: replies(func(ctx context.Context, s Session, _ proto.Empty) (command.Clock, error) {
		x, err := extended(s)
		if err != nil {
			return command.Clock{}, err
		}
		return x.Clock(ctx)
	}),
	proto.OpReregisterMemory: replies(func(ctx context.Context, s Session, q command.ReregisterMemory) (command.Memory, error) {
		x, err := extended(s)
		if err != nil {
			return command.Memory{}, err
		}
		return x.ReregisterMemory(ctx, q)
	}),
	proto.OpMemoryInfo: replies(func(ctx context.Context, s Session, q proto.AdapterArgs) (command.MemoryInfo, error) {
		m, ok := s.(interface {
			MemoryInfo(ctx context.Context, adapter uint32) (command.MemoryInfo, error)
		})
		if !ok {
			return command.MemoryInfo{}, command.Errorf(command.Unsupported, "not by this driver")
		}
		return m.MemoryInfo(ctx, q.Adapter)
	}),
	proto.OpOpenXRCD: replies(func(ctx context.Context, s Session, q command.OpenXRCD) (command.Handle, error) {
		x, err := extended(s)
		if err != nil {
			return 0, err
		}
		return x.OpenXRCD(ctx, q)
	}),
	proto.OpCreateFlow: replies(func(ctx context.Context, s Session, q command.CreateFlow) (command.Handle, error) {
		x, err := extended(s)
		if err != nil {
			return 0, err
		}
		return x.CreateFlow(ctx, q)
	}),
	proto.OpLimitQP: extends(func(ctx context.Context, x command.Extended, q command.LimitQP) error { return x.LimitQP(ctx, q) }),
	proto.OpCreateRSS: replies(func(ctx context.Context, s Session, q command.CreateRSS) (command.Handle, error) {
		x, err := extended(s)
		if err != nil {
			return 0, err
		}
		return x.CreateRSS(ctx, q)
	}),
	proto.OpSetRSS: does(func(ctx context.Context, s Session, q command.SetRSS) error {
		x, err := extended(s)
		if err != nil {
			return err
		}
		return x.SetRSS(ctx, q)
	}),
	proto.OpSetFrameFlags: does(func(ctx context.Context, s Session, q command.SetFrameFlags) error {
		x, err := extended(s)
		if err != nil {
			return err
		}
		return x.SetFrameFlags(ctx, q)
	}),
	proto.OpFlowCounters: replies(func(ctx context.Context, s Session, q proto.HandleArgs) (command.FlowCounters, error) {
		x, err := extended(s)
		if err != nil {
			return command.FlowCounters{}, err
		}
		return x.FlowCounters(ctx, q.Handle)
	}),
	proto.OpFramePort: replies(func(ctx context.Context, s Session, q proto.AdapterArgs) (command.FramePort, error) {
		x, err := extended(s)
		if err != nil {
			return command.FramePort{}, err
		}
		return x.FramePort(ctx, q.Adapter)
	}),
	proto.OpCreateXRCSRQ: replies(func(ctx context.Context, s Session, q command.CreateXRCSRQ) (command.Queue, error) {
		x, err := extended(s)
		if err != nil {
			return command.Queue{}, err
		}
		return x.CreateXRCSRQ(ctx, q)
	}),
	proto.OpCreateTagSRQ: replies(func(ctx context.Context, s Session, q command.CreateTagSRQ) (command.Queue, error) {
		x, err := extended(s)
		if err != nil {
			return command.Queue{}, err
		}
		return x.CreateTagSRQ(ctx, q)
	}),
	proto.OpTag: replies(func(ctx context.Context, s Session, q command.TagOp) (command.Handle, error) {
		x, err := extended(s)
		if err != nil {
			return 0, err
		}
		return x.TagOp(ctx, q)
	}),
	proto.OpOpenQP: replies(func(ctx context.Context, s Session, q command.OpenQP) (command.QueuePair, error) {
		x, err := extended(s)
		if err != nil {
			return command.QueuePair{}, err
		}
		return x.OpenQP(ctx, q)
	}),
	proto.OpCMSetChannel: extends(func(ctx context.Context, x command.Extended, q command.CMSetChannel) error {
		return x.CMSetChannel(ctx, q)
	}),
	proto.OpCMResolveAddr: extends(func(ctx context.Context, x command.Extended, q command.CMResolveAddr) error {
		return x.CMResolveAddr(ctx, q)
	}),
	proto.OpCMResolveRoute: extends(func(ctx context.Context, x command.Extended, q command.CMResolveRoute) error {
		return x.CMResolveRoute(ctx, q)
	}),
	proto.OpCMJoin:   extends(func(ctx context.Context, x command.Extended, q command.CMJoin) error { return x.CMJoin(ctx, q) }),
	proto.OpCMLeave:  extends(func(ctx context.Context, x command.Extended, q command.CMLeave) error { return x.CMLeave(ctx, q) }),
	proto.OpCMOption: extends(func(ctx context.Context, x command.Extended, q command.CMOption) error { return x.CMOption(ctx, q) }),
	proto.OpCMNotify: extends(func(ctx context.Context, x command.Extended, q command.CMNotify) error { return x.CMNotify(ctx, q) }),
}
