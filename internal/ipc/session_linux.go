package ipc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/reach"
)

var (
	errStopping = errors.New("the driver is stopping")
	errRefused  = errors.New("too many programs are attached")
)

// session is the driver's side of one attached program.
type session struct {
	server  *Server
	conn    *net.UnixConn
	out     *writer
	from    *senders // from the answer to hello on
	refused bool

	peer   peer
	name   string
	path   uint32
	vm     *reach.ProcessVM
	copier *reach.Copier
	client Session

	id       uint32
	direct   *neighbour // nil: the program takes no part in the direct path
	trackd   bool       // the program asked for tracks
	tracks   []byte     // their memory
	track    *track     // from the program
	vigil    vigil
	closing  sync.Once // the program does not read any more
	segments segments
	arenas   arenas
	passing  sync.Mutex // of arenas: no answer overtakes one

	ctx      context.Context
	promptly context.Context // of commands that must not wait
	cancel   context.CancelCauseFunc

	mu       sync.Mutex
	inFlight map[uint64]context.CancelFunc
	slots    chan struct{}
	requests sync.WaitGroup
	channels sync.WaitGroup // those who write to channels

	credits *credits
	news    [maxPush]command.Event // under the baton
}

func newSession(s *Server, c *net.UnixConn) *session {
	n := &session{
		server: s, conn: c,
		out:      newWriter(c, s.cfg.WriteTimeout),
		segments: segments{list: map[uint32]*segment{}, maxBytes: s.cfg.SegmentBytes, maxCount: s.cfg.MaxSegments, all: &s.segments},
		inFlight: map[uint64]context.CancelFunc{},
		slots:    make(chan struct{}, maxInFlight),
		credits:  newCredits(),
	}
	n.arenas.list = map[uint32]*sharedArena{}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.promptly = device.Promptly(n.ctx)
	return n
}

// end disconnects the program; the first cause is the one that it is told.
func (n *session) end(cause error) {
	n.cancel(cause)
	n.out.hurry()
	_ = n.conn.SetReadDeadline(time.Unix(1, 0))
}

// run serves the program until its stream ends, and leaves nothing of it behind.
func (n *session) run() {
	log := n.server.cfg.Log
	err := n.hello()
	attached := err == nil
	if attached {
		log.Info("program attached", "client", n.name, "pid", n.peer.PID, "uid", n.peer.UID, "memory", reach.PathName(n.path))
		err = n.serve()
	}
	if cause := context.Cause(n.ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errGoodbye) {
		err = nil
	}
	switch {
	case err == nil, errors.Is(err, errEOF):
		log.Info("program detached", "client", n.name, "pid", n.peer.PID)
	default:
		log.Warn("program disconnected", "client", n.name, "pid", n.peer.PID, "cause", err)
		n.sayGoodbye(err)
	}
	n.teardown()
	if tell := n.server.cfg.Ended; tell != nil && attached {
		tell(Departure{n.name, n.peer.PID, n.peer.UID, err})
	}
}

// reach implements device.ClientConfig.Reach.
func (n *session) reach(r command.RegisterMemory) (device.Reached, error) {
	if r.Segment != 0 {
		return n.segments.reach(r)
	}
	if n.vm != nil {
		return n.vm.Reach(r)
	}
	return n.copier.Reach(r)
}

// serve handles frames until the stream ends. It reads with room for the sender's
// credentials alone, so the kernel closes descriptors that a program sends.
func (n *session) serve() error {
	if err := n.sendArenas(); err != nil {
		return n.unread(err)
	}
	if err := n.sendTracks(); err != nil {
		return n.unread(err)
	}
	var pumps sync.WaitGroup
	pumps.Add(1)
	go func() { defer pumps.Done(); n.pushEvents() }()
	if n.direct != nil {
		pumps.Add(1)
		go func() { defer pumps.Done(); n.direct.pump() }()
	}
	if n.copier != nil {
		pumps.Add(1)
		go func() { defer pumps.Done(); n.watchCopier() }()
	}
	err := n.read()
	if n.vm != nil {
		n.vm.End()
	}
	n.cancel(err)
	pumps.Wait()
	n.requests.Wait()
	return err
}

func (n *session) read() error {
	var buf []byte
	in := bufio.NewReaderSize(n.from, 16<<10)
	for {
		if err := n.serveTrack(in, &buf); err != nil {
			return err
		}
		if in.Buffered() < headerSize {
			if err := n.out.flush(); err != nil { // nothing more is at hand to be answered along
				n.failed(err)
			}
		}
		h, body, err := readFrame(in, &buf, maxRequest)
		if errors.Is(err, unix.ECONNRESET) || errors.Is(err, os.ErrDeadlineExceeded) { // it ended before it had read everything
			err = errEOF
		}
		if err != nil {
			return err
		}
		if h.Op == opMoved && h.Flags == 0 {
			err = n.moved(h, body, n.from.last)
		} else {
			err = n.frame(h, body)
		}
		if err != nil {
			return err
		}
	}
}

func (n *session) frame(h header, body []byte) error {
	if h.Flags != 0 {
		return fmt.Errorf("%w: flags %#x in a request", errFrame, h.Flags)
	}
	switch h.Op {
	case opNudge:
		return nil
	case opCancel:
		n.mu.Lock()
		if cancel := n.inFlight[h.ID]; cancel != nil {
			cancel()
		}
		n.mu.Unlock()
		return nil
	case opGoodbye:
		return errGoodbye
	case opCredit:
		c, err := decode[credit](body)
		if err != nil {
			return err
		}
		return n.grant(c)
	case opAllocSegment, opFreeSegment, opMapSegment, opCreateChannel:
		return n.request(h, body, nil)
	}
	if h.Op >= opEnd || handlers[h.Op] == nil {
		return fmt.Errorf("%w: operation %d", errFrame, h.Op)
	}
	f := handlers[h.Op]
	if prompt[h.Op] {
		return n.answer(h, body, f)
	}
	return n.request(h, body, f)
}

// prompt are the commands that mostly wait for nobody. They are carried out in turn,
// without a goroutine each, and the answers to those that came together go out together.
var prompt = [opEnd]bool{
	opCreateQP: true, opQueryQP: true, opCMCreate: true, opCMConnect: true, opCMAccept: true, opCMEstablish: true, opCMQuery: true,
	opModifyQP: true, opDestroy: true,
}

// answer does a prompt request. One that has to wait is started as others are.
func (n *session) answer(h header, body []byte, f handler) error {
	if h.ID == unanswered && h.Op == opCMEstablish {
		if _, err := f(n.ctx, n.client, body); errors.Is(err, errFrame) {
			return err
		}
		return nil // an event says what keeps a connection from being established
	}
	n.mu.Lock()
	used := h.ID == unanswered || n.inFlight[h.ID] != nil
	n.mu.Unlock()
	if used {
		return fmt.Errorf("%w: request id %d is 0 or in use", errFrame, h.ID)
	}
	reply, err := f(n.promptly, n.client, body)
	if errors.Is(err, device.ErrWaits) {
		return n.request(h, body, f)
	}
	flags := uint16(flagResponse)
	if errors.Is(err, errFrame) {
		return err
	} else if err != nil {
		flags, reply = flagResponse|flagError, encodeError(err)
	} else if err := n.sendArenas(); err != nil {
		n.failed(err)
		return nil
	}
	if err := n.out.later(h.Op, flags, h.ID, reply); err != nil {
		n.failed(err)
	}
	return nil
}

func (n *session) grant(c credit) error {
	if have := n.credits.grant(c.Events); have > eventCredits {
		return fmt.Errorf("%w: event credits %d: allowed: up to %d in all", errFrame, have, eventCredits)
	}
	return nil
}

// request starts a request. With as many unanswered as are allowed it waits: the
// stream is not read meanwhile.
func (n *session) request(h header, body []byte, f handler) error {
	if err := n.slot(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(n.ctx)
	n.mu.Lock()
	if h.ID == 0 || n.inFlight[h.ID] != nil {
		n.mu.Unlock()
		cancel()
		return fmt.Errorf("%w: request id %d is 0 or in use", errFrame, h.ID)
	}
	n.inFlight[h.ID] = cancel
	n.mu.Unlock()
	body = append([]byte(nil), body...)
	n.requests.Add(1)
	go func() {
		defer n.requests.Done()
		err := n.carryOut(ctx, h, body, f)
		cancel()
		if err != nil {
			n.failed(err)
		}
	}()
	return nil
}

// slot waits until a further request may be without an answer. The program is told of the answers that
// there are before.
func (n *session) slot() error {
	select {
	case n.slots <- struct{}{}:
		return nil
	default:
	}
	if err := n.out.flush(); err != nil {
		n.failed(err)
	}
	select {
	case n.slots <- struct{}{}:
		return nil
	case <-n.ctx.Done():
		return context.Cause(n.ctx)
	}
}

// carryOut does a request and answers it. Its error ends the session.
func (n *session) carryOut(ctx context.Context, h header, body []byte, f handler) error {
	var reply []byte
	var err error
	var fds []int
	switch h.Op {
	case opAllocSegment:
		reply, fds, err = n.allocSegment(body)
	case opFreeSegment:
		reply, err = nil, n.freeSegment(body)
	case opMapSegment:
		reply, fds, err = n.mapSegment(body)
	case opCreateChannel:
		reply, fds, err = n.createChannel(ctx, body)
	default:
		reply, err = f(ctx, n.client, body)
	}
	for _, fd := range fds {
		defer unix.Close(fd)
	}
	if errors.Is(err, errFrame) {
		return err
	}
	// The id is free before the answer is out: its reader may use it again.
	n.mu.Lock()
	delete(n.inFlight, h.ID)
	n.mu.Unlock()
	defer func() { <-n.slots }()
	if err != nil {
		return n.out.send(h.Op, flagResponse|flagError, h.ID, encodeError(err))
	}
	if err := n.sendArenas(); err != nil {
		return err
	}
	return n.out.send(h.Op, flagResponse, h.ID, reply, fds...)
}

func (n *session) allocSegment(body []byte) ([]byte, []int, error) {
	q, err := decode[segmentArgs](body)
	if err != nil {
		return nil, nil, err
	}
	id, fd, err := n.segments.alloc(q.Size)
	if err != nil {
		return nil, nil, err
	}
	return encode(segmentReply{Number: id, Size: q.Size}), []int{fd}, nil
}

func (n *session) freeSegment(body []byte) error {
	q, err := decode[handleArgs](body)
	if err != nil {
		return err
	}
	return n.segments.free(uint32(q.Handle))
}

// failed ends the session for a request or a write that failed. A program that closed its
// stream may have said goodbye before, and only what it sent says so: that is read first.
func (n *session) failed(err error) {
	if err = n.unread(err); !errors.Is(err, errEOF) {
		n.end(err)
		return
	}
	n.closing.Do(func() { _ = n.conn.SetReadDeadline(time.Now().Add(endTimeout)) })
}

// unread names the cause of a failed write.
func (n *session) unread(err error) error {
	if errors.Is(err, errFrame) {
		return err
	}
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return errEOF
	}
	return fmt.Errorf("the program does not read its stream: %w", err)
}

// watchCopier disconnects a program whose copier hangs.
func (n *session) watchCopier() {
	d := n.server.cfg.CopierTimeout
	tick := time.NewTicker(max(d/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-n.ctx.Done():
			n.copier.End()
			n.server.wakeLoop()
			return
		case now := <-tick.C:
			if n.copier.Dead() || n.copier.Expire(now, d) {
				n.copier.End()
				n.server.wakeLoop()
				n.end(fmt.Errorf("the program's copier did not answer within %v", d))
				return
			}
		}
	}
}

// sendArenas passes the arenas that the program has not seen. It runs before
// every answer, so that the program has an arena before it learns of a ring in it.
func (n *session) sendArenas() error {
	n.passing.Lock()
	defer n.passing.Unlock()
	for _, a := range n.arenas.unsent() {
		err := n.out.send(opArena, 0, 0, encode(arenaBody{ID: a.id, Size: uint64(len(a.mem))}), a.fd)
		a.sent()
		if err != nil {
			return err
		}
	}
	return nil
}

// sayGoodbye tells the program why it is disconnected, if it listens.
func (n *session) sayGoodbye(err error) {
	g := goodbye{Code: asError(err).Code}
	if errors.Is(err, errStopping) {
		g.Code = command.Removed
	}
	if errors.Is(err, errFrame) {
		g.Code = command.Invalid
	}
	g.Length = uint32(copy(g.Reason[:], err.Error()))
	n.out.hurry()
	_ = n.out.stream(opGoodbye, 0, 0, encode(g))
}

// teardown leaves nothing of the program behind.
func (n *session) teardown() {
	n.cancel(errEOF)
	if n.client != nil {
		if err := n.client.Close(); err != nil {
			n.server.cfg.Log.Warn("closing a program's objects", "client", n.name, "cause", err)
		}
	}
	n.channels.Wait()
	if n.direct != nil {
		n.direct.leave()
	}
	n.segments.closeAll()
	n.arenas.closeAll()
	n.closeTracks()
	if n.copier != nil {
		n.copier.Close()
	}
	n.conn.Close()
}
