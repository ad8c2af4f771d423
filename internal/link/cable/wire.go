package cable

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// An end with nothing to send says after aliveEvery that it is alive; after silence without a word
	// from the other end the link is down. Time in which this end has not looked for longer than mostAway is no silence of the other's:
	// neither may have had a processor, and what the other has said may wait.
	aliveEvery = 250 * time.Millisecond
	silence    = 2 * time.Second
	mostAway   = 2 * aliveEvery
	// A sender without credits asks for them after askFirst, then at intervals that double up to askMost.
	askFirst = 5 * time.Millisecond
	askMost  = 100 * time.Millisecond
	// sayAgain is after how long an unacknowledged message is repeated.
	sayAgain = 50 * time.Millisecond
	// mostSaid is the maximum number of messages that wait.
	mostSaid = 16
	// outLen is how many bytes of datagrams are collected before they are sent: what Linux accepts at
	// once.
	outLen = 60 << 10

	minFrame = ib.LRHLen + ib.BTHLen + 4
)

// errCredits says that the other end of a cable has sent more than it had credits for.
var errCredits = errors.New("the other end of the cable sends more than it has credits for")

// Wire is one end of a cable over datagrams: it turns frames and messages into datagrams and back. It has
// no clock, no socket and no lock of its own.
type Wire struct {
	// Towards the other end.
	session  uint64 // by which the other end identifies the session
	size     int    // of a datagram, at most
	position uint64 // of the stream
	limit    uint64 // up to where the other end accepts it
	out      []byte // datagrams, all of size bytes except the last
	head     int    // where the last of them begins
	sent     int    // bytes of out already sent
	closed   bool   // out must be sent before more can be put in
	asks     time.Duration
	ask      clock.Time // when to ask for credits; clock.Never: there are some
	spoke    clock.Time

	// From the other end.
	window   uint64
	expected uint64 // position of the next byte
	told     uint64 // limit last told to the other end
	skips    bool   // skip the stream until a frame begins
	in       inbox
	listened clock.Time
	looked   clock.Time
	answer   bool // a datagram is due, whatever its content
	ended    bool

	// Messages: those to send, one at a time, and the last received.
	says   [][]byte
	number uint32 // of the first of says
	again  clock.Time
	heard  uint32

	lost, damaged, late uint64
}

// WireConfig is what the two ends have agreed on.
type WireConfig struct {
	Session uint64 // by which the other end identifies the session
	Size    int    // of a datagram, at most
	Limit   uint64 // granted by the other end: its window
	Window  int    // bytes that this end buffers
}

// NewWire starts a session.
func NewWire(c WireConfig, now clock.Time) *Wire {
	w := &Wire{
		session: c.Session, size: min(max(c.Size, minDatagram), MaxDatagram), limit: c.Limit, window: uint64(c.Window),
		told: uint64(c.Window),
		out:  make([]byte, 0, outLen+MaxDatagram), ask: clock.Never, spoke: now, listened: now, looked: now,
		number: 1, in: newInbox(c.Window),
	}
	return w
}

// Fits reports whether a frame of n bytes can be put in now. If credits are missing, that is so until the
// other end grants more.
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

// write appends to the stream.
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

// grant returns up to where the other end may send.
func (w *Wire) grant() uint64 { return w.expected - uint64(w.in.held) + w.window }

// Datagrams returns what to send now: datagrams of size bytes, the last of which may be shorter. Call Sent
// afterwards. A message is one datagram however long it is, as that of a port with many virtual ports: IP cuts it.
func (w *Wire) Datagrams(now clock.Time) (b []byte, size int) {
	if len(w.out) == 0 {
		w.bare(now)
	}
	if w.closed {
		return w.out[w.sent:], max(w.size, len(w.out))
	}
	return w.out[w.sent:], w.size
}

// bare creates a datagram without payload if one is due.
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

// Sent says how many bytes of Datagrams were sent.
func (w *Wire) Sent(now clock.Time, n int) {
	w.spoke = now
	if w.sent += n; w.sent >= len(w.out) {
		w.out, w.sent, w.head, w.closed = w.out[:0], 0, 0, false
	}
}

// Say queues a message; false: too many wait.
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

// Saying reports whether a message has not been acknowledged yet.
func (w *Wire) Saying() bool { return len(w.says) > 0 }

// Bye returns the datagram that ends the session.
func (w *Wire) Bye() []byte {
	w.ended = true
	b := make([]byte, headerLen)
	(&header{kind: kindBye, first: noFrame, session: w.session}).put(b)
	return b
}

// Take handles a datagram of the session and returns the message that came with it, if any. The error is
// errCredits or a *messageError and ends the session.
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

// hear handles a message, which may be a duplicate.
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

// advance handles a piece of the stream. A piece that arrives late is dropped: a link keeps the order.
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

// give drops the frame being received, and the stream until another frame begins.
func (w *Wire) give() {
	w.in.abandon()
	w.skips = true
}

// begins reports whether the first frame of a payload can begin there, after the rest of the current
// frame.
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

// Next returns the next frame received, from LRH to ICRC, or nil. It is valid until Release; Drop moves on
// to the next one. Frames with a wrong variant CRC are skipped.
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

// Drop takes the frame that Next returned.
func (w *Wire) Drop() { w.in.take() }

// Release returns the room of the frames taken to the other end.
func (w *Wire) Release() { w.in.release() }

// Lost returns how many times part of the stream was missing or damaged since the last call.
func (w *Wire) Lost() uint64 {
	n := w.lost + w.damaged
	w.lost, w.damaged = 0, 0
	return n
}

// Over reports whether the session has ended: the other end says so, or has been silent for too long while this one looked. It is for
// whoever has taken what had arrived, and asks again by Deadline at the latest.
func (w *Wire) Over(now clock.Time) bool {
	if away := now.Sub(w.looked); away > mostAway {
		w.listened = clock.Min(w.listened.Add(away-mostAway), now)
	}
	w.looked = now
	return w.ended || now.Sub(w.listened) >= silence
}

// Ended reports whether the other end says that the session has ended.
func (w *Wire) Ended() bool { return w.ended }

// Deadline returns when Datagrams or Over next has something to say by itself.
func (w *Wire) Deadline() clock.Time {
	due := clock.Min(w.spoke.Add(aliveEvery), w.listened.Add(silence))
	if len(w.says) > 0 {
		due = clock.Min(due, w.again)
	}
	return clock.Min(due, w.ask)
}
