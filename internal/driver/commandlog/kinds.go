package commandlog

// The kinds of commands.
const (
	commandAllocPD = iota
	commandRegisterMemory
	commandAllocWindow
	commandCreateCQ
	commandResizeCQ
	commandModerateCQ
	commandCreateSRQ
	commandModifySRQ
	commandResizeSRQ
	commandQuerySRQ
	commandCreateQP
	commandModifyQP
	commandQueryQP
	commandCreateAH
	commandAttachMulticast
	commandDetachMulticast
	commandDestroy
	commandCMCreate
	commandCMBind
	commandCMListen
	commandCMConnect
	commandCMAccept
	commandCMEstablish
	commandCMReject
	commandCMDisconnect
	commandCMQuery
	commandCMAttributes
	commandReregister
)

// commandNames are the names of the kinds of commands, in the style of a card's firmware.
var commandNames = [...]string{
	commandAllocPD:         "ALLOC_PD",
	commandRegisterMemory:  "REGISTER_MEMORY",
	commandAllocWindow:     "ALLOC_WINDOW",
	commandCreateCQ:        "CREATE_CQ",
	commandResizeCQ:        "RESIZE_CQ",
	commandModerateCQ:      "MODERATE_CQ",
	commandCreateSRQ:       "CREATE_SRQ",
	commandModifySRQ:       "MODIFY_SRQ",
	commandResizeSRQ:       "RESIZE_SRQ",
	commandQuerySRQ:        "QUERY_SRQ",
	commandCreateQP:        "CREATE_QP",
	commandModifyQP:        "MODIFY_QP",
	commandQueryQP:         "QUERY_QP",
	commandCreateAH:        "CREATE_AH",
	commandAttachMulticast: "ATTACH_MULTICAST",
	commandDetachMulticast: "DETACH_MULTICAST",
	commandDestroy:         "DESTROY",
	commandCMCreate:        "CM_CREATE",
	commandCMBind:          "CM_BIND",
	commandCMListen:        "CM_LISTEN",
	commandCMConnect:       "CM_CONNECT",
	commandCMAccept:        "CM_ACCEPT",
	commandCMEstablish:     "CM_ESTABLISH",
	commandCMReject:        "CM_REJECT",
	commandCMDisconnect:    "CM_DISCONNECT",
	commandCMQuery:         "CM_QUERY",
	commandCMAttributes:    "CM_ATTRIBUTES",
	commandReregister:      "REREGISTER_MEMORY",
}
