package ipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"reflect"
	"sync"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
)

// Magic begins the first frame of each side: "SVPI" in memory.
const Magic uint32 = 'S' | 'V'<<8 | 'P'<<16 | 'I'<<24

// The version of the protocol. A side refuses another major version; the lower
// minor version of the two is spoken.
const (
	Major uint16 = 2
	Minor uint16 = 3
)

const (
	headerSize = 16
	// maxRequest bounds the frames of a client, maxFrame those of the driver.
	maxRequest = 4096
	maxFrame   = 1 << 20
	maxDetail  = 1024
	// maxInFlight is how many requests a client may have unanswered.
	maxInFlight = 64
	// eventCredits is how many events the driver may push before the client
	// grants more.
	eventCredits = 256
	// maxPush events a frame: no frame of them is too long for a track, so that none overtakes another.
	maxPush = 48
)

// unanswered is the id of a request that wants no answer, where that is allowed.
const unanswered = 0

// opcode says what a frame is.
type opcode uint16

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
)

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
	opEnd // behind the last
)

// Flags of a frame. Bits 8 to 11 hold the number of descriptors with it.
const (
	flagResponse uint16 = 1 << iota
	flagError
	flagFDShift = 8
	flagFDMask  = 15 << flagFDShift
)

// Features that a side offers; both use what both offer.
const (
	featureSegments uint64 = 1 << iota
	featureProcessVM
	featureCopier
	_ // the direct path of 2.0
	featureDirect
	featureTracks
)

// header begins every frame.
type header struct {
	Length uint32 // of the frame, with this header
	Op     opcode
	Flags  uint16
	ID     uint64 // of the request; 0 for what is none
}

func (h header) fds() int { return int(h.Flags&flagFDMask) >> flagFDShift }

// The bodies that are not structs of package command.
type (
	hello struct {
		Magic        uint32
		Major, Minor uint16
		Features     uint64
		Name         [64]byte // of the program, zero-padded UTF-8
		ProbeAddr    uint64   // where Nonce stands in the client, followed by 16 bytes that the driver may write
		Nonce        [16]byte
		Path         uint32 // memory path that the client insists on; 0: the driver probes
		_            uint32
	}
	welcome struct {
		Magic        uint32
		Major, Minor uint16
		Features     uint64
		Driver       [64]byte // name and version of the driver
		PID          uint32   // of the driver
		Path         uint32   // how memory outside of segments is reached
		Doorbells    uint32   // entries of the doorbell queue at the start of arena 0
		Credits      uint32   // events that may be pushed before the first credit frame
		MaxRequests  uint32   // requests that may be unanswered
		MaxSegments  uint32
		SegmentBytes uint64 // of all segments together
		CopierBytes  uint64 // size of the copier's memory, 0 for none
	}
	moved struct {
		ProbeAddr uint64 // where Nonce stands in the process that goes on, followed by 16 bytes that the driver may write
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
		Kind    uint32 // 1 the program's own key table, 2 a neighbour's, 3 an arena of it, 4 records shared with it
		Program uint32 // the neighbour's number
		Number  uint32 // of the arena, or of the area of records
		_       uint32
		Size    uint64
	}
	introduction struct {
		QP      command.Handle
		Number  uint32 // QP number
		Role    uint32 // direction of the record that the program initiates, 0 or 1
		Owner   uint32 // by which it claims slots of completion queues
		Program uint32 // of the peer
		Area    uint32 // where the record lies
		Offset  uint64
		Clock   uint64 // CLOCK_MONOTONIC where the clock of completions has 0, nanoseconds
	}
	tracksBody struct {
		Bytes uint32 // of the data of each track
		_     uint32
	}
	dropBody struct {
		Program uint32
		Segment uint32 // 0: the program as a whole
	}
	mapSegmentArgs struct{ Program, Segment uint32 }
	empty          struct{}
)

// errFrame is a frame that breaks the protocol.
var errFrame = errors.New("bad frame")

// appendFrame appends a frame to b.
func appendFrame(b []byte, op opcode, flags uint16, id uint64, body []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(headerSize+len(body)))
	b = le.AppendUint16(b, uint16(op))
	b = le.AppendUint16(b, flags)
	b = le.AppendUint64(b, id)
	return append(b, body...)
}

// readFrame reads a frame of at most limit bytes. The body lies in buf, which
// grows as needed, until the next call.
func readFrame(r io.Reader, buf *[]byte, limit int) (header, []byte, error) {
	var raw [headerSize]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return header{}, nil, err
	}
	h := parseHeader(raw)
	if h.Length < headerSize || int64(h.Length) > int64(limit) {
		return h, nil, fmt.Errorf("%w: length %d: allowed: %d to %d", errFrame, h.Length, headerSize, limit)
	}
	n := int(h.Length) - headerSize
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	body := (*buf)[:n]
	if _, err := io.ReadFull(r, body); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return h, nil, err
	}
	return h, body, nil
}

func parseHeader(b [headerSize]byte) header {
	le := binary.LittleEndian
	return header{le.Uint32(b[:]), opcode(le.Uint16(b[4:])), le.Uint16(b[6:]), le.Uint64(b[8:])}
}

// encode lays v, or what it points to, out as the protocol does: fixed-width
// little-endian fields.
func encode[T any](v T) []byte {
	if plain[T]() {
		return append([]byte(nil), asBytes(unsafe.Slice(&v, 1))...)
	}
	var b bytes.Buffer
	// Only fixed-size values come here: a test covers every body.
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		panic("ipc: " + err.Error())
	}
	return b.Bytes()
}

// encodeList lays the elements out one after another.
func encodeList[T any](list []T) []byte {
	if plain[T]() {
		return append([]byte(nil), asBytes(list)...)
	}
	return encode(list)
}

// laid is encodeList without a copy where there is none to be made: it lasts as long as the list.
func laid[T any](list []T) []byte {
	if plain[T]() {
		return asBytes(list)
	}
	return encode(list)
}

// decode fills a T from a body that must have its exact size.
func decode[T any](b []byte) (v T, err error) {
	if plain[T]() && len(b) == int(unsafe.Sizeof(v)) {
		copy(asBytes(unsafe.Slice(&v, 1)), b)
		return v, nil
	}
	if n := binary.Size(v); n != len(b) {
		return v, fmt.Errorf("%w: body of %d bytes, want %d", errFrame, len(b), n)
	}
	_, err = binary.Decode(b, binary.LittleEndian, &v)
	return v, err
}

// decodeList fills a slice from a body of whole elements.
func decodeList[T any](b []byte) ([]T, error) {
	var one T
	size := binary.Size(one)
	if len(b)%size != 0 {
		return nil, fmt.Errorf("%w: body of %d bytes, want a multiple of %d", errFrame, len(b), size)
	}
	list := make([]T, len(b)/size)
	if plain[T]() {
		copy(asBytes(list), b)
		return list, nil
	}
	_, err := binary.Decode(b, binary.LittleEndian, list)
	return list, err
}

// asBytes is the memory of plain elements.
func asBytes[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), uintptr(len(list))*unsafe.Sizeof(*new(T)))
}

// plains says of types whether their memory is their layout on the stream.
var plains sync.Map // reflect.Type to bool

// plain reports whether the memory of a T is its layout on the stream, so that it can
// be copied: a little-endian processor, numbers alone, nothing between them. Going
// through the fields by reflection is most of what a command costs.
func plain[T any]() bool {
	t := reflect.TypeFor[T]()
	if is, ok := plains.Load(t); ok {
		return is.(bool)
	}
	is := binary.NativeEndian.Uint16([]byte{1, 0}) == 1 && numbers(t) && binary.Size(*new(T)) == int(t.Size())
	plains.Store(t, is)
	return is
}

// numbers reports whether every bit pattern is a value of the type.
func numbers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return true
	case reflect.Array:
		return numbers(t.Elem())
	case reflect.Struct:
		for f := range t.NumField() {
			if !numbers(t.Field(f).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// encodeError lays an error out: its code, four zero bytes, the detail.
func encodeError(err error) []byte {
	e := asError(err)
	detail := e.Detail
	if len(detail) > maxDetail {
		detail = detail[:maxDetail]
		for !utf8.ValidString(detail) && len(detail) > 0 {
			detail = detail[:len(detail)-1]
		}
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(e.Code))
	return append(append(b, 0, 0, 0, 0), detail...)
}

func decodeError(b []byte) error {
	if len(b) < 8 {
		return fmt.Errorf("%w: error body of %d bytes", errFrame, len(b))
	}
	return &command.Error{Code: command.Code(binary.LittleEndian.Uint32(b)), Detail: string(b[8:])}
}

// asError makes err a *command.Error.
func asError(err error) *command.Error {
	var e *command.Error
	if errors.As(err, &e) {
		return e
	}
	return command.Errorf(command.Internal, "%v", err)
}

// fixedName pads a name to 64 bytes.
func fixedName(s string) (b [64]byte) {
	copy(b[:], s)
	return b
}

// nameOf is the reverse of fixedName, with what is not printable replaced.
func nameOf(b [64]byte) string {
	s := bytes.TrimRight(b[:], "\x00")
	s = bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
	return string(s)
}
