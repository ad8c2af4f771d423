package cable

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Config says where an adapter is plugged in.
type Config struct {
	Hello
	// Socket is the path of the fabric's socket.
	Socket string
	// UDP, in place of Socket, is where the fabric takes cables over UDP, as ParseUDP reads it; Key is what both must know, where the fabric asks
	// for it.
	UDP string
	Key []byte
	// Notify, if any, is called when the port has changed, by a goroutine of the link. It must not call the link.
	Notify func()
	// Tell, if any, is called with nil when the adapter has been plugged in, and with the reason when it cannot be: that the fabric is not to be
	// found once until it is, that it refuses once for each reason. It must not call the link.
	Tell func(error)
	// Portable has the UDP socket as every system has it, also where the system could do better.
	Portable bool
}

// dial plugs an adapter in. The port is how it is at first.
func dial(cfg *Config) (session, link.Port, error) {
	if cfg.UDP != "" {
		return dialUDP(cfg)
	}
	return dialLocal(cfg)
}

// ErrNotHere says that the system has no cables of the kind.
var ErrNotHere = errors.New("not there on this system")

// again is after how long a link that has no fabric looks for it again.
const again = 200 * time.Millisecond

// Link is an adapter's end of a cable to another process, on this host or over UDP. It implements link.InfiniBand. While the fabric does not run the port
// is down, and the link waits for it to come back.
type Link struct {
	cfg     Config
	gather  gather
	changes atomic.Uint64
	port    atomic.Pointer[link.Port]
	done    chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	out     bool          // it is not to be plugged in
	told    string        // by what reason it cannot be plugged in, empty where it is or nothing has been told
	poke    chan struct{} // out has changed
	session session       // nil: the fabric does not run
	stats   link.Stats
}

var _ link.InfiniBand = (*Link)(nil)

// session is a link that is plugged in. It is used with the link's lock held.
type session interface {
	// send takes a prefix of frames.
	send(frames []frame.Out) (int, error)
	// receive hands out frames that have come, until the next call; where it could hand out more the descriptor tells of others.
	receive(in []frame.In) (int, error)
	// wrong is how many frames came damaged since it was last asked.
	wrong() uint64
	// control reads messages beside the frames until the session ends, without the lock, and gives them to port.
	control(port func(link.Port)) error
	// tell sends a message beside the frames.
	tell(b []byte)
	// descriptor becomes readable when there is something; -1: the link's Notify is called.
	descriptor() int
	close()
}

// Open plugs an adapter in. Where the fabric does not run the link waits for it. The error is a *RefusedError where it runs
// and does not let the adapter in, a *messageError where it is none, or ErrNotHere.
func Open(cfg Config) (*Link, error) {
	if cfg.Notify == nil {
		cfg.Notify = func() {}
	}
	if cfg.Tell == nil {
		cfg.Tell = func(error) {}
	}
	l := &Link{cfg: cfg, done: make(chan struct{}), poke: make(chan struct{}, 1)}
	l.port.Store(&link.Port{State: mad.PortDown, Physical: mad.PhysicalPolling, MTU: ib.MTU4096, MaxMTU: ib.MTU4096})
	l.changes.Store(1)
	if err := l.gather.open(); err != nil {
		return nil, err
	}
	s, first, err := dial(&cfg)
	var refused *RefusedError
	var wrong *messageError
	if errors.As(err, &refused) || errors.As(err, &wrong) || errors.Is(err, ErrNotHere) {
		l.gather.close()
		return nil, err
	}
	if err == nil {
		l.plugIn(s, first)
	} else {
		l.unable(err)
	}
	l.ended.Go(func() { l.run(s) })
	return l, nil
}

// run keeps the link plugged in until it is closed.
func (l *Link) run(s session) {
	for {
		if s != nil {
			_ = s.control(l.changed)
			l.pullOut(s)
		}
		var first link.Port
		for s = nil; s == nil; {
			select {
			case <-l.done:
				return
			case <-l.poke:
			case <-time.After(again):
			}
			if l.isOut() {
				continue
			}
			var err error
			if s, first, err = dial(&l.cfg); err != nil {
				l.unable(err)
				s = nil
			}
		}
		if !l.plugIn(s, first) {
			return
		}
	}
}

// plugIn makes a session the link's; false: the link is closed.
func (l *Link) plugIn(s session, port link.Port) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		s.close()
		return false
	}
	l.session = s
	if l.out {
		s.tell(nil)
	}
	l.gather.add(s.descriptor())
	l.told = ""
	l.cfg.Tell(nil)
	l.changed(port)
	return true
}

// unable tells why the adapter cannot be plugged in, where that is news.
func (l *Link) unable(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	reason := "not there"
	var refused *RefusedError
	if errors.As(err, &refused) {
		reason = refused.Why
	}
	if l.told != reason {
		l.told = reason
		l.cfg.Tell(err)
	}
}

func (l *Link) isOut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out
}

// SetPlugged pulls the cable out and plugs it in again, as for an adapter that is disabled and enabled.
func (l *Link) SetPlugged(in bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = !in
	if l.out {
		l.fail()
	}
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

func (l *Link) pullOut(s session) {
	l.mu.Lock()
	if l.session == s {
		l.gather.remove(s.descriptor())
		l.session = nil
	}
	s.close()
	l.mu.Unlock()
	p := *l.port.Load()
	p.State, p.Physical = mad.PortDown, mad.PhysicalPolling
	l.changed(p)
}

func (l *Link) changed(p link.Port) {
	l.port.Store(&p)
	l.changes.Add(1)
	l.cfg.Notify()
}

// Close implements link.Link: the cable is pulled out, and the fabric takes the port down.
func (l *Link) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	if l.session != nil {
		l.session.tell(nil) // ends control
	}
	close(l.done)
	l.mu.Unlock()
	l.ended.Wait()
	l.gather.close()
	return nil
}

// Capabilities implements link.Link.
func (l *Link) Capabilities() link.Capabilities {
	return link.Capabilities{MaxSegments: 1, Raw: true, InfiniBand: true, MTU: ib.MTU4096.Bytes()}
}

// Prepare implements link.Link: there is nothing that a cable has to know.
func (l *Link) Prepare(r *frame.Route) error {
	r.Prepared = true
	return nil
}

// Send implements link.Link. Where the fabric does not run frames are lost, as on a link that is down.
func (l *Link) Send(frames []frame.Out) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, net.ErrClosed
	}
	n := len(frames)
	if l.session == nil {
		l.stats.SendErrors += uint64(n)
		return n, nil
	}
	n, err := l.session.send(frames)
	if err != nil {
		l.fail()
		return len(frames), nil
	}
	l.stats.SentPackets += uint64(n)
	l.stats.SentBursts += uint64(n)
	for i := range frames[:n] {
		l.stats.SentBytes += uint64(frames[i].Len())
	}
	if n < len(frames) {
		l.stats.SendBlocked++
	}
	return n, nil
}

// fail ends a session whose other end breaks the rules. The link is locked.
func (l *Link) fail() {
	if l.session != nil {
		l.gather.remove(l.session.descriptor())
		l.session.tell(nil)
		l.session = nil
	}
}

// Receive implements link.Link.
func (l *Link) Receive(in []frame.In) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, net.ErrClosed
	}
	if l.session == nil {
		return 0, nil
	}
	n, err := l.session.receive(in)
	l.stats.ReceiveTruncated += l.session.wrong()
	if err != nil {
		l.fail()
		return n, nil
	}
	for i := range in[:n] {
		l.stats.ReceivedBytes += uint64(len(in[i].Data))
	}
	l.stats.ReceivedPackets += uint64(n)
	return n, nil
}

// Errors implements link.Link: a fabric tells nobody of packets that it drops.
func (l *Link) Errors([]link.Unreachable) int { return 0 }

// Descriptors implements link.Link.
func (l *Link) Descriptors() []int { return l.gather.descriptors() }

// Stats implements link.Link. Frames with a wrong variant CRC, and over UDP what was lost on the way, count as truncated.
func (l *Link) Stats() link.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// Changes implements link.InfiniBand.
func (l *Link) Changes() uint64 { return l.changes.Load() }

// Port implements link.InfiniBand.
func (l *Link) Port() link.Port { return *l.port.Load() }

// Violation implements link.InfiniBand.
func (l *Link) Violation(v link.Violation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil && !l.closed {
		l.session.tell(violationMessage(&v))
	}
}
