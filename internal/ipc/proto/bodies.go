package proto

import "github.com/softvpi/softvpi/internal/command"

// The bodies that are not structs of package command.
type (
	Hello struct {
		Magic        uint32
		Major, Minor uint16
		Features     uint64
		Name         [64]byte // of the program, zero-padded UTF-8
		ProbeAddr    uint64   // address of Nonce in the client, followed by 16 bytes that the driver may write
		Nonce        [16]byte
		Path         command.MemoryPath // memory path that the client insists on; 0: the driver probes
		_            uint32
	}
	Welcome struct {
		Magic        uint32
		Major, Minor uint16
		Features     uint64
		Driver       [64]byte           // name and version of the driver
		PID          uint32             // of the driver
		Path         command.MemoryPath // how memory outside segments is accessed
		Doorbells    uint32             // entries of the doorbell queue at the start of arena 0
		Credits      uint32             // events that may be pushed before the first credit frame
		MaxRequests  uint32             // maximum number of unanswered requests
		MaxSegments  uint32
		SegmentBytes uint64 // of all segments together
		CopierBytes  uint64 // size of the copier's memory, 0 for none
	}
	Moved struct {
		ProbeAddr uint64 // address of Nonce in the process that takes over, followed by 16 bytes that the driver may write
		Nonce     [16]byte
	}
	Goodbye struct {
		Code   command.Code
		Length uint32
		Reason [120]byte
	}
	ArenaBody struct {
		ID   uint32
		_    uint32
		Size uint64
	}
	Credit      struct{ Events uint32 }
	AdapterArgs struct{ Adapter uint32 }
	HandleArgs  struct{ Handle command.Handle }
	WindowArgs  struct {
		PD   command.Handle
		Type uint32
	}
	ResizeArgs struct {
		Queue command.Handle
		Depth uint32
	}
	MulticastArgs struct {
		QP    command.Handle
		_     uint32
		Group command.Addr
	}
	DestroyArgs struct {
		Kind   command.Kind
		Handle command.Handle
	}
	BindArgs struct {
		ID    command.Handle
		_     uint32
		Local command.Endpoint
	}
	ListenArgs struct {
		ID      command.Handle
		Backlog uint32
	}
	AttributesArgs struct {
		ID    command.Handle
		State command.QPState
	}
	SegmentArgs  struct{ Size uint64 }
	SegmentReply struct {
		Number uint32
		_      uint32
		Size   uint64
	}
	ShareBody struct {
		Kind    uint32 // 1 the program's own key table, 2 a neighbour's, 3 an arena of a neighbour, 4 records shared with it
		Program uint32 // the neighbour's number
		Number  uint32 // of the arena, or of the area of records
		_       uint32
		Size    uint64
	}
	Introduction struct {
		QP      command.Handle
		Number  uint32 // QP number
		Role    uint32 // direction of the record that the program initiates, 0 or 1
		Owner   uint32 // owner number for claiming slots of completion queues
		Program uint32 // of the peer
		Area    uint32 // location of the record
		Offset  uint64
		Clock   uint64 // CLOCK_MONOTONIC, in nanoseconds, at which the clock of completions is 0
	}
	TracksBody struct {
		Bytes uint32 // size of each track's data
		_     uint32
	}
	DropBody struct {
		Program uint32
		Segment uint32 // 0: the whole program
	}
	MapSegmentArgs struct{ Program, Segment uint32 }
	// ProcessBody tells of the process of a neighbour.
	ProcessBody struct {
		Program uint32
		Number  uint32 // of the process, in Terms.PeerProcess
		PID     uint32 // in the driver's PID namespace
		_       uint32
		Address uint64 // of Nonce in the process
		Nonce   [16]byte
	}
	// Exported is what a program passes to those that may import its objects.
	Exported struct{ Token [16]byte }
	// ImportArgs names an object of the program with this token.
	ImportArgs struct {
		Token  [16]byte
		Kind   command.Kind // PD, Memory or DM; 0: only asks whether there is such a program
		Handle command.Handle
		PD     command.Handle // Memory: the importing program's handle of the region's domain
		_      uint32
	}
	Imported struct {
		Handle     command.Handle // of a PD or DM
		LKey, RKey uint32         // of a region
		Segment    uint32         // of a DM
		Size       uint64         // of a DM
	}
	Empty struct{}
)

// Kinds of shared memory passed to a program in addition to its own.
const (
	ShareOwnKeys uint32 = iota + 1 // the key table of the program itself
	ShareKeys                      // that of a neighbour
	ShareArena                     // a ring arena of a neighbour
	ShareArea                      // records of pairs with a neighbour
)
