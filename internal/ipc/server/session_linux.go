package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/reach"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/os/peer"
	"github.com/softvpi/softvpi/internal/wait"
)

var (
	errStopping = errors.New("the driver is stopping")
)

// session is the driver's side of one attached program.
type session struct {
	server  *Server
	conn    *net.UnixConn
	out     *stream.Writer
	from    *senders // set once hello was answered
	refused error    // why the program is turned away; nil: it is not

	peer     peer.Process
	account  *budget.Account
	tenant   func() (uint32, error) // see Container.Function
	function *uint32                // what that has told; nil: the program sees all
	held     uint64                 // bytes that are taken from the account until the session has ended
	scarce   atomic.Bool            // the log says that descriptors are
	passed   func()                 // ends the turn of passing descriptors when the program has attached
	name     string
	path     command.MemoryPath
	vm       *reach.ProcessVM
	copier   *reach.Copier
	wakeup   wakeup
	client   Session

	id       uint32
	token    token         // under server.mu; zero until the program has asked for it
	direct   *neighbour    // nil: the program takes no part in the direct path
	trackd   bool          // the program requested tracks
	tracks   []byte        // the memory of the tracks
	track    *stream.Track // from the program
	spin     wait.Spinner  // while it is empty
	closing  sync.Once     // for a program that no longer reads
	segments segments
	arenas   arenas
	passing  sync.Mutex // for passing arenas: no answer may overtake one

	ctx      context.Context
	promptly context.Context // for commands that must not wait
	cancel   context.CancelCauseFunc

	mu       sync.Mutex
	inFlight map[uint64]context.CancelFunc
	slots    chan struct{}
	requests sync.WaitGroup
	channels sync.WaitGroup // goroutines that write to channels

	credits *credits
	news    [proto.MaxPush]command.Event // protected by the loop lock
}

func newSession(s *Server, c *net.UnixConn) *session {
	n := &session{
		server: s, conn: c,
		out:      stream.NewWriter(c, s.cfg.WriteTimeout),
		passed:   func() {},
		segments: segments{list: map[uint32]*segment{}, maxCount: s.cfg.MaxSegments},
		inFlight: map[uint64]context.CancelFunc{},
		slots:    make(chan struct{}, proto.MaxInFlight),
		credits:  newCredits(),
	}
	n.segments.ended.L = &n.segments.mu
	n.arenas.list = map[uint32]*sharedArena{}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.promptly = device.Promptly(n.ctx)
	return n
}

// end disconnects the program, which is told the first cause.
func (n *session) end(cause error) {
	n.cancel(cause)
	n.out.Hurry()
	_ = n.conn.SetReadDeadline(time.Unix(1, 0))
}

// run serves the program until its stream ends, and removes everything of it.
func (n *session) run() {
	log := n.server.cfg.Log
	err := n.hello()
	attached := err == nil
	defer func() { n.passed() }()
	if attached {
		log.Info("program attached", "client", n.name, "pid", n.peer.PID, "uid", n.peer.UID, "memory", n.path)
		err = n.serve()
	}
	if cause := context.Cause(n.ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errGoodbye) {
		err = nil
	}
	switch {
	case err == nil, errors.Is(err, io.EOF):
		log.Info("program detached", "client", n.name, "pid", n.peer.PID)
	default:
		if attached {
			log = n.server.cfg.Beside
		}
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

// serve handles frames until the stream ends. It reads with room for the sender's credentials only, so
// that the kernel closes descriptors that a program sends.
func (n *session) serve() error {
	if err := n.sendArenas(); err != nil {
		return n.unread(err)
	}
	if err := n.sendTracks(); err != nil {
		return n.unread(err)
	}
	n.passed() // what it got is closed
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
		if in.Buffered() < proto.HeaderSize {
			if err := n.out.Flush(); err != nil { // no more requests are buffered whose answers could be sent along
				n.failed(err)
			}
		}
		h, body, err := proto.ReadFrame(in, &buf, proto.MaxRequest)
		if errors.Is(err, unix.ECONNRESET) || errors.Is(err, os.ErrDeadlineExceeded) { // it ended before reading everything
			err = io.EOF
		}
		if err != nil {
			return err
		}
		if h.Op == proto.OpMoved && h.Flags == 0 {
			err = n.moved(h, body, n.from.last)
		} else {
			err = n.frame(h, body)
		}
		if err != nil {
			return err
		}
	}
}

func (n *session) frame(h proto.Header, body []byte) error {
	if h.Flags != 0 {
		return fmt.Errorf("%w: flags %#x in a request", proto.ErrFrame, h.Flags)
	}
	switch h.Op {
	case proto.OpWakeUp:
		return nil
	case proto.OpCancel:
		n.mu.Lock()
		if cancel := n.inFlight[h.ID]; cancel != nil {
			cancel()
		}
		n.mu.Unlock()
		return nil
	case proto.OpGoodbye:
		return errGoodbye
	case proto.OpCredit:
		c, err := proto.Decode[proto.Credit](body)
		if err != nil {
			return err
		}
		return n.grant(c)
	}
	if h.Op >= proto.OpEnd || handlers[h.Op] == nil && !slices.Contains(Shared, h.Op) {
		return fmt.Errorf("%w: operation %d", proto.ErrFrame, h.Op)
	}
	if prompt[h.Op] {
		return n.answer(h, body)
	}
	return n.request(h, body)
}

// failed ends the session after a failed request or write. A program that closed its stream may have said
// goodbye before, so what it sent is read first.
func (n *session) failed(err error) {
	if err = n.unread(err); !errors.Is(err, io.EOF) {
		n.end(err)
		return
	}
	n.closing.Do(func() { _ = n.conn.SetReadDeadline(time.Now().Add(stream.EndTimeout)) })
}

// unread returns the cause of a failed write.
func (n *session) unread(err error) error {
	if errors.Is(err, proto.ErrFrame) {
		return err
	}
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return io.EOF
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
			n.wakeup.wake()
			return
		case now := <-tick.C:
			if n.copier.Dead() || n.copier.Expire(now, d) {
				n.copier.End()
				n.wakeup.wake()
				n.end(fmt.Errorf("the program's copier did not answer within %v", d))
				return
			}
		}
	}
}

// sendArenas passes the arenas that the program has not received. It runs before every answer, so that the
// program has an arena before it learns of a ring in it.
func (n *session) sendArenas() error {
	n.passing.Lock()
	defer n.passing.Unlock()
	for _, a := range n.arenas.unsent() {
		err := n.out.Send(proto.OpArena, 0, 0, proto.Encode(proto.ArenaBody{ID: a.id, Size: uint64(len(a.mem))}), a.file.fd)
		a.sent()
		if err != nil {
			return err
		}
	}
	return nil
}

// sayGoodbye tells the program why it is disconnected, if it still reads.
func (n *session) sayGoodbye(err error) {
	g := proto.Goodbye{Code: proto.AsError(err).Code}
	if errors.Is(err, errStopping) {
		g.Code = command.Removed
	}
	if errors.Is(err, proto.ErrFrame) {
		g.Code = command.Invalid
	}
	g.Length = uint32(copy(g.Reason[:], err.Error()))
	n.out.Hurry()
	_ = n.out.Stream(proto.OpGoodbye, 0, 0, proto.Encode(g))
}

// teardown removes everything of the program.
func (n *session) teardown() {
	n.cancel(io.EOF)
	if n.client != nil {
		if err := n.client.Close(); err != nil {
			n.server.cfg.Log.Warn("closing a program's objects", "client", n.name, "cause", err)
		}
	}
	if n.vm != nil {
		n.vm.Close()
	}
	n.wakeup.close() // the loop has forgotten it with the client
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
	n.account.Give(budget.Memory, n.held)
	n.account.Give(budget.Descriptors, sessionFiles)
	n.account.Close()
}

// sessionBytes is what a program that is attached takes: the requests that it may have unanswered, each
// with a body, a stack and an answer, its buffers, and its first unread events.
const sessionBytes = proto.MaxInFlight*(proto.MaxRequest+8<<10) + 256<<10

// hold charges the program for memory that it has until its session ends.
func (n *session) hold(bytes int, what string) error {
	if err := n.account.Take(budget.Memory, uint64(bytes), what); err != nil {
		return err
	}
	n.held += uint64(bytes)
	return nil
}
