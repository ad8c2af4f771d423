package proto

import "fmt"

// Opcode is the type of a frame.
type Opcode uint16

// The operations of an attachment itself.
const (
	OpHello Opcode = iota + 1
	OpGoodbye
	OpCancel
	OpCredit
	OpEvents
	OpArena
	OpAllocSegment
	OpFreeSegment
	OpShare
	OpIntroduce
	OpDrop
	OpTracks
	OpWakeUp
	OpProcess
)

// The operations that carry out commands.
const (
	OpAdapters Opcode = iota + 32
	OpGIDs
	OpCounters
	OpAllocPD
	OpRegisterMemory
	OpAllocWindow
	OpCreateCQ
	OpResizeCQ
	OpModerateCQ
	OpCreateSRQ
	OpModifySRQ
	OpQuerySRQ
	OpCreateQP
	OpModifyQP
	OpQueryQP
	OpCreateAH
	OpAttachMulticast
	OpDetachMulticast
	OpDestroy
	OpCMCreate
	OpCMBind
	OpCMListen
	OpCMConnect
	OpCMAccept
	OpCMEstablish
	OpCMReject
	OpCMDisconnect
	OpCMQuery
	OpCMAttributes
	OpResizeSRQ
	OpMapSegment
	OpCreateChannel
	OpCMSetChannel
	OpCMResolveAddr
	OpCMResolveRoute
	OpCMJoin
	OpCMLeave
	OpCMOption
	OpCMNotify
	OpRegisterMemoryAt
	OpMoved
	OpPort
	OpReregisterMemory
	OpClock
	OpInterfaces
	OpAllocDM
	OpMemoryInfo
	OpExport
	OpImport
	OpOpenXRCD
	OpCreateXRCSRQ
	OpOpenQP
)

// Those of tag matching.
const (
	OpCreateTagSRQ = OpOpenQP + 5 + iota
	OpTag
)

// Those of version 2.12 on begin where numbers were left for others.
const (
	OpLinkAddresses = OpOpenQP + 11 + iota
)

// Those of version 2.17.
const (
	OpFramePort = OpLinkAddresses + 6 + iota
	OpFlowCounters
)

// Those of version 2.15.
const (
	OpCreateFlow    = OpLinkAddresses + 21 + iota
	OpCreateRSS     // of version 2.18
	OpSetFrameFlags // of version 2.19
	OpSetRSS        // of version 2.19
)

// Those of version 2.20.
const (
	OpLimitQP  = OpCreateRSS + 4 + iota
	OpFirmware // of version 2.22
	OpEnd      // one past the last
)

// String returns the name of an operation as the C libraries and the logs have it, like CREATE_QP.
func (o Opcode) String() string {
	if o < OpEnd && operationNames[o] != "" {
		return operationNames[o]
	}
	return fmt.Sprintf("operation %d", uint16(o))
}

// operationNames are the names of the operations.
var operationNames = [OpEnd]string{
	OpHello: "HELLO", OpGoodbye: "GOODBYE", OpCancel: "CANCEL", OpCredit: "CREDIT", OpEvents: "EVENTS",
	OpArena: "ARENA", OpAllocSegment: "ALLOC_SEGMENT", OpFreeSegment: "FREE_SEGMENT", OpShare: "SHARE",
	OpIntroduce: "INTRODUCE", OpDrop: "DROP", OpTracks: "TRACKS", OpWakeUp: "WAKE_UP", OpProcess: "PROCESS",
	OpAdapters: "ADAPTERS", OpGIDs: "GIDS", OpCounters: "COUNTERS", OpAllocPD: "ALLOC_PD",
	OpRegisterMemory: "REGISTER_MEMORY", OpAllocWindow: "ALLOC_WINDOW", OpCreateCQ: "CREATE_CQ",
	OpResizeCQ: "RESIZE_CQ", OpModerateCQ: "MODERATE_CQ", OpCreateSRQ: "CREATE_SRQ", OpModifySRQ: "MODIFY_SRQ",
	OpQuerySRQ: "QUERY_SRQ", OpCreateQP: "CREATE_QP", OpModifyQP: "MODIFY_QP", OpQueryQP: "QUERY_QP",
	OpCreateAH: "CREATE_AH", OpAttachMulticast: "ATTACH_MULTICAST", OpDetachMulticast: "DETACH_MULTICAST",
	OpDestroy: "DESTROY", OpCMCreate: "CM_CREATE", OpCMBind: "CM_BIND", OpCMListen: "CM_LISTEN",
	OpCMConnect: "CM_CONNECT", OpCMAccept: "CM_ACCEPT", OpCMEstablish: "CM_ESTABLISH", OpCMReject: "CM_REJECT",
	OpCMDisconnect: "CM_DISCONNECT", OpCMQuery: "CM_QUERY", OpCMAttributes: "CM_ATTRIBUTES",
	OpResizeSRQ: "RESIZE_SRQ", OpMapSegment: "MAP_SEGMENT", OpCreateChannel: "CREATE_CHANNEL",
	OpCMSetChannel: "CM_SET_CHANNEL", OpCMResolveAddr: "CM_RESOLVE_ADDR", OpCMResolveRoute: "CM_RESOLVE_ROUTE",
	OpCMJoin: "CM_JOIN", OpCMLeave: "CM_LEAVE", OpCMOption: "CM_OPTION", OpCMNotify: "CM_NOTIFY",
	OpRegisterMemoryAt: "REGISTER_MEMORY_AT", OpMoved: "MOVED", OpPort: "PORT",
	OpReregisterMemory: "REREGISTER_MEMORY", OpClock: "CLOCK", OpInterfaces: "INTERFACES",
	OpAllocDM: "ALLOC_DM", OpMemoryInfo: "MEMORY_INFO", OpExport: "EXPORT", OpImport: "IMPORT",
	OpOpenXRCD: "OPEN_XRCD", OpCreateXRCSRQ: "CREATE_XRC_SRQ", OpOpenQP: "OPEN_QP",
	OpLinkAddresses: "LINK_ADDRESSES", OpCreateTagSRQ: "CREATE_TAG_SRQ", OpTag: "TAG", OpCreateFlow: "CREATE_FLOW",
	OpFramePort: "FRAME_PORT", OpFlowCounters: "FLOW_COUNTERS", OpCreateRSS: "CREATE_RSS",
	OpSetFrameFlags: "SET_FRAME_FLAGS", OpSetRSS: "SET_RSS", OpLimitQP: "LIMIT_QP",
	OpFirmware: "FIRMWARE",
}
