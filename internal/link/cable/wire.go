package cable

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// aliveEvery is after how long without anything to say an end says that it is there; silence is after how long without a word
	// from the other end the link is down.
	aliveEvery = 250 * time.Millisecond
	silence    = 2 * time.Second
	// A sender without credits asks for them after askFirst, then in intervals that double up to askMost.
	askFirst = 5 * time.Millisecond
	askMost  = 100 * time.Millisecond
	// sayAgain is when a message is repeated that has not been heard.
	sayAgain = 50 * time.Millisecond
	// mostSaid bounds the messages that wait.
	mostSaid = 16
	// outLen is how many bytes of datagrams are put together before they are sent: what Linux takes at once.
	outLen = 60 << 10

	minFrame = ib.LRHLen + ib.BTHLen + 4
)

// errCredits says that the other end of a cable has sent more than it may.
var errCredits = errors.New("the other end of the cable sends more than it has credits for")

// Wire is one end of a cable over datagrams: it makes datagrams of frames and messages, and the other way round. It has no
// clock, no socket and no lock of its own.
type Wire struct {
	// Towards the other end.
	session  uint64 // by which the other end knows this
	size     int    // of a datagram, at most
	position uint64 // of the stream
	limit    uint64 // up to where the other end takes it
	out      []byte // datagrams, all of the size but for the last
	head     int    // where the last of them begins
	sent     int    // bytes of out that are sent already
	closed   bool   // nothing can be put into out before it is sent
	asks     time.Duration
	ask      clock.Time // when credits are asked for; clock.Never: there are some
	spoke    clock.Time

	// From the other end.
	window   uint64
	expected uint64 // position of what comes next
	told     uint64 // limit that the other end was told last
	skips    bool   // what comes is of no frame until one begins
	in       inbox
	listened clock.Time
	answer   bool // a datagram is to be sent, with whatever it says
	ended    bool

	// Messages: what is said, one at a time, and what was heard.
	says   [][]byte
	number uint32 // of the first of says
	again  clock.Time
	heard  uint32

	lost, damaged, late uint64
}

// WireConfig is what both ends have agreed on.
type WireConfig struct {
	Session uint64 // by which the other end knows this one
	Size    int    // of a datagram, at most
	Limit   uint64 // that the other end has granted: its window
	Window  int    // bytes that this end takes before it has handed them on
}

// NewWire begins a session.
func NewWire(c WireConfig, now clock.Time) *Wire {
	w := &Wire{
		session: c.Session, size: min(max(c.Size, minDatagram), MaxDatagram), limit: c.Limit, window: uint64(c.Window), told: uint64(c.Window),
		out: make([]byte, 0, outLen+MaxDatagram), ask: clock.Never, spoke: now, listened: now, number: 1, in: newInbox(c.Window),
	}
	return w
}

// Fits tells whether a frame of n bytes can be put in now. Where it cannot for want of credits, that is so until the other end has told of more.
func (w *Wire) Fits(now clock.Time, n int) bool {
	if w.position+uint64(n+recordMore) > w.limit {
		if w.ask == clock.Never {
			w.asks = askFirst
			w.ask = now.Add(w.asks)
		}
		return false
	}
	return len(w.out) < outLen && !w.closed
}

// Put puts a frame in, in up to three pieces, of up to MaxFrame bytes in all. It must fit.
func (w *Wire) Put(head, payload, tail []byte) {
	n := len(head) + len(payload) + len(tail)
	if len(w.out) == 0 || len(w.out) == w.head+w.size {
		w.begin(kindFrames)
	}
	if b := w.out[w.head:]; binary.LittleEndian.Uint16(b[2:]) == noFrame {
		binary.LittleEndian.PutUint16(b[2:], uint16(len(b)-headerLen))
	}
	crc := ib.VCRCUpdate(ib.VCRCUpdate(ib.VCRCUpdate(ib.VCRCSeed, head), payload), tail)
	var b [2]byte
	binary.LittleEndian.PutUint16(b[:], uint16(n))
	w.write(b[:])
	w.write(head)
	w.write(payload)
	w.write(tail)
	ib.PutVCRC(b[:], ^crc)
	w.write(b[:])
}

// write adds to the stream.
func (w *Wire) write(p []byte) {
	for len(p) > 0 {
		room := w.head + w.size - len(w.out)
		if room == 0 {
			w.begin(kindFrames)
			continue
		}
		n := min(room, len(p))
		w.out = append(w.out, p[:n]...)
		w.position += uint64(n)
		p = p[n:]
	}
}

// begin begins a datagram.
func (w *Wire) begin(kind uint8) {
	w.told = w.grant()
	h := header{kind: kind, first: noFrame, heard: w.heard, session: w.session, position: w.position, limit: w.told}
	if w.ask != clock.Never {
		h.flags = flagAnswer
	}
	w.head = len(w.out)
	w.out = append(w.out, make([]byte, headerLen)...)
	h.put(w.out[w.head:])
	w.answer = false
}

// grant is up to where the other end may send.
func (w *Wire) grant() uint64 { return w.expected - uint64(w.in.held) + w.window }

// Datagrams is what is to be sent now: datagrams of size bytes, the last of which may be shorter. Sent says how much was.
func (w *Wire) Datagrams(now clock.Time) (b []byte, size int) {
	if len(w.out) == 0 {
		w.bare(now)
	}
	return w.out[w.sent:], w.size
}

// bare makes a datagram without payload where one is due.
func (w *Wire) bare(now clock.Time) {
	asks := !now.Before(w.ask)
	switch {
	case w.ended:
		return
	case len(w.says) > 0 && !now.Before(w.again):
		w.begin(kindMessage)
		w.out = binary.LittleEndian.AppendUint32(w.out, w.number)
		w.out = append(w.out, w.says[0]...)
		w.again = now.Add(sayAgain)
	case asks, w.answer, w.grant()-w.told >= w.window/4, now.Sub(w.spoke) >= aliveEvery:
		w.begin(kindFrames)
	}
	w.closed = len(w.out) > 0
	if asks {
		w.asks = min(2*w.asks, askMost)
		w.ask = now.Add(w.asks)
	}
}

// Sent tells how many bytes of Datagrams were sent.
func (w *Wire) Sent(now clock.Time, n int) {
	w.spoke = now
	if w.sent += n; w.sent >= len(w.out) {
		w.out, w.sent, w.head, w.closed = w.out[:0], 0, 0, false
	}
}

// Say puts a message behind those that are to be said; false: too many wait.
func (w *Wire) Say(message []byte) bool {
	if len(w.says) == mostSaid || len(message) > MaxMessage {
		return false
	}
	if len(w.says) == 0 {
		w.again = 0
	}
	w.says = append(w.says, message)
	return true
}

// Saying tells whether a message has not been heard yet.
func (w *Wire) Saying() bool { return len(w.says) > 0 }

// Bye is the datagram that ends the session.
func (w *Wire) Bye() []byte {
	w.ended = true
	b := make([]byte, headerLen)
	(&header{kind: kindBye, first: noFrame, session: w.session}).put(b)
	return b
}

// Take takes a datagram of the session. A message that came with it is returned. The error is errCredits or a *messageError: the
// session ends.
func (w *Wire) Take(now clock.Time, b []byte) (message []byte, err error) {
	h, payload, err := parseHeader(b)
	if err != nil {
		return nil, err
	}
	w.listened = now
	if h.limit > w.limit {
		w.limit, w.ask = h.limit, clock.Never
	}
	if len(w.says) > 0 && h.heard == w.number {
		w.says[0] = nil
		w.says, w.number, w.again = w.says[1:], w.number+1, 0
	}
	if h.flags&flagAnswer != 0 {
		w.answer = true
	}
	switch h.kind {
	case kindBye:
		w.ended = true
		return nil, nil
	case kindMessage:
		if message, err = w.hear(payload); err != nil {
			return nil, err
		}
		h.first, payload = noFrame, nil
	}
	return message, w.advance(&h, payload)
}

// hear takes a message, which may have come before.
func (w *Wire) hear(b []byte) ([]byte, error) {
	if len(b) < 4 || len(b) > 4+MaxMessage {
		return nil, &messageError{"a datagram has no message in it"}
	}
	w.answer = true
	if binary.LittleEndian.Uint32(b) != w.heard+1 {
		return nil, nil
	}
	w.heard++
	return b[4:], nil
}

// advance takes a piece of the stream. What comes behind its place is dropped: a link keeps the order.
func (w *Wire) advance(h *header, payload []byte) error {
	end := h.position + uint64(len(payload))
	switch {
	case int64(h.position-w.expected) < 0:
		w.late++
		return nil
	case end-w.expected > w.grant()-w.expected:
		return errCredits
	case h.position != w.expected:
		w.lost++
		w.give()
		w.expected = h.position
	case len(payload) > 0 && !w.skips && !w.begins(h.first, len(payload)):
		w.damaged++
		w.give()
	}
	w.expected = end
	if w.skips {
		if h.first == noFrame {
			return nil
		}
		payload, w.skips = payload[h.first:], false
	}
	if !w.in.fill(payload) {
		w.damaged++
		w.give()
	}
	return nil
}

// give gives up the frame that is coming, and what follows until another begins.
func (w *Wire) give() {
	w.in.abandon()
	w.skips = true
}

// begins tells whether the first frame of a payload can begin there, behind what belongs to the one that is coming.
func (w *Wire) begins(first uint16, n int) bool {
	switch rest := w.in.coming() - w.in.have; {
	case w.in.have == 0:
		return first == 0
	case w.in.have < 2: // its length is not known yet
		return true
	case rest < n:
		return int(first) == rest
	}
	return first == noFrame
}

// Next is the next frame that has come, from LRH to ICRC; nil: there is none. It may be used until Release. Drop goes on
// to the one behind it. Frames whose variant CRC is wrong are left out.
func (w *Wire) Next() []byte {
	for {
		b := w.in.peek()
		if b == nil {
			return nil
		}
		n := len(b) - ib.VCRCLen
		if Right(b[:n], b[n:]) {
			return b[:n:n]
		}
		w.damaged++
		w.in.take()
	}
}

// Drop takes the frame that Next has shown.
func (w *Wire) Drop() { w.in.take() }

// Release gives the room of the frames that were taken back to the other end.
func (w *Wire) Release() { w.in.release() }

// Lost is how many times part of the stream was missing or damaged, since it was last asked for.
func (w *Wire) Lost() uint64 {
	n := w.lost + w.damaged
	w.lost, w.damaged = 0, 0
	return n
}

// Over tells whether the session has ended: the other end says so, or nothing at all for too long.
func (w *Wire) Over(now clock.Time) bool { return w.ended || now.Sub(w.listened) >= silence }

// Deadline is when Datagrams or Over has something to say by itself.
func (w *Wire) Deadline() clock.Time {
	due := clock.Min(w.spoke.Add(aliveEvery), w.listened.Add(silence))
	if len(w.says) > 0 {
		due = clock.Min(due, w.again)
	}
	return clock.Min(due, w.ask)
}
