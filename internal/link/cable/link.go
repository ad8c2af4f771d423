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

// Config says where to plug in an adapter.
type Config struct {
	Hello
	// Socket is the path of the fabric's socket.
	Socket string
	// UDP is used instead of Socket: where the fabric accepts cables over UDP, in the form that ParseUDP
	// reads. Key is the shared key, if the fabric asks for one.
	UDP string
	Key []byte
	// Notify, if any, is called when the port has changed, by a goroutine of the link. It must not call the link.
	Notify func()
	// Tell, if any, is called with nil when the adapter has been plugged in, and with the reason when it
	// cannot be: once if the fabric is not there, once for each reason if it refuses. It must not call the
	// link.
	Tell func(error)
	// Incident, if any, is called with each incident of which a fabric of Ethernet switches tells over UDP; every session begins with the
	// latest of those before. It must not block, and not call the link.
	Incident func(Incident)
	// Portable selects the portable UDP socket even if there is a better one for this system.
	Portable bool
}

// dial plugs an adapter in. The State is the first.
func dial(cfg *Config) (session, State, error) {
	if cfg.UDP != "" {
		return dialUDP(cfg)
	}
	return dialLocal(cfg)
}

// ErrNotHere says that the system does not support this kind of cable.
var ErrNotHere = errors.New("not there on this system")

// again is the interval at which a link without a fabric tries to connect.
const again = 200 * time.Millisecond

// Link is an adapter's end of a cable to another process, on this host or over UDP. It implements
// link.InfiniBand. While the fabric does not run the port is down, and the link waits for the fabric to
// return.
type Link struct {
	cfg     Config
	gather  gather
	changes atomic.Uint64
	state   atomic.Pointer[State]
	done    chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	out     bool          // it must stay unplugged
	told    string        // last reason given to Tell; empty if plugged in or nothing was told
	poke    chan struct{} // signals that out has changed
	session session       // nil: the fabric does not run
	pauses  []byte        // what the fabric is told of them; nil: nothing yet
	virtual []byte        // what the fabric is told of virtual ports; nil: there have been none
	stats   link.Stats
}

var (
	_ link.InfiniBand   = (*Link)(nil)
	_ link.VirtualPorts = (*Link)(nil)
)

// session is a link that is plugged in. The caller holds the link's lock.
type session interface {
	// send sends a prefix of frames and returns its length.
	send(frames []frame.Out) (int, error)
	// receive returns frames, valid until the next call; if there are more, the descriptor is or becomes
	// readable.
	receive(in []frame.In) (int, error)
	// wrong returns how many frames were damaged since the last call.
	wrong() uint64
	// control reads the other messages until the session ends, without the lock, and passes states on.
	control(state func(State)) error
	// tell sends a message; nil ends the session.
	tell(b []byte)
	// descriptor becomes readable when there is something to receive; -1: the link's Notify is called
	// instead.
	descriptor() int
	close()
}

// Open plugs an adapter in. If the fabric does not run, the link waits for it. The error is a
// *RefusedError if the fabric refuses the adapter, a *messageError if the other end is no fabric, or
// ErrNotHere.
func Open(cfg Config) (*Link, error) {
	if cfg.Notify == nil {
		cfg.Notify = func() {}
	}
	if cfg.Tell == nil {
		cfg.Tell = func(error) {}
	}
	l := &Link{cfg: cfg, done: make(chan struct{}), poke: make(chan struct{}, 1)}
	l.state.Store(&State{Ethernet: cfg.Ethernet,
		Port: link.Port{State: mad.PortDown, Physical: mad.PhysicalPolling, MTU: ib.MTU4096, MaxMTU: ib.MTU4096}})
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
		var first State
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

// plugIn makes s the link's session; false: the link is closed.
func (l *Link) plugIn(s session, first State) bool {
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
	if l.pauses != nil {
		s.tell(l.pauses)
	}
	if l.virtual != nil {
		s.tell(l.virtual)
	}
	l.gather.add(s.descriptor())
	l.told = ""
	l.cfg.Tell(nil)
	l.changed(first)
	return true
}

// unable tells why the adapter cannot be plugged in, unless that was told before.
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

// SetPlugged pulls the cable out or plugs it in again, as when an adapter is disabled and enabled.
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
	p := *l.state.Load()
	p.Port.State, p.Port.Physical = mad.PortDown, mad.PhysicalPolling
	p.Port.Virtual, p.Port.Virtualized = nil, false
	p.Wire.Up = false
	l.changed(p)
}

func (l *Link) changed(p State) {
	l.state.Store(&p)
	l.changes.Add(1)
	l.cfg.Notify()
}

// Close implements link.Link: it pulls the cable out, and the fabric takes the port down.
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
	return link.Capabilities{MaxSegments: 1, Raw: true, InfiniBand: true, MTU: ib.MTU4096.Bytes(), Fabric: l}
}

// Prepare implements link.Link. A cable needs no preparation.
func (l *Link) Prepare(r *frame.Route) error {
	return nil
}

// Send implements link.Link. While the fabric does not run frames are lost, as on a link that is down.
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

// fail ends a session whose other end breaks the rules. The caller holds the lock.
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

// Errors implements link.Link: a fabric does not report the packets that it drops.
func (l *Link) Errors([]link.Unreachable) int { return 0 }

// Descriptors implements link.Link.
func (l *Link) Descriptors() []int { return l.gather.descriptors() }

// Stats implements link.Link. Frames with a wrong variant CRC and, over UDP, lost parts of the stream
// count as truncated.
func (l *Link) Stats() link.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// Changes implements link.InfiniBand.
func (l *Link) Changes() uint64 { return l.changes.Load() }

// Port implements link.InfiniBand.
func (l *Link) Port() link.Port { return l.state.Load().Port }

// Violation implements link.InfiniBand.
func (l *Link) Violation(v link.Violation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil && !l.closed {
		l.session.tell(violationMessage(&v))
	}
}

// SetVirtual implements link.VirtualPorts. A fabric that comes back is told again.
func (l *Link) SetVirtual(want []link.VirtualPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(want) == 0 && l.virtual == nil {
		return
	}
	l.virtual = virtualMessage(want)
	if l.session != nil && !l.closed {
		l.session.tell(l.virtual)
	}
}
