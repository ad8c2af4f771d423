package live

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/link/cable"
)

// maxRemotes limits the number of adapters that are plugged in over UDP.
const maxRemotes = 1024

// UDP is a socket where adapters of other hosts are plugged in.
type UDP struct {
	socket *cable.Socket
	pump   *pump
}

// ListenUDP opens a UDP socket at which adapters of other hosts are plugged in: any that can reach it or,
// with a key, those that know the key.
func (r *Rack) ListenUDP(at netip.AddrPort, key []byte) (*UDP, error) {
	p, err := newPump(r)
	if err != nil {
		return nil, err
	}
	s := &remotes{rack: r, pump: p, door: cable.NewDoor(key), sessions: map[uint64]*remote{}, greeted: map[greeted]*remote{},
		due: clock.Never}
	s.take = s.taken
	if s.socket, err = cable.OpenSocket(at, p.arrived); err != nil {
		p.waiter.close()
		return nil, err
	}
	s.size = cable.Datagram(at.Addr())
	if at.Addr().IsUnspecified() {
		s.size = cable.MaxDatagram // the adapter's path to this host decides
	}
	p.remotes = s
	p.waiter.add(s.socket.Descriptor(), socketKey)
	return &UDP{s.socket, p}, nil
}

// Addr returns the address where adapters are plugged in.
func (u *UDP) Addr() netip.AddrPort { return u.socket.Addr() }

// Serve accepts adapters until ctx ends. It closes the socket.
func (u *UDP) Serve(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(u.pump.run)
	<-ctx.Done()
	u.pump.stop()
	work.Wait()
	u.socket.Close()
}

// Close closes a socket that is not being served.
func (u *UDP) Close() {
	u.pump.waiter.close()
	u.socket.Close()
}

// greeted identifies an adapter that greets again because it has not heard that it was admitted.
type greeted struct {
	from    netip.AddrPort
	session uint64
}

// remotes are the adapters that are plugged in over UDP. Only the pump uses them.
type remotes struct {
	rack     *Rack
	pump     *pump
	socket   *cable.Socket
	size     int // maximum size of a datagram
	door     *cable.Door
	sessions map[uint64]*remote
	greeted  map[greeted]*remote
	due      clock.Time // when one of them has something to do by itself
	now      clock.Time
	take     func(netip.AddrPort, []byte)
}

// remote is the fabric's end of a cable over UDP.
type remote struct {
	outlet
	all     *remotes
	from    greeted
	session uint64 // as this end identifies it
	wire    *cable.Wire
	admits  []byte // the datagram that admitted it
	seen    uint64 // changes of the port that were sent
	asks    bool   // it is told of incidents
	told    uint64 // the number of the last one
}

// receive handles the datagrams that have arrived, and does what is due; some: there were any. ending: all
// sessions end.
func (s *remotes) receive(ending bool) (some bool) {
	if s == nil {
		return false
	}
	s.now = s.rack.Now()
	some = s.socket.Receive(s.take) > 0
	if ending || !s.now.Before(s.due) {
		s.due = clock.Never
		for _, o := range s.sessions {
			s.look(o, ending)
		}
	}
	return some
}

// look does what is due in a session.
func (s *remotes) look(o *remote, ending bool) {
	if ending || o.broken || o.wire.Over(s.now) || s.closed(o) {
		s.end(o)
		return
	}
	o.finish(s.now)
	s.pump.ready(&o.outlet) // it may have been waiting for more than time
}

func (s *remotes) closed(o *remote) bool {
	s.rack.mu.Lock()
	defer s.rack.mu.Unlock()
	return o.port.ended()
}

// deadline returns when receive has something to do by itself.
func (s *remotes) deadline() clock.Time {
	if s == nil {
		return clock.Never
	}
	return s.due
}

// taken handles a datagram.
func (s *remotes) taken(from netip.AddrPort, b []byte) {
	id, ok := cable.Session(b)
	if !ok {
		s.greet(from, b)
		return
	}
	o := s.sessions[id]
	switch {
	case o == nil:
		s.socket.Send(from, cable.Gone(id), len(b)) // shorter than the datagram that it answers
	case o.from.from == from && !o.broken:
		o.take(b)
	}
}

// greet answers a greeting.
func (s *remotes) greet(from netip.AddrPort, b []byte) {
	g, answer, ok := s.door.Greeted(s.now, from, b)
	if ok {
		answer = s.admit(greeted{from, g.Session}, &g)
	}
	if answer != nil {
		s.socket.Send(from, answer, len(answer))
	}
}

// admit plugs an adapter in, and returns the answer to it.
func (s *remotes) admit(from greeted, g *cable.Greeting) []byte {
	if o := s.greeted[from]; o != nil {
		return o.admits
	}
	if len(s.sessions) >= maxRemotes {
		return s.door.Deny(g.Session, fmt.Errorf("%d adapters are plugged in over UDP, which is the limit", maxRemotes), true)
	}
	o := &remote{all: s, from: from, session: s.name(), asks: g.Ethernet && g.Incidents}
	o.outlet = outlet{end: o, gone: make(chan struct{})}
	var err error
	o.port, err = s.rack.join(&g.Hello, fmt.Sprintf("%s, at %v", g.Program, from.from), func() { s.pump.news(&o.outlet) })
	if err != nil {
		return s.door.Deny(g.Session, err, errors.Is(err, errTaken))
	}
	size, window := min(g.Size, s.size), s.socket.Window()
	o.wire = cable.NewWire(cable.WireConfig{Session: g.Session, Size: size, Limit: uint64(g.Window), Window: window}, s.now)
	o.seen = o.port.Changes()
	a := cable.Admission{Session: o.session, Size: size, Window: window, State: s.rack.stateOf(o.port)}
	node, port := o.port.where()
	a.Welcome = cable.Welcome{Fabric: s.rack.id, Node: node, Port: port}
	o.admits = s.door.Admit(g.Session, &a)
	s.sessions[o.session], s.greeted[from] = o, o
	s.due = clock.Min(s.due, o.wire.Deadline())
	s.pump.add(&o.outlet)
	return o.admits
}

// name returns an unpredictable number for a new session.
func (s *remotes) name() uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		if id := binary.LittleEndian.Uint64(b[:]); s.sessions[id] == nil {
			return id
		}
	}
}

// end unplugs an adapter.
func (s *remotes) end(o *remote) {
	b := o.wire.Bye()
	s.socket.Send(o.from.from, b, len(b))
	delete(s.sessions, o.session)
	delete(s.greeted, o.from)
	o.broken = true
	o.port.Close()
	s.pump.remove(&o.outlet)
}

// take handles a datagram of the session.
func (o *remote) take(b []byte) {
	m, err := o.wire.Take(o.all.now, b)
	if err == nil && m != nil {
		err = o.port.heard(m)
	}
	if err != nil || o.wire.Ended() {
		o.all.end(o)
		return
	}
	o.all.pump.ready(&o.outlet)
}

func (o *remote) turn(now clock.Time) (some bool) {
	if n := o.port.Changes(); n != o.seen && !o.wire.Saying() {
		o.seen = n
		p := o.port.status()
		o.wire.Say(p.Message())
	}
	if o.asks && !o.wire.Saying() {
		if x, more := o.all.rack.incidentAfter(o.told); more {
			o.told = x.Number
			o.wire.Say(x.Message())
		}
	}
	for range min(o.wire.Lost(), turnFrames) {
		o.port.corrupt()
	}
	to, from := o.toFabric(now), o.port.deliver(now, o) > 0
	return to || from
}

// fits implements sink.
func (o *remote) fits(now clock.Time) bool { return o.wire.Fits(now, cable.MaxFrame) }

// put implements sink.
func (o *remote) put(b []byte) { o.wire.Put(b, nil, nil) }

func (o *remote) toFabric(now clock.Time) bool {
	n := 0
	for ; n < turnFrames; n++ {
		b := o.wire.Next()
		if b == nil {
			break
		}
		if !o.port.transmit(now, b) {
			o.blocked = true
			break
		}
		o.wire.Drop()
	}
	o.wire.Release()
	return n > 0
}

// finish sends what there is to send.
func (o *remote) finish(now clock.Time) bool {
	done := true
	for {
		b, size := o.wire.Datagrams(now)
		if len(b) == 0 {
			break
		}
		n := o.all.socket.Send(o.from.from, b, size)
		o.wire.Sent(now, n)
		if n < len(b) {
			done = false
			break
		}
	}
	o.all.due = clock.Min(o.all.due, o.wire.Deadline())
	return done
}

func (o *remote) sleep() bool { return true }

func (o *remote) bell() int { return -1 }
