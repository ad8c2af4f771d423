package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// kind is that of a message.
type kind uint8

// The messages: those of the agent, those of the relay, and those of both.
const (
	hello    kind = iota + 1 // both: greeting
	open                     // agent: opening; relay: opened
	closing                  // both: of the relay with why the program is ended, as an error of proto
	request                  // agent: id, operation and the body of a command
	cancel                   // agent: id of a request
	posted                   // agent: entries of a ring
	copied                   // agent: what came of a copy
	answer                   // relay: id, whether it is an error, and the body
	arena                    // relay: proto.ArenaBody
	complete                 // relay: completions of a CQ
	taken                    // relay: how far a ring of requests has been taken
	events                   // relay: command.Event, repeated
	raised                   // relay: events of a channel
	copying                  // relay: a copy to be made
)

// Limits of the stream.
const (
	// headerSize is that of the header of a message: its length with the header, its kind, and the program.
	headerSize = 12
	// maxMessage limits a message: of an answer, or of a copy of 64 KB.
	maxMessage = 1<<16 + 256
	// maxPosted limits the bytes of entries in a message.
	maxPosted = 1 << 16
	// MaxPrograms is how many programs a stream carries at a time.
	MaxPrograms = 256
	// version is that of the messages. Both sides have the same.
	version = 2
)

// magic begins each side's greeting. An agent's that starts anew on a line that another one has left is found by it.
var magic = [16]byte{'S', 'o', 'f', 't', 'V', 'P', 'I', ' ', 'r', 'e', 'm', 'o', 't', 'e', 0, version}

// errMessage is what a side does that is no message, or not its turn.
var errMessage = errors.New("bad message")

// Bodies of messages.
type (
	greeting struct {
		Magic     [16]byte
		Nonce     [16]byte // the agent's, which the relay repeats
		Doorbells uint32   // the relay's: entries of the doorbell queue
		Protocol  uint32   // proto.Major << 16 | proto.Minor
	}
	opening struct {
		Name [64]byte
		PID  uint32
		_    uint32
	}
	requestHead struct {
		ID uint64
		Op proto.Opcode
		_  [6]byte
	}
	answerHead struct {
		ID     uint64
		Failed uint32
		_      uint32
	}
	postedHead struct {
		Queue command.Handle
		Side  side
		Start uint32 // index of the first entry
		Count uint32
	}
	takenBody struct {
		Queue command.Handle
		Side  side
		Index uint32 // behind the last entry given back
		_     uint32
	}
	completeHead struct {
		CQ     command.Handle
		Broken uint32 // nothing more comes
	}
	raisedHead struct {
		Channel command.Handle
		_       uint32
	}
	copyingHead struct {
		Index         uint32
		Kind          uint8
		Last          uint8
		_             uint16
		Length        uint32 // of a read; a write's data follows
		_             uint32
		Addr          uint64
		Compare, Swap uint64
	}
	copiedHead struct {
		Index   uint32
		Reached uint32
		Old     uint64
	}
	// importing is the body of the request for an object of another program of the agent's.
	importing struct {
		From   uint32 // its number
		Kind   command.Kind
		Handle command.Handle
		PD     command.Handle
	}
	// clockBody answers the request for the clock of completions: when it was 0, and what the time is, both of the relay's clock.
	clockBody struct {
		Zero, Now uint64
	}
	// resumedAt follows the answer to the request for another size of an SRQ: the first index of what the program posts.
	resumedAt struct {
		Producer uint32
		_        uint32
	}
)

// side tells the rings of a queue apart.
type side uint32

const (
	sends side = iota
	receives
)

// message is one that was read. The body is valid until the next.
type message struct {
	kind    kind
	program uint32
	body    []byte
}

// read reads a message into buf, which has room for the longest.
func read(r io.Reader, buf []byte) (m message, err error) {
	if _, err := io.ReadFull(r, buf[:headerSize]); err != nil {
		return m, err
	}
	n := binary.LittleEndian.Uint32(buf)
	m = message{kind: kind(buf[4]), program: binary.LittleEndian.Uint32(buf[8:])}
	if n < headerSize || n > maxMessage || buf[5]|buf[6]|buf[7] != 0 {
		return m, fmt.Errorf("%w: length %d of kind %d; allowed: %d to %d", errMessage, n, m.kind, headerSize, maxMessage)
	}
	m.body = buf[headerSize:n]
	if _, err := io.ReadFull(r, m.body); err != nil {
		return m, fmt.Errorf("%w: it ends in a message", io.ErrUnexpectedEOF)
	}
	return m, nil
}

// head decodes the first part of a body, and returns the rest.
func head[T any](body []byte) (h T, rest []byte, err error) {
	n := binary.Size(h)
	if len(body) < n {
		return h, nil, fmt.Errorf("%w: %d bytes, not %d", errMessage, len(body), n)
	}
	h, err = proto.Decode[T](body[:n])
	return h, body[n:], err
}

// whole is head for a body that is no more than that.
func whole[T any](body []byte) (h T, err error) {
	h, rest, err := head[T](body)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes more than there are fields", errMessage, len(rest))
	}
	return h, err
}

// writer writes messages, one at a time.
type writer struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
	err error
}

// send writes a message of several parts.
func (w *writer) send(k kind, program uint32, parts ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.buf = append(w.buf[:0], make([]byte, headerSize)...)
	for _, p := range parts {
		w.buf = append(w.buf, p...)
	}
	if len(w.buf) > maxMessage {
		return fmt.Errorf("%w: %d bytes; allowed: %d", errMessage, len(w.buf), maxMessage)
	}
	le := binary.LittleEndian
	le.PutUint32(w.buf, uint32(len(w.buf)))
	w.buf[4] = byte(k)
	le.PutUint32(w.buf[8:], program)
	_, w.err = w.w.Write(w.buf)
	return w.err
}
