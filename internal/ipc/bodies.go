package ipc

import "github.com/softvpi/softvpi/internal/command"

// The bodies that are not structs of package command.
type (
	hello struct {
		Magic        uint32
		Major, Minor uint16
		Features     uint64
		Name         [64]byte // of the program, zero-padded UTF-8
		ProbeAddr    uint64   // address of Nonce in the client, followed by 16 bytes that the driver may write
		Nonce        [16]byte
		Path         command.MemoryPath // memory path that the client insists on; 0: the driver probes
		_            uint32
	}
	welcome struct {
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
	moved struct {
		ProbeAddr uint64 // address of Nonce in the process that takes over, followed by 16 bytes that the driver may write
		Nonce     [16]byte
	}
	goodbye struct {
		Code   command.Code
		Length uint32
		Reason [120]byte
	}
	arenaBody struct {
		ID   uint32
		_    uint32
		Size uint64
	}
	credit      struct{ Events uint32 }
	adapterArgs struct{ Adapter uint32 }
	handleArgs  struct{ Handle command.Handle }
	windowArgs  struct {
		PD   command.Handle
		Type uint32
	}
	resizeArgs struct {
		Queue command.Handle
		Depth uint32
	}
	multicastArgs struct {
		QP    command.Handle
		_     uint32
		Group command.Addr
	}
	destroyArgs struct {
		Kind   command.Kind
		Handle command.Handle
	}
	bindArgs struct {
		ID    command.Handle
		_     uint32
		Local command.Endpoint
	}
	listenArgs struct {
		ID      command.Handle
		Backlog uint32
	}
	attributesArgs struct {
		ID    command.Handle
		State command.QPState
	}
	segmentArgs  struct{ Size uint64 }
	segmentReply struct {
		Number uint32
		_      uint32
		Size   uint64
	}
	shareBody struct {
		Kind    uint32 // 1 the program's own key table, 2 a neighbour's, 3 an arena of a neighbour, 4 records shared with it
		Program uint32 // the neighbour's number
		Number  uint32 // of the arena, or of the area of records
		_       uint32
		Size    uint64
	}
	introduction struct {
		QP      command.Handle
		Number  uint32 // QP number
		Role    uint32 // direction of the record that the program initiates, 0 or 1
		Owner   uint32 // owner number for claiming slots of completion queues
		Program uint32 // of the peer
		Area    uint32 // location of the record
		Offset  uint64
		Clock   uint64 // CLOCK_MONOTONIC, in nanoseconds, at which the clock of completions is 0
	}
	tracksBody struct {
		Bytes uint32 // size of each track's data
		_     uint32
	}
	dropBody struct {
		Program uint32
		Segment uint32 // 0: the whole program
	}
	mapSegmentArgs struct{ Program, Segment uint32 }
	// processBody tells of the process of a neighbour.
	processBody struct {
		Program uint32
		Number  uint32 // of the process, in Terms.PeerProcess
		PID     uint32 // in the driver's PID namespace
		_       uint32
		Address uint64 // of Nonce in the process
		Nonce   [16]byte
	}
	empty struct{}
)

// Kinds of shared memory passed to a program in addition to its own.
const (
	shareOwnKeys uint32 = iota + 1 // the key table of the program itself
	shareKeys                      // that of a neighbour
	shareArena                     // a ring arena of a neighbour
	shareArea                      // records of pairs with a neighbour
)
