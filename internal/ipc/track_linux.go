package ipc

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// A track carries frames one way through memory that the program and the driver share,
// without system calls while the other side looks. Two of them do for requests, answers
// and events what the stream does for programs without (docs/ipc.md, "Tracks"). Frames lie
// at multiples of trackUnit and may wrap at the end of the data.
//
// Offsets of the words in a track's header, and its size.
const (
	trackProducer = 0   // bytes put so far, modulo 2^32
	trackConsumer = 64  // bytes taken
	trackAsleep   = 128 // the consumer wants a nudge on the stream
	trackPassed   = 132 // of the driver's: frames that it sent on the stream, nudges apart
	trackHeader   = 256
	trackUnit     = 8
)

// trackBytes is the size of the data of a track: as many requests as may be unanswered fit
// where none is unusually long, and as many events as there is credit for at most times.
const trackBytes = 64 << 10

// longFrame is the length of a frame that goes by the stream instead.
const longFrame = trackBytes / 4

// track is one side's view of a track.
type track struct {
	producer, consumer, asleep, passed *uint32
	data                               []byte
	at                                 uint32 // this side's word, which is not read back
}

func trackSize() int { return trackHeader + trackBytes }

// openTrack makes a view of mem, of trackSize bytes and aligned.
func openTrack(mem []byte) *track {
	word := func(at int) *uint32 { return (*uint32)(unsafe.Pointer(&mem[at])) }
	return &track{
		producer: word(trackProducer), consumer: word(trackConsumer), asleep: word(trackAsleep), passed: word(trackPassed),
		data: mem[trackHeader : trackHeader+trackBytes],
	}
}

// padded is the room that a frame of n bytes takes.
func padded(n int) int { return (n + trackUnit - 1) &^ (trackUnit - 1) }

// put publishes a frame. It reports false where there is no room now; the error says that
// the consumer has written nonsense.
func (l *track) put(op opcode, flags uint16, id uint64, body []byte) (bool, error) {
	waits := l.at - atomic.LoadUint32(l.consumer)
	if waits > trackBytes {
		return false, fmt.Errorf("%w: a track's consumer is %d bytes behind, at most %d were put", errFrame, waits, trackBytes)
	}
	n := headerSize + len(body)
	if padded(n) > int(trackBytes-waits) {
		return false, nil
	}
	var head [headerSize]byte
	appendFrame(head[:0], op, flags, id, nil)
	head[0], head[1], head[2], head[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	l.write(l.at, head[:])
	l.write(l.at+headerSize, body)
	l.at += uint32(padded(n))
	atomic.StoreUint32(l.producer, l.at)
	return true, nil
}

// room is how long a frame may be now; 0 also where the consumer has written nonsense.
func (l *track) room() int {
	waits := l.at - atomic.LoadUint32(l.consumer)
	if waits > trackBytes {
		return 0
	}
	return int(trackBytes-waits) &^ (trackUnit - 1)
}

// wakes reports whether the consumer has to be nudged, once.
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

// empty reports whether nothing is there to be taken.
func (l *track) empty() bool { return atomic.LoadUint32(l.producer) == l.at }

// take takes the next frame; ok is false where there is none. The body lies in buf, which
// grows as needed, until the next call: what the producer does to the track meanwhile does not
// change it.
func (l *track) take(buf *[]byte, limit int) (h header, body []byte, ok bool, err error) {
	have := atomic.LoadUint32(l.producer) - l.at
	if have == 0 {
		return h, nil, false, nil
	}
	if have > trackBytes || have%trackUnit != 0 || have < headerSize {
		return h, nil, false, fmt.Errorf("%w: a track's producer is %d bytes ahead: allowed: %d to %d, multiples of %d", errFrame, have, headerSize, trackBytes, trackUnit)
	}
	var head [headerSize]byte
	l.read(head[:], l.at)
	h = parseHeader(head)
	if h.Length < headerSize || int64(h.Length) > int64(limit) || h.Length > have || padded(int(h.Length)) > int(have) {
		return h, nil, false, fmt.Errorf("%w: length %d: allowed: %d to %d", errFrame, h.Length, headerSize, min(limit, int(have)))
	}
	n := int(h.Length) - headerSize
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	body = (*buf)[:n]
	l.read(body, l.at+headerSize)
	l.at += uint32(padded(int(h.Length)))
	atomic.StoreUint32(l.consumer, l.at)
	return h, body, true, nil
}

// sleep tells the producer that this side is about to sleep on the stream. It is to look
// once more then.
func (l *track) sleep() { atomic.StoreUint32(l.asleep, 1) }

// wake takes that back.
func (l *track) wake() {
	if atomic.LoadUint32(l.asleep) != 0 {
		atomic.StoreUint32(l.asleep, 0)
	}
}
