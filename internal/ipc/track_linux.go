package ipc

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// A track carries frames in one direction through memory that the program and the driver share, without
// system calls while the other side polls. For requests, answers and events, two tracks replace the stream
// of programs without tracks (docs/spec/ipc.md, "Tracks"). Frames are at multiples of trackUnit and may wrap at
// the end of the data.
//
// Offsets of the words in a track's header, and its size:
const (
	trackProducer = 0   // bytes put so far, modulo 2^32
	trackConsumer = 64  // bytes taken
	trackAsleep   = 128 // the consumer wants a nudge on the stream
	trackPassed   = 132 // driver's track only: frames sent on the stream, except nudges
	trackHeader   = 256
	trackUnit     = 8
)

// trackBytes is the size of a track's data: it holds as many requests as may be unanswered if none is
// unusually long, and usually as many events as there is credit for.
const trackBytes = 64 << 10

// longFrame is the length from which on a frame is sent on the stream instead.
const longFrame = trackBytes / 4

// track is one side's view of a track.
type track struct {
	producer, consumer, asleep, passed *uint32
	data                               []byte
	at                                 uint32 // this side's word, which is not read back
}

// trackSize returns the bytes that a track takes.
func trackSize() int { return trackHeader + trackBytes }

// openTrack returns a view of mem, which has trackSize bytes and is aligned.
func openTrack(mem []byte) *track {
	word := func(at int) *uint32 { return (*uint32)(unsafe.Pointer(&mem[at])) }
	return &track{
		producer: word(trackProducer), consumer: word(trackConsumer), asleep: word(trackAsleep), passed: word(trackPassed),
		data: mem[trackHeader : trackHeader+trackBytes],
	}
}

// padded returns the space taken by a frame of n bytes.
func padded(n int) int { return (n + trackUnit - 1) &^ (trackUnit - 1) }

// put publishes a frame. It returns false if there is no room now; an error means that the consumer has
// written garbage.
func (l *track) put(op proto.Opcode, flags uint16, id uint64, body []byte) (bool, error) {
	waits := l.at - atomic.LoadUint32(l.consumer)
	if waits > trackBytes {
		return false, fmt.Errorf("%w: a track's consumer is %d bytes behind, at most %d were put", proto.ErrFrame, waits, trackBytes)
	}
	n := proto.HeaderSize + len(body)
	if padded(n) > int(trackBytes-waits) {
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
func (l *track) room() int {
	waits := l.at - atomic.LoadUint32(l.consumer)
	if waits > trackBytes {
		return 0
	}
	return int(trackBytes-waits) &^ (trackUnit - 1)
}

// wakes reports whether the consumer must be nudged, and clears the request.
func (l *track) wakes() bool {
	return atomic.LoadUint32(l.asleep) != 0 && atomic.SwapUint32(l.asleep, 0) != 0
}

func (l *track) write(at uint32, b []byte) {
	n := copy(l.data[at%trackBytes:], b)
	copy(l.data, b[n:])
}

func (l *track) read(b []byte, at uint32) {
	n := copy(b, l.data[at%trackBytes:])
	copy(b[n:], l.data)
}

// empty reports whether there is nothing to take.
func (l *track) empty() bool { return atomic.LoadUint32(l.producer) == l.at }

// take takes the next frame; ok is false if there is none. The body is copied to buf, which grows as
// needed, and valid until the next call: the producer cannot change it meanwhile.
func (l *track) take(buf *[]byte, limit int) (h proto.Header, body []byte, ok bool, err error) {
	have := atomic.LoadUint32(l.producer) - l.at
	if have == 0 {
		return h, nil, false, nil
	}
	if have > trackBytes || have%trackUnit != 0 || have < proto.HeaderSize {
		return h, nil, false, fmt.Errorf("%w: a track's producer is %d bytes ahead: allowed: %d to %d, multiples of %d", proto.ErrFrame, have, proto.HeaderSize, trackBytes, trackUnit)
	}
	var head [proto.HeaderSize]byte
	l.read(head[:], l.at)
	h = proto.ParseHeader(head)
	if h.Length < proto.HeaderSize || int64(h.Length) > int64(limit) || h.Length > have || padded(int(h.Length)) > int(have) {
		return h, nil, false, fmt.Errorf("%w: length %d: allowed: %d to %d", proto.ErrFrame, h.Length, proto.HeaderSize, min(limit, int(have)))
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

// streamed returns how many frames the driver has sent on the stream beside its track, as it says.
func (l *track) streamed() uint32 { return atomic.LoadUint32(l.passed) }

// sleep tells the producer that this side is about to sleep on the stream. It must check once more after
// that.
func (l *track) sleep() { atomic.StoreUint32(l.asleep, 1) }

// wake undoes sleep.
func (l *track) wake() {
	if atomic.LoadUint32(l.asleep) != 0 {
		atomic.StoreUint32(l.asleep, 0)
	}
}
