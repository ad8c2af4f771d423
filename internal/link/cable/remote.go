package cable

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/wait"
)

const (
	// greetEvery is how often an adapter greets until there is an answer, greetTimes how often before it
	// concludes that there is no fabric.
	greetEvery = 150 * time.Millisecond
	greetTimes = 4
	// tick is the longest time for which a session goes without attention if its owner does not look after
	// it.
	tick = 50 * time.Millisecond
)

// Scheme precedes the host and port of a fabric's cables over UDP.
const Scheme = "udp://"

// ParseUDP reads the address of a fabric's cables, such as udp://host:port, udp://192.0.2.1 or
// udp://[2001:db8::1]:7069, and adds the default port. The error is a *messageError.
func ParseUDP(s string) (host, port string, err error) {
	wrong := &messageError{fmt.Sprintf("%q; allowed: %sHOST or %sHOST:PORT, with an IPv6 address in brackets", s, Scheme, Scheme)}
	rest, ok := strings.CutPrefix(s, Scheme)
	if !ok || rest == "" {
		return "", "", wrong
	}
	host, port, err = net.SplitHostPort(rest)
	if err != nil {
		host, port = rest, strconv.Itoa(DefaultPort)
		if strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]") {
			host = rest[1 : len(rest)-1]
		} else if strings.Contains(rest, ":") {
			return "", "", wrong
		}
		if strings.ContainsAny(host, "[]") {
			return "", "", wrong
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" || strings.ContainsAny(host, "/ \x00") {
		return "", "", wrong
	}
	return host, port, nil
}

// remote is a session with a fabric over UDP.
type remote struct {
	peer   netip.AddrPort
	start  time.Time
	notify func()
	tells  func(Incident) // nil: nobody has asked
	named  uint64         // the session, as this end identifies it
	other  uint64         // and as the fabric does
	fabric [16]byte

	mu      sync.Mutex
	socket  *Socket
	wire    *Wire
	closed  bool
	bye     bool
	failed  error
	state   func(State) // nil: control does not run yet
	latest  *State      // what to pass to it then
	damaged uint64
	took    time.Time // when the owner last received
	wake    chan struct{}
}

// dialUDP plugs in at a fabric over UDP. The State is the port's initial one.
func dialUDP(cfg *Config) (session, State, error) {
	for late := time.Now().Add(silence + time.Second); ; time.Sleep(again) {
		s, first, err := greet(cfg)
		var taken *takenError
		if !errors.As(err, &taken) {
			return s, first, err
		}
		if time.Now().After(late) { // not just an old session of this adapter that the fabric has not missed yet
			return nil, first, taken.RefusedError
		}
	}
}

// greet asks a fabric once to be let in.
func greet(cfg *Config) (session, State, error) {
	host, port, err := ParseUDP(cfg.UDP)
	if err != nil {
		return nil, State{}, err
	}
	// Connecting tells from which address of this machine datagrams leave for there.
	probe, err := (&net.Dialer{Timeout: greetTimes * greetEvery}).Dial("udp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, State{}, err
	}
	local, peer := probe.LocalAddr().(*net.UDPAddr).AddrPort(), probe.RemoteAddr().(*net.UDPAddr).AddrPort()
	probe.Close()
	s := &remote{peer: netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port()), start: time.Now(), notify: cfg.Notify, tells: cfg.Incident,
		named: newSession(), wake: make(chan struct{}, 1)}
	if s.notify == nil {
		s.notify = func() {}
	}
	bind := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if s.peer.Addr().Is6() {
		bind = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	open := openSystem
	if cfg.Portable {
		open = openPortable
	}
	if s.socket, err = openSocket(bind, s.arrived, open); err != nil {
		return nil, State{}, err
	}
	g := &greeter{greeting: Greeting{Session: s.named, Size: Datagram(local.Addr().Unmap()), Window: s.socket.Window(), Hello: cfg.Hello},
		key: cfg.Key}
	a, err := s.admission(g)
	if err != nil {
		s.socket.Close()
		return nil, State{}, err
	}
	s.other, s.fabric = a.Session, a.Fabric
	s.wire = NewWire(WireConfig{Session: a.Session, Size: min(a.Size, g.greeting.Size), Limit: uint64(a.Window), Window: g.greeting.Window},
		s.now())
	return s, a.State, nil
}

// admission greets until the fabric answers.
func (s *remote) admission(g *greeter) (a Admission, err error) {
	done, again := false, false
	take := func(_ netip.AddrPort, b []byte) {
		if done || err != nil {
			return
		}
		var more bool
		a, done, more, err = g.answered(b)
		again = again || more
	}
	pause := wait.Ask(wait.Settled)
	for range greetTimes {
		again = true
		for late := time.Now().Add(greetEvery); time.Now().Before(late); time.Sleep(pause.Next()) {
			if again {
				again = false
				b := g.greeting.Greet(g.cookie, g.key)
				s.socket.Send(s.peer, b, len(b))
			}
			if s.socket.Receive(take); done || err != nil {
				return a, err
			}
		}
	}
	return a, fmt.Errorf("no fabric answers at UDP %v", s.peer)
}

func (s *remote) now() clock.Time { return clock.Time(time.Since(s.start)) }

// arrived is called when datagrams have arrived and there is no descriptor that shows it.
func (s *remote) arrived() { s.notify() }

// take handles a datagram. The caller holds the lock.
func (s *remote) take(_ netip.AddrPort, b []byte) {
	if gone(b, s.other) {
		s.fail(errors.New("the fabric does not know the session any more"))
		return
	}
	if id, ok := Session(b); !ok || id != s.named || s.failed != nil {
		return
	}
	m, err := s.wire.Take(s.now(), b)
	if err == nil && m != nil {
		err = s.hear(m)
	}
	if err != nil {
		s.fail(err)
	}
}

// hear handles a message of the fabric. The caller holds the lock.
func (s *remote) hear(m []byte) error {
	if s.tells != nil && len(m) > 0 && m[0] == kindIncident {
		x, err := parseIncident(m)
		if err == nil {
			x.Fabric = s.fabric
			s.tells(x)
		}
		return err
	}
	p, err := parseState(m)
	if err == nil {
		p.Port.Fabric = s.fabric
		s.changed(p)
	}
	return err
}

// changed passes the port's new state on.
func (s *remote) changed(p State) {
	if s.state == nil {
		s.latest = &p
		return
	}
	s.state(p)
}

// fail ends the session. The caller holds the lock.
func (s *remote) fail(err error) {
	if s.failed == nil {
		s.failed = err
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// flush sends what is due; false: the system has no room. The caller holds the lock.
func (s *remote) flush(now clock.Time) bool {
	for {
		b, size := s.wire.Datagrams(now)
		if len(b) == 0 {
			return true
		}
		n := s.socket.Send(s.peer, b, size)
		s.wire.Sent(now, n)
		if n < len(b) {
			return false
		}
	}
}

func (s *remote) send(frames []frame.Out) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.failed != nil {
		return len(frames), nil
	}
	now := s.now()
	for i := range frames {
		o := &frames[i]
		n := o.Len()
		if n > MaxFrame || n < minFrame {
			continue // no port accepts it
		}
		if !s.wire.Fits(now, n) {
			s.flush(now)
			if !s.wire.Fits(now, n) {
				return i, nil
			}
		}
		s.wire.Put(o.Head[o.HeadStart:o.HeadEnd], o.Payload, o.Tail[:o.TailLen])
	}
	s.flush(now)
	return len(frames), nil
}

func (s *remote) receive(in []frame.In) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.failed != nil {
		return 0, nil
	}
	s.took = time.Now()
	s.wire.Release()
	s.socket.Receive(s.take)
	n := 0
	for n < len(in) {
		b := s.wire.Next()
		if b == nil {
			break
		}
		in[n] = frame.In{Data: b, Raw: true}
		s.wire.Drop()
		n++
	}
	s.damaged += s.wire.Lost()
	s.flush(s.now())
	return n, nil
}

func (s *remote) wrong() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.damaged
	s.damaged = 0
	return n
}

// control looks after the session until it ends, whenever its owner does not.
func (s *remote) control(state func(State)) error {
	s.mu.Lock()
	s.state = state
	if s.latest != nil {
		state(*s.latest)
		s.latest = nil
	}
	s.mu.Unlock()
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-s.wake:
		}
		wait, err := s.look()
		if err != nil {
			return err
		}
		t.Reset(wait)
	}
}

// look does what is due, and returns how long until there is more to do.
func (s *remote) look() (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failed != nil:
		return 0, s.failed
	case s.closed:
		return 0, net.ErrClosed
	}
	if time.Since(s.took) >= tick { // its owner does not look
		if s.socket.Receive(s.take) > 0 {
			s.notify() // for the frames among them
		}
		if s.failed != nil {
			return 0, s.failed
		}
	}
	now := s.now()
	s.flush(now)
	if s.wire.Over(now) {
		return 0, errors.New("the fabric has ended the session, or says nothing any more")
	}
	return min(max(s.wire.Deadline().Sub(s.now()), time.Millisecond), tick), nil
}

// tell sends a message; nil ends the session.
func (s *remote) tell(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.failed != nil {
		return
	}
	if b == nil {
		s.farewell()
		s.fail(net.ErrClosed)
		return
	}
	s.wire.Say(b) // lost if too many wait
	s.flush(s.now())
}

// farewell tells the fabric that the session ends, twice because a datagram may be lost. The caller holds
// the lock.
func (s *remote) farewell() {
	if !s.bye {
		s.bye = true
		b := s.wire.Bye()
		s.socket.Send(s.peer, b, len(b))
		s.socket.Send(s.peer, b, len(b))
	}
}

func (s *remote) descriptor() int { return s.socket.Descriptor() }

func (s *remote) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.farewell()
	s.socket.Close()
}
