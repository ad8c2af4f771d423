package stream

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/wait"
)

// A track carries frames in one direction through memory that the program and the driver share, without
// system calls while the other side polls. For requests, answers and events, two tracks replace the stream
// of programs without tracks (docs/spec/ipc.md, "Tracks"). Frames are at multiples of trackUnit and may wrap at
// the end of the data.
//
// Offsets of the words in a track's header, and its size:
const (
	TrackProducer = 0   // bytes put so far, modulo 2^32
	TrackConsumer = 64  // bytes taken
	TrackAsleep   = 128 // the consumer wants to be woken by a frame on the stream
	TrackPassed   = 132 // driver's track only: frames sent on the stream, except wake-ups
	trackHeader   = 256
	trackUnit     = 8
)

// TrackBytes is the size of a track's data: it holds as many requests as may be unanswered if none is
// unusually long, and usually as many events as there is credit for.
const TrackBytes = 64 << 10

// longFrame is the length from which on a frame is sent on the stream instead.
const longFrame = TrackBytes / 4

// Track is one side's view of a track.
type Track struct {
	producer, consumer, asleep, passed *uint32
	data                               []byte
	at                                 uint32 // this side's word, which is not read back
}

// TrackSize returns the bytes that a track takes.
func TrackSize() int { return trackHeader + TrackBytes }

// OpenTrack returns a view of mem, which has TrackSize bytes and is aligned.
func OpenTrack(mem []byte) *Track {
	word := func(at int) *uint32 { return (*uint32)(unsafe.Pointer(&mem[at])) }
	return &Track{
		producer: word(TrackProducer), consumer: word(TrackConsumer), asleep: word(TrackAsleep), passed: word(TrackPassed),
		data: mem[trackHeader : trackHeader+TrackBytes],
	}
}

// padded returns the space taken by a frame of n bytes.
func padded(n int) int { return (n + trackUnit - 1) &^ (trackUnit - 1) }

// Put publishes a frame. It returns false if there is no room now; an error means that the consumer has
// written garbage.
func (l *Track) Put(op proto.Opcode, flags uint16, id uint64, body []byte) (bool, error) {
	waits := l.at - atomic.LoadUint32(l.consumer)
	if waits > TrackBytes {
		return false, fmt.Errorf("%w: a track's consumer is %d bytes behind, at most %d were put", proto.ErrFrame, waits, TrackBytes)
	}
	n := proto.HeaderSize + len(body)
	if padded(n) > int(TrackBytes-waits) {
		return false, nil
	}
	var head [proto.HeaderSize]byte
	proto.AppendFrame(head[:0], op, flags, id, nil)
	head[0], head[1], head[2], head[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	l.write(l.at, head[:])
	l.write(l.at+proto.HeaderSize, body)
	l.at += uint32(padded(n))
	atomic.StoreUint32(l.producer, l.at)
	return true, nil
}

// room returns the maximum length of a frame now; 0 also if the consumer has written garbage.
func (l *Track) room() int {
	waits := l.at - atomic.LoadUint32(l.consumer)
	if waits > TrackBytes {
		return 0
	}
	return int(TrackBytes-waits) &^ (trackUnit - 1)
}

// Wakes reports whether the consumer must be woken, and clears the request.
func (l *Track) Wakes() bool {
	return atomic.LoadUint32(l.asleep) != 0 && atomic.SwapUint32(l.asleep, 0) != 0
}

func (l *Track) write(at uint32, b []byte) {
	n := copy(l.data[at%TrackBytes:], b)
	copy(l.data, b[n:])
}

func (l *Track) read(b []byte, at uint32) {
	n := copy(b, l.data[at%TrackBytes:])
	copy(b[n:], l.data)
}

// Empty reports whether there is nothing to take.
func (l *Track) Empty() bool { return atomic.LoadUint32(l.producer) == l.at }

// Take takes the next frame; ok is false if there is none. The body is copied to buf, which grows as
// needed, and valid until the next call: the producer cannot change it meanwhile.
func (l *Track) Take(buf *[]byte, limit int) (h proto.Header, body []byte, ok bool, err error) {
	have := atomic.LoadUint32(l.producer) - l.at
	if have == 0 {
		return h, nil, false, nil
	}
	if have > TrackBytes || have%trackUnit != 0 || have < proto.HeaderSize {
		return h, nil, false, fmt.Errorf(
			"%w: a track's producer is %d bytes ahead: allowed: %d to %d, multiples of %d",
			proto.ErrFrame,
			have,
			proto.HeaderSize,
			TrackBytes,
			trackUnit,
		)
	}
	var head [proto.HeaderSize]byte
	l.read(head[:], l.at)
	h = proto.ParseHeader(head)
	if h.Length < proto.HeaderSize || int64(h.Length) > int64(limit) || h.Length > have || padded(int(h.Length)) > int(have) {
		return h, nil, false, fmt.Errorf(
			"%w: length %d: allowed: %d to %d",
			proto.ErrFrame,
			h.Length,
			proto.HeaderSize,
			min(limit, int(have)),
		)
	}
	n := int(h.Length) - proto.HeaderSize
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	body = (*buf)[:n]
	l.read(body, l.at+proto.HeaderSize)
	l.at += uint32(padded(int(h.Length)))
	atomic.StoreUint32(l.consumer, l.at)
	return h, body, true, nil
}

// Waits reports whether there is something to take. While there is not it looks for a while, if s finds that worth it: a
// track is watched by one goroutine at a time, and s is that side's.
func (l *Track) Waits(s *wait.Spinner) bool {
	if s.Begin(wait.Now()) == wait.Arm {
		return !l.Empty()
	}
	for l.Empty() {
		if !s.Again(wait.Now, false) {
			return false
		}
	}
	return true
}

// Streamed returns how many frames the driver has sent on the stream beside its track, as it says.
func (l *Track) Streamed() uint32 { return atomic.LoadUint32(l.passed) }

// Sleep tells the producer that this side is about to sleep on the stream. It must check once more after
// that.
func (l *Track) Sleep() { atomic.StoreUint32(l.asleep, 1) }

// Wake undoes sleep.
func (l *Track) Wake() {
	if atomic.LoadUint32(l.asleep) != 0 {
		atomic.StoreUint32(l.asleep, 0)
	}
}
