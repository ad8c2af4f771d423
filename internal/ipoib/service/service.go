// Package service runs IPoIB interfaces in real time: it owns the clock and the lock of the engines of one
// InfiniBand port, and connects the port, the queue pairs and the system's network interfaces.
package service

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Adapter is the adapter that a port belongs to. Its methods are called with the port's lock held: they
// must not call the Port.
type Adapter interface {
	// Port returns the current state of the port. Whoever runs the adapter calls Port.changed after every
	// change.
	Port() ipoib.Port
	// Open creates a queue pair for unreliable datagrams. One goroutine, which holds no lock that Send
	// needs, passes received datagrams to receive; their memory is valid until receive returns.
	Open(b Buffers, receive func(batch []ipoib.Arrival)) (QueuePair, error)
	// Ask sends a MAD to the subnet administration from queue pair 1; answers are passed to Port.answer.
	Ask(r *ipoib.Request) error
}

// QueuePair is a queue pair for unreliable datagrams.
type QueuePair interface {
	Number() ib.QPN
	// Start lets packets flow, with a row of the P_Key table and a Q_Key; it is called again when these
	// change.
	Start(pkeyIndex int, qkey uint32) error
	Attach(mgid ib.GID, mlid ib.LID) error
	Detach(mgid ib.GID, mlid ib.LID) error
	// Send sends a datagram made of three pieces, which it copies. A datagram that finds no room is lost.
	Send(to *ipoib.Destination, header, head, body []byte)
	// Flush starts sending what Send has queued.
	Flush()
	Tally() Tally
	Close() error
}

// Tally holds a queue pair's counts.
type Tally struct {
	Full       uint64 // datagrams that found no room
	Queued     uint64 // datagrams currently being sent
	Recoveries uint64 // times that it failed and was restarted
}

// Buffers is how many packets an interface has room for (*TransmitBuffers, *receiveBuffers: WinOF 5.50,
// 4.6.3).
type Buffers struct{ Send, Receive int }

// Limits of Buffers, and the defaults.
const (
	minBuffers     = 256
	maxBuffers     = 4096
	sendBuffers    = 2048
	receiveBuffers = 512
)

// complete returns b with its defaults filled in. The error is an *ipoib.ConfigError.
func (b Buffers) complete() (Buffers, error) {
	if b.Send == 0 {
		b.Send = sendBuffers
	}
	if b.Receive == 0 {
		b.Receive = receiveBuffers
	}
	for _, f := range []struct {
		name string
		v    int
	}{{"Send", b.Send}, {"Receive", b.Receive}} {
		if f.v < minBuffers || f.v > maxBuffers {
			return b, &ipoib.ConfigError{Field: f.name, Got: f.v, Want: fmt.Sprintf("%d to %d", minBuffers, maxBuffers)}
		}
	}
	return b, nil
}

// Config configures an interface.
type Config struct {
	ipoib.Config
	Buffers
	// Unchecked4 and Unchecked6 leave the checksums of received TCP and UDP packets to the system, which
	// then gets segments as they arrive.
	Unchecked4, Unchecked6 bool
}

// System is a network interface of the system: a TUN device. It may be nil.
type System interface {
	// Write passes on a packet in pieces, at most tun.MaxPieces.
	Write(h offload.Header, pieces [][]byte) error
	SetMTU(n int) error
	SetCarrier(on bool) error
}

// Interface is one interface of a port.
type Interface struct {
	port   *Port
	engine *ipoib.Interface
	qp     QueuePair
	system System
	tell   func(ipoib.Event)

	carried  ipoib.Carried // without the part that the queue pair counts
	segments offload.Segments
	to       ipoib.Destination // of the packet being sent, as is header
	header   [ipoib.HeaderLen]byte
	join     offload.Joiner // of the receiving goroutine
	joining  offload.Connections

	running bool // the queue pair has been started with index and qkey
	index   int
	qkey    uint32
	waiting map[netip.Addr][]chan ipoib.Resolved
	closed  bool
	made    uint64
}

// made counts the interfaces created in the process.
var made atomic.Uint64

// Add creates an interface. tell, if any, is called with its events while the port is locked: it must not
// call the port. The errors are those of ipoib.New and of the adapter.
func (p *Port) Add(cfg Config, s System, tell func(ipoib.Event)) (*Interface, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ipoib.ErrDown
	}
	e, err := ipoib.New(cfg.Config, p.random)
	if err != nil {
		return nil, err
	}
	b, err := cfg.Buffers.complete()
	if err != nil {
		return nil, err
	}
	i := &Interface{port: p, engine: e, system: s, tell: tell, waiting: map[netip.Addr][]chan ipoib.Resolved{}, made: made.Add(1)}
	i.join.Join4, i.join.Join6 = !cfg.Unchecked4, !cfg.Unchecked6
	if i.qp, err = p.adapter.Open(b, i.receive); err != nil {
		return nil, fmt.Errorf("queue pair: %w", err)
	}
	p.interfaces = append(p.interfaces, i)
	if s != nil {
		_ = s.SetCarrier(false)
	}
	now := p.now()
	e.SetQueuePair(now, i.qp.Number())
	e.SetPort(now, p.adapter.Port())
	i.drain(now)
	return i, nil
}

// drain does what the engine wants done. The caller holds the lock.
func (i *Interface) drain(now clock.Time) {
	flush := false
	for a, ok := i.engine.Take(); ok; a, ok = i.engine.Take() {
		switch a := a.(type) {
		case ipoib.Datagram:
			i.start()
			i.qp.Send(&a.To, a.Data, nil, nil)
			flush = true
		case ipoib.Request:
			i.ask(now, &a)
		case ipoib.Attach:
			i.fault("attach", i.qp.Attach(a.MGID, a.MLID))
		case ipoib.Detach:
			i.fault("detach", i.qp.Detach(a.MGID, a.MLID))
		case ipoib.Deliver:
			if i.system != nil {
				_ = i.system.Write(offload.Header{}, [][]byte{a.Packet}) // a system that is down drops it
			}
		case ipoib.Resolved:
			for _, c := range i.waiting[a.Addr] {
				c <- a
			}
			delete(i.waiting, a.Addr)
		case ipoib.Event:
			i.event(a)
		}
	}
	if flush {
		i.qp.Flush()
	}
	i.start()
	if i.engine.Deadline() < i.port.next {
		i.port.rouse()
	}
}

// start adapts the queue pair to the engine: it runs with the P_Key's row and the Q_Key of the broadcast
// group.
func (i *Interface) start() {
	if i.engine.State() != ipoib.Up {
		return
	}
	_, index := i.engine.PKey()
	if qkey := i.engine.QKey(); !i.running || i.index != index || i.qkey != qkey {
		if err := i.qp.Start(index, qkey); err != nil {
			i.fault("start", err)
			return
		}
		i.running, i.index, i.qkey = true, index, qkey
	}
}

// fault reports a failure of the queue pair.
func (i *Interface) fault(what string, err error) {
	if err != nil && i.tell != nil {
		i.tell(ipoib.Event{Kind: ipoib.Failed, Text: fmt.Sprintf("queue pair: %s: %v", what, err)})
	}
}

func (i *Interface) event(e ipoib.Event) {
	switch {
	case i.system == nil:
	case e.Kind == ipoib.Connected:
		i.fault("interface", i.system.SetMTU(e.MTU))
		i.fault("interface", i.system.SetCarrier(true))
	case e.Kind == ipoib.Disconnected:
		_ = i.system.SetCarrier(false)
	}
	if i.tell != nil {
		i.tell(e)
	}
}

// ask sends a request. The port is a member of a group once, however many of its interfaces are: only the
// last one leaves it.
func (i *Interface) ask(now clock.Time, r *ipoib.Request) {
	m, err := mad.ParseSA(r.MAD[:])
	if err == nil && m.Method == mad.MethodDelete && m.AttributeID == mad.AttrMCMemberRecord {
		rec, _ := mad.ParseMCMemberRecord(m.Data[:])
		if i.port.groupWanted(rec.MGID, i) {
			m.Method = mad.MethodDeleteResp
			i.engine.Response(now, m.Append(nil))
			return
		}
		if state := i.port.joined[rec.MGID]; state != 0 {
			rec.JoinState = state
			rec.Append(m.Data[:0])
			m.Append(r.MAD[:0])
		}
		delete(i.port.joined, rec.MGID)
	}
	_ = i.port.adapter.Ask(r) // a lost one is retransmitted
}

// Set sets the interface's addresses and its routes to other links.
func (i *Interface) Set(prefixes []netip.Prefix, routes []ipoib.Route) {
	i.port.mu.Lock()
	defer i.port.mu.Unlock()
	now := i.port.now()
	i.engine.SetAddresses(now, prefixes)
	i.engine.SetRoutes(routes)
	i.drain(now)
}

// takeOver makes the interface the one of its team that carries what the system has.
func (i *Interface) takeOver(prefixes []netip.Prefix, routes []ipoib.Route, h ipoib.Held) {
	i.port.mu.Lock()
	defer i.port.mu.Unlock()
	now := i.port.now()
	i.engine.TakeOver(now, prefixes, routes, h)
	i.drain(now)
}

// yield ends that, and returns what the interface held.
func (i *Interface) yield() ipoib.Held {
	i.port.mu.Lock()
	defer i.port.mu.Unlock()
	now := i.port.now()
	h := i.engine.Yield(now)
	i.drain(now)
	return h
}

// announce tells all nodes again where the addresses are.
func (i *Interface) announce() {
	i.port.mu.Lock()
	defer i.port.mu.Unlock()
	now := i.port.now()
	i.engine.Announce(now)
	i.drain(now)
}

// ResolveGID returns the GID of the port with an IP address. The error is ipoib.ErrDown,
// ipoib.ErrUnreachable, or ctx's.
func (i *Interface) ResolveGID(ctx context.Context, ip netip.Addr) (ib.GID, error) {
	ip = ip.Unmap().WithZone("")
	answer := make(chan ipoib.Resolved, 1)
	i.port.mu.Lock()
	if i.closed {
		i.port.mu.Unlock()
		return ib.GID{}, ipoib.ErrDown
	}
	now := i.port.now()
	n, ok := i.engine.Resolve(now, ip)
	if !ok {
		i.waiting[ip] = append(i.waiting[ip], answer)
	}
	i.drain(now)
	i.port.mu.Unlock()
	if ok {
		return n.Address.GID, nil
	}
	select {
	case a := <-answer:
		return a.Neighbor.Address.GID, a.Err
	case <-ctx.Done():
		return ib.GID{}, ctx.Err()
	}
}

// Status is the state of an interface.
type Status struct {
	State     ipoib.State
	MTU       int
	PKey      ib.PKey // 0: none yet
	Address   ipoib.Address
	Broadcast ib.GID // zero: it has no partition
	MLID      ib.LID // of the broadcast group; 0: not joined
	Census    ipoib.Census
	Counters  ipoib.Counters
	// Made only grows, and so distinguishes successive interfaces of one name.
	Made uint64
}

// Status returns the current state of the interface.
func (i *Interface) Status() Status {
	i.port.mu.Lock()
	defer i.port.mu.Unlock()
	s := Status{State: i.engine.State(), MTU: i.engine.MTU(), Address: i.engine.Address(), Census: i.engine.Census(), Made: i.made}
	s.Counters = i.engine.Counters()
	s.Counters.Carried = i.carried
	s.Counters.Joining = uint64(i.joining.Active(i.port.now()))
	t := i.qp.Tally()
	s.Counters.SendQueueFull, s.Counters.Queued, s.Counters.Recoveries = t.Full, t.Queued, t.Recoveries
	s.PKey, _ = i.engine.PKey()
	s.Broadcast, s.MLID, _ = i.engine.Broadcast()
	return s
}

// Endpoints returns the end points that the interface currently knows.
func (i *Interface) Endpoints() ipoib.Endpoints {
	i.port.mu.Lock()
	defer i.port.mu.Unlock()
	return i.engine.Endpoints(i.port.now())
}

// Close ends the interface, which leaves its groups.
func (i *Interface) Close() {
	p := i.port
	p.mu.Lock()
	if i.closed {
		p.mu.Unlock()
		return
	}
	i.closed = true
	i.engine.Stop(p.now())
	i.drain(p.now())
	p.interfaces = slices.DeleteFunc(p.interfaces, func(o *Interface) bool { return o == i })
	p.mu.Unlock()
	_ = i.qp.Close() // without the lock, which handling of arriving datagrams needs
}
