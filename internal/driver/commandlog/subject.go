package commandlog

import (
	"encoding/binary"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// subject says where the body of a command names the adapter that the command is for.
type subject struct {
	object  int  // offset of the handle of an object of the adapter
	adapter int  // offset of the adapter's index
	makes   bool // the answer begins with the handle of a new object of the adapter
	none    bool // the command is for no adapter
}

// nowhere is the offset of what a body does not have.
const nowhere = -1

// Commands with the handle of an object, or the index of an adapter, at the start of their bodies.
var (
	ofObject    = subject{object: 0, adapter: nowhere}
	inObject    = subject{object: 0, adapter: nowhere, makes: true}
	ofAdapter   = subject{object: nowhere, adapter: 0}
	inAdapter   = subject{object: nowhere, adapter: 0, makes: true}
	ofNoAdapter = subject{object: nowhere, adapter: nowhere, none: true}
)

// subjects has every operation that carries out a command.
var subjects = [proto.OpEnd]subject{
	proto.OpAdapters: ofNoAdapter, proto.OpGIDs: ofAdapter, proto.OpCounters: ofAdapter, proto.OpPort: ofAdapter,
	proto.OpClock: ofNoAdapter, proto.OpInterfaces: ofAdapter, proto.OpLinkAddresses: ofAdapter,
	proto.OpFirmware: ofAdapter,
	proto.OpAllocPD:  inAdapter, proto.OpCreateAH: inObject,
	proto.OpRegisterMemory: inObject, proto.OpRegisterMemoryAt: inObject, proto.OpReregisterMemory: ofObject,
	proto.OpAllocWindow: inObject,
	proto.OpCreateCQ:    inAdapter, proto.OpResizeCQ: ofObject, proto.OpModerateCQ: ofObject,
	proto.OpCreateSRQ: inObject, proto.OpModifySRQ: ofObject, proto.OpResizeSRQ: ofObject, proto.OpQuerySRQ: ofObject,
	proto.OpCreateQP: inObject, proto.OpModifyQP: ofObject, proto.OpLimitQP: ofObject, proto.OpQueryQP: ofObject,
	proto.OpAttachMulticast: ofObject, proto.OpDetachMulticast: ofObject,
	proto.OpDestroy:  {object: int(unsafe.Offsetof(proto.DestroyArgs{}.Handle)), adapter: nowhere},
	proto.OpCMCreate: inAdapter, proto.OpCMBind: ofObject, proto.OpCMListen: ofObject,
	proto.OpCMConnect: {object: 0, adapter: int(unsafe.Offsetof(command.CMConnect{}.Adapter)), makes: true},
	proto.OpCMAccept:  ofObject, proto.OpCMEstablish: ofObject, proto.OpCMReject: ofObject, proto.OpCMDisconnect: ofObject,
	proto.OpCMQuery: ofObject, proto.OpCMAttributes: ofObject, proto.OpCMSetChannel: ofObject, proto.OpCMResolveAddr: ofObject,
	proto.OpCMResolveRoute: ofObject, proto.OpCMJoin: ofObject, proto.OpCMLeave: ofObject, proto.OpCMOption: ofObject,
	proto.OpCMNotify: ofObject,
	proto.OpExport:   ofNoAdapter, proto.OpImport: ofNoAdapter, proto.OpMemoryInfo: ofAdapter, proto.OpAllocDM: inAdapter,
	proto.OpOpenXRCD: inAdapter, proto.OpOpenQP: inObject,
	proto.OpCreateXRCSRQ: inObject, proto.OpCreateTagSRQ: inObject, proto.OpTag: ofObject, proto.OpCreateFlow: inObject,
	proto.OpFramePort: ofAdapter, proto.OpFlowCounters: ofObject, proto.OpSetFrameFlags: ofObject, proto.OpSetRSS: ofObject,
	proto.OpCreateRSS:    {object: int(unsafe.Offsetof(command.CreateRSS{}.Table)), adapter: nowhere, makes: true},
	proto.OpAllocSegment: ofNoAdapter, proto.OpFreeSegment: ofNoAdapter, proto.OpMapSegment: ofNoAdapter,
	proto.OpCreateChannel: {object: nowhere, adapter: int(unsafe.Offsetof(command.CreateChannel{}.Adapter))},
}

// adapterOf returns the adapter that a command names.
func (c *Client) adapterOf(op proto.Opcode, body []byte) int {
	s := subjects[op]
	if h := handleAt(body, s.object); h != 0 {
		return c.where(h)
	}
	if s.adapter == nowhere || len(body) < s.adapter+4 {
		return unknownAdapter
	}
	if op == proto.OpCreateChannel && command.ChannelKind(handleAt(body, 0)) != command.Asynchronous {
		return unknownAdapter
	}
	if index := binary.LittleEndian.Uint32(body[s.adapter:]); index != command.AnyAdapter {
		return int(index)
	}
	return unknownAdapter
}

// handleAt returns the handle at an offset of a body, 0 if there is none.
func handleAt(body []byte, at int) command.Handle {
	if at == nowhere || len(body) < at+4 {
		return 0
	}
	return command.Handle(binary.LittleEndian.Uint32(body[at:]))
}
