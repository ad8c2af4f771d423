package stream

import (
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/wait"
)

// Writer writes whole frames to a stream. A reader that does not read for longer than timeout makes the
// stream fail.
//
// One goroutine at a time writes. What others send meanwhile is included in its next write.
type Writer struct {
	mu      sync.Mutex
	turn    sync.Cond // with mu: a write has ended
	conn    *net.UnixConn
	out     putter
	timeout time.Duration // 0: none
	// Patience is how long to wait for a full track if there is no timeout; 0: without limit.
	Patience time.Duration
	ending   atomic.Bool
	buf      []byte // frames not written yet
	spare    []byte // buffer of the previous write
	writing  bool
	soon     bool // somebody is about to write
	err      error

	track  *Track // carries frames that are not long and have no descriptors; nil: none
	passed uint32
	owed   int // frames in the track for which the sleeping consumer is still to be woken
}

// NewWriter returns a writer to conn; timeout 0: none.
func NewWriter(conn *net.UnixConn, timeout time.Duration) *Writer {
	w := &Writer{conn: conn, out: putter{conn: conn}, timeout: timeout}
	w.turn.L = &w.mu
	return w
}

// EndTimeout is how long a stream that is about to be closed may remain unread.
const EndTimeout = 100 * time.Millisecond

// Hurry makes the current and later writes end soon.
func (w *Writer) Hurry() {
	w.ending.Store(true)
	_ = w.conn.SetWriteDeadline(time.Now().Add(EndTimeout))
}

// Send writes a frame with descriptors, which the caller keeps.
func (w *Writer) Send(op proto.Opcode, flags uint16, id uint64, body []byte, fds ...int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sendLocked(op, flags, id, body, fds...)
}

func (w *Writer) sendLocked(op proto.Opcode, flags uint16, id uint64, body []byte, fds ...int) error {
	if w.track != nil && len(fds) == 0 && proto.HeaderSize+len(body) <= longFrame {
		return w.trackLocked(op, flags, id, body)
	}
	return w.streamLocked(op, flags, id, body, fds...)
}

// Stream is send for frames that keep their order on the stream even if there is a track.
func (w *Writer) Stream(op proto.Opcode, flags uint16, id uint64, body []byte, fds ...int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.streamLocked(op, flags, id, body, fds...)
}

func (w *Writer) streamLocked(op proto.Opcode, flags uint16, id uint64, body []byte, fds ...int) error {
	w.await()
	if w.err != nil {
		return w.err
	}
	flags |= uint16(len(fds)) << proto.FlagFDShift
	w.buf = proto.AppendFrame(w.buf, op, flags, id, body)
	if err := w.writeLocked(fds); err != nil || w.track == nil {
		return err
	}
	w.passed++
	atomic.StoreUint32(w.track.passed, w.passed)
	return nil
}

// trackLocked puts a frame into the track, and wakes the consumer if it sleeps.
func (w *Writer) trackLocked(op proto.Opcode, flags uint16, id uint64, body []byte) error {
	if err := w.putLocked(op, flags, id, body); err != nil {
		return err
	}
	w.owed++
	return w.flushLocked()
}

// putLocked puts a frame into the track. While the track is full it releases the lock.
func (w *Writer) putLocked(op proto.Opcode, flags uint16, id uint64, body []byte) error {
	var since time.Time
	pause := wait.Ask(wait.Room)
	for {
		if w.err != nil || w.track == nil {
			return cmp.Or(w.err, io.EOF)
		}
		ok, err := w.track.Put(op, flags, id, body)
		if err != nil {
			w.track = nil // the stream can still tell the reason
			return err
		}
		if ok {
			return nil
		}
		if since.IsZero() {
			since = time.Now()
			if err := w.flushLocked(); err != nil { // wake the consumer first, or it will not take anything
				return err
			}
			continue
		}
		most := cmp.Or(w.timeout, w.Patience)
		if late := time.Since(since); most > 0 && late > most || w.ending.Load() && late > EndTimeout {
			w.err = os.ErrDeadlineExceeded
			return w.err
		}
		w.mu.Unlock()
		time.Sleep(pause.Next())
		gone := hungUp(w.conn)
		w.mu.Lock()
		if gone {
			w.err = io.EOF
			return w.err
		}
	}
}

// hungUp reports whether the other side has closed a stream, even if something is left to be read.
func hungUp(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	p := []unix.PollFd{{}}
	err = raw.Control(func(fd uintptr) {
		p[0].Fd = int32(fd)
		_, _ = unix.Poll(p, 0)
	})
	return err != nil || p[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// Offer puts a frame into the track if that is possible without waiting.
func (w *Writer) Offer(op proto.Opcode, body []byte) bool {
	return w.OfferMade(op, len(body), func(int) []byte { return body })
}

// OfferMade is offer with a body that is made only then, of at least least bytes and at most what fits. An
// empty body is not sent.
func (w *Writer) OfferMade(op proto.Opcode, least int, body func(most int) []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.track == nil || w.err != nil {
		return false
	}
	most := min(w.track.room(), longFrame) - proto.HeaderSize
	if most < least {
		return false
	}
	b := body(most)
	if len(b) == 0 {
		return true
	}
	if _, err := w.track.Put(op, 0, 0, b); err != nil {
		return false // the next sender reports it
	}
	w.wakeUp()
	return true
}

// wakeUp wakes a consumer that sleeps over the track, without waiting.
func (w *Writer) wakeUp() {
	if !w.track.Wakes() {
		return
	}
	w.buf = proto.AppendFrame(w.buf, proto.OpWakeUp, 0, 0, nil)
	if w.writing {
		return // it is included in that write
	}
	if !w.out.try(&w.buf) {
		go func() { _ = w.Flush() }()
	}
}

// UseTrack makes frames use a track from now on; nil: only the stream, as before.
func (w *Writer) UseTrack(l *Track) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.track = l
}

// maxLater is how many bytes of frames may wait to be sent together, maxOwed how many frames of a track
// may be put before a sleeping consumer is woken.
const (
	maxLater = 16 << 10
	maxOwed  = 16
)

// Later sends a frame with the next one, or with flush.
func (w *Writer) Later(op proto.Opcode, flags uint16, id uint64, body []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.laterLocked(op, flags, id, body)
}

func (w *Writer) laterLocked(op proto.Opcode, flags uint16, id uint64, body []byte) error {
	if w.track != nil {
		if proto.HeaderSize+len(body) > longFrame {
			return w.streamLocked(op, flags, id, body)
		}
		if err := w.putLocked(op, flags, id, body); err != nil {
			return err
		}
		if w.owed++; w.owed < maxOwed {
			return nil
		}
		return w.flushLocked()
	}
	if len(w.buf) >= maxLater {
		if w.await(); len(w.buf) >= maxLater && w.err == nil {
			_ = w.writeLocked(nil)
		}
	}
	if w.err == nil {
		w.buf = proto.AppendFrame(w.buf, op, flags, id, body)
	}
	return w.err
}

// Along sends a frame together with those that other goroutines are about to send, which may precede it.
// An error after along has returned ends the stream.
func (w *Writer) Along(op proto.Opcode, id uint64, body []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.track != nil {
		return w.sendLocked(op, 0, id, body)
	}
	if err := w.laterLocked(op, 0, id, body); err != nil || w.soon || w.writing || len(w.buf) == 0 {
		return err
	}
	w.soon = true
	w.mu.Unlock()
	wait.YieldGoroutines()
	w.mu.Lock()
	w.soon = false
	return w.flushLocked()
}

// Flush sends the waiting frames.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flushLocked()
}

func (w *Writer) flushLocked() error {
	if w.owed > 0 && w.track != nil {
		w.owed = 0
		if w.track.Wakes() {
			w.buf = proto.AppendFrame(w.buf, proto.OpWakeUp, 0, 0, nil)
		}
	}
	if w.writing || w.err != nil || len(w.buf) == 0 {
		return w.err
	}
	return w.writeLocked(nil)
}

// await returns when nobody writes.
func (w *Writer) await() {
	for w.writing {
		w.turn.Wait()
	}
}

// writeLocked writes the waiting frames, and those that are added meanwhile: it releases the lock while
// writing. Nobody else may be writing.
func (w *Writer) writeLocked(fds []int) error {
	w.writing = true
	for len(w.buf) > 0 && w.err == nil {
		frames := w.buf
		w.buf, w.spare = w.spare[:0], nil
		w.mu.Unlock()
		err := w.write(frames, fds)
		w.mu.Lock()
		if w.err = err; err == nil && cap(frames) <= proto.MaxFrame/4 {
			w.spare = frames
		}
		fds = nil
	}
	w.writing = false
	w.turn.Broadcast()
	return w.err
}

// write writes frames. After an error they may have been sent in part: the stream is unusable.
func (w *Writer) write(frames []byte, fds []int) error {
	if w.timeout > 0 && !w.ending.Load() {
		_ = w.conn.SetWriteDeadline(time.Now().Add(w.timeout))
	}
	if w.ending.Load() { // even if it began just before the line above
		_ = w.conn.SetWriteDeadline(time.Now().Add(EndTimeout))
	}
	if len(fds) > 0 {
		n, err := w.pass(frames, fds)
		if err != nil {
			return err
		}
		frames = frames[n:]
	}
	if len(frames) == 0 {
		return nil
	}
	return w.out.write(frames)
}

// pass sends frames with descriptors. The system limits how many of a user's descriptors are on their way
// (RLIMIT_NOFILE, ETOOMANYREFS): programs that do not read theirs delay this one, and do not end it.
func (w *Writer) pass(frames []byte, fds []int) (int, error) {
	rights := unix.UnixRights(fds...)
	pause := wait.Ask(wait.Passed)
	for began := time.Now(); ; time.Sleep(pause.Next()) {
		n, _, err := w.conn.WriteMsgUnix(frames, rights, nil)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			n, err = w.out.passLate(frames, rights, err)
		}
		if !errors.Is(err, unix.ETOOMANYREFS) || w.ending.Load() || time.Since(began) > w.timeout {
			return n, err
		}
	}
}
