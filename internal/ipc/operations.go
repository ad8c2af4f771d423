package ipc

import "fmt"

// opcode is the type of a frame.
type opcode uint16

// The operations of an attachment itself.
const (
	opHello opcode = iota + 1
	opGoodbye
	opCancel
	opCredit
	opEvents
	opArena
	opAllocSegment
	opFreeSegment
	opShare
	opIntroduce
	opDrop
	opTracks
	opNudge
	opProcess
)

// The operations that carry out commands.
const (
	opAdapters opcode = iota + 32
	opGIDs
	opCounters
	opAllocPD
	opRegisterMemory
	opAllocWindow
	opCreateCQ
	opResizeCQ
	opModerateCQ
	opCreateSRQ
	opModifySRQ
	opQuerySRQ
	opCreateQP
	opModifyQP
	opQueryQP
	opCreateAH
	opAttachMulticast
	opDetachMulticast
	opDestroy
	opCMCreate
	opCMBind
	opCMListen
	opCMConnect
	opCMAccept
	opCMEstablish
	opCMReject
	opCMDisconnect
	opCMQuery
	opCMAttributes
	opResizeSRQ
	opMapSegment
	opCreateChannel
	opCMSetChannel
	opCMResolveAddr
	opCMResolveRoute
	opCMJoin
	opCMLeave
	opCMOption
	opCMNotify
	opRegisterMemoryAt
	opMoved
	opPort
	opReregisterMemory
	opEnd // one past the last
)

// String returns the name of an operation as the C libraries and the logs have it, like CREATE_QP.
func (o opcode) String() string {
	if o < opEnd && operationNames[o] != "" {
		return operationNames[o]
	}
	return fmt.Sprintf("operation %d", uint16(o))
}

// operationNames are the names of the operations.
var operationNames = [opEnd]string{
	opHello: "HELLO", opGoodbye: "GOODBYE", opCancel: "CANCEL", opCredit: "CREDIT", opEvents: "EVENTS",
	opArena: "ARENA", opAllocSegment: "ALLOC_SEGMENT", opFreeSegment: "FREE_SEGMENT", opShare: "SHARE",
	opIntroduce: "INTRODUCE", opDrop: "DROP", opTracks: "TRACKS", opNudge: "NUDGE", opProcess: "PROCESS",
	opAdapters: "ADAPTERS", opGIDs: "GIDS", opCounters: "COUNTERS", opAllocPD: "ALLOC_PD",
	opRegisterMemory: "REGISTER_MEMORY", opAllocWindow: "ALLOC_WINDOW", opCreateCQ: "CREATE_CQ",
	opResizeCQ: "RESIZE_CQ", opModerateCQ: "MODERATE_CQ", opCreateSRQ: "CREATE_SRQ", opModifySRQ: "MODIFY_SRQ",
	opQuerySRQ: "QUERY_SRQ", opCreateQP: "CREATE_QP", opModifyQP: "MODIFY_QP", opQueryQP: "QUERY_QP",
	opCreateAH: "CREATE_AH", opAttachMulticast: "ATTACH_MULTICAST", opDetachMulticast: "DETACH_MULTICAST",
	opDestroy: "DESTROY", opCMCreate: "CM_CREATE", opCMBind: "CM_BIND", opCMListen: "CM_LISTEN",
	opCMConnect: "CM_CONNECT", opCMAccept: "CM_ACCEPT", opCMEstablish: "CM_ESTABLISH", opCMReject: "CM_REJECT",
	opCMDisconnect: "CM_DISCONNECT", opCMQuery: "CM_QUERY", opCMAttributes: "CM_ATTRIBUTES",
	opResizeSRQ: "RESIZE_SRQ", opMapSegment: "MAP_SEGMENT", opCreateChannel: "CREATE_CHANNEL",
	opCMSetChannel: "CM_SET_CHANNEL", opCMResolveAddr: "CM_RESOLVE_ADDR", opCMResolveRoute: "CM_RESOLVE_ROUTE",
	opCMJoin: "CM_JOIN", opCMLeave: "CM_LEAVE", opCMOption: "CM_OPTION", opCMNotify: "CM_NOTIFY",
	opRegisterMemoryAt: "REGISTER_MEMORY_AT", opMoved: "MOVED", opPort: "PORT",
	opReregisterMemory: "REREGISTER_MEMORY",
}
