package cm

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/captures"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// FuzzReceive feeds an engine that has listeners and connections in every state with what a hostile peer may send:
// MADs of any content, and MADs that know the ids of its connections. Programs act and time passes in between.
// Nothing may panic or grow beyond the configured bounds, and at the end nothing is left.
func FuzzReceive(f *testing.F) {
	all, err := captures.All()
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range all {
		for _, frame := range r.Frames {
			if len(frame) >= 62+mad.Len && frame[42] == 0x64 {
				f.Add(append([]byte{0}, frame[62:62+mad.Len]...))
			}
		}
	}
	for op := range byte(12) {
		f.Add(slices.Repeat([]byte{op, 1, 2, 3, 4, 5, 6, 7}, 12))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		h := newHostile(t)
		for len(script) > 0 && !h.done {
			op := script[0]
			script = h.step(op, script[1:])
			h.check()
		}
		h.end()
	})
}

// TestHostilePeer is FuzzReceive with random scripts, most of whose messages are well formed.
func TestHostilePeer(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		h := newHostile(t)
		for range 300 {
			var arg [8]byte
			binary.BigEndian.PutUint64(arg[:], r.Uint64())
			if op := byte(r.UintN(12)); op != 6 || r.UintN(4) == 0 { // time passes rarely
				h.step(op, arg[:])
				h.check()
			}
		}
		h.end()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

const hostileHalfOpen, hostileIDs = 8, 32

// hostile is an engine with hostile peers.
type hostile struct {
	t    *testing.T
	e    *Engine
	now  clock.Time
	own  []ID // the ids that its programs know
	done bool
	qpn  uint32
}

var victim, enemy = netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1")

func newHostile(t *testing.T) *hostile {
	n := uint64(0)
	e, err := New(Config{GUID: 0xb, Rand: func() uint64 { n++; return n * 0x9e3779b97f4a7c15 }, MTU: ib.MTU4096,
		MaxHalfOpen: hostileHalfOpen, MaxIDs: hostileIDs})
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{t: t, e: e, qpn: 0x100}
	for _, space := range []command.PortSpace{command.TCP, command.UDP, command.IB} {
		id, _ := e.Open(space, 0)
		if _, err := e.Bind(id, netip.MustParseAddrPort("0.0.0.0:7471")); err != nil {
			t.Fatal(err)
		}
		if err := e.Listen(id, 4); err != nil {
			t.Fatal(err)
		}
		h.own = append(h.own, id)
	}
	return h
}

// step does one thing that the script's bytes describe and returns the remaining bytes.
func (h *hostile) step(op byte, arg []byte) []byte {
	var a [8]byte
	n := copy(a[:], arg)
	switch op % 12 {
	case 0: // arbitrary bytes
		n = min(len(arg), mad.Len)
		b := make([]byte, mad.Len)
		copy(b, arg[:n])
		if a[0] == 0xff {
			b = b[:n]
		}
		h.receive(b)
	case 1, 2, 3: // a message that knows an id
		h.receive(h.knowing(a))
	case 4, 5: // a request
		h.receive(h.request(a))
	case 6:
		h.now = h.now.Add(time.Duration(binary.BigEndian.Uint16(a[:])) * time.Millisecond)
		h.e.Advance(h.now)
	case 7:
		h.connect(a)
	case 8, 9, 10:
		h.program(a)
	case 11:
		h.e.Unreachable(h.now, enemy, link.UnreachableKind(a[0]%5), a[1:])
	}
	return arg[n:]
}

func (h *hostile) receive(b []byte) {
	h.e.Receive(h.now, b, Peer{Local: victim, Remote: enemy, QPN: 1})
}

func (h *hostile) pick(n byte) ID { return h.own[int(n)%len(h.own)] }

// knowing returns a message to one of the engine's ids, which may name the right peer.
func (h *hostile) knowing(a [8]byte) []byte {
	id := h.pick(a[1])
	ours, theirs := uint32(id), uint32(a[2])
	tid := uint64(a[3])
	c := h.e.ids.Get(uint32(id))
	if c != nil && a[4]&1 == 0 {
		theirs, tid = c.remoteID, c.tid
		if c.state == stateReqSent {
			theirs = uint32(a[2])
		}
	}
	qpn := ib.QPN(0)
	if c != nil {
		qpn = ib.QPN(c.attr.LocalQPN)
	}
	var m mad.Message
	switch a[0] % 9 {
	case 0:
		m = &mad.REP{TransactionID: tid, LocalCommID: theirs, RemoteCommID: ours, LocalQPN: ib.QPN(a[5]), LocalEECN: uint32(a[5]),
			LocalCAGUID: uint64(a[6] % 2), TargetAckDelay: a[7]}
	case 1:
		m = &mad.RTU{TransactionID: tid, LocalCommID: theirs, RemoteCommID: ours}
	case 2:
		m = &mad.REJ{TransactionID: tid, LocalCommID: theirs, RemoteCommID: ours * uint32(a[5]&1), Reason: mad.RejectReason(a[6] % 40),
			InfoLength: a[7] % 73, Info: [72]byte{a[5] % 6, 7: a[7] % 2}}
	case 3:
		m = &mad.MRA{TransactionID: tid, LocalCommID: theirs, RemoteCommID: ours, Message: a[5] % 4, ServiceTimeout: a[6]}
	case 4:
		m = &mad.DREQ{TransactionID: tid, LocalCommID: theirs, RemoteCommID: ours, RemoteQPN: qpn}
	case 5:
		m = &mad.DREP{TransactionID: tid, LocalCommID: theirs, RemoteCommID: ours}
	case 6:
		m = &mad.LAP{TransactionID: tid, LocalCommID: theirs, RemoteCommID: ours}
	case 7:
		m = &mad.SIDRREP{TransactionID: tid, RequestID: ours, Status: mad.SIDRStatus(a[5] % 7), QPN: ib.QPN(a[6]),
			ServiceID: mad.ServiceID(mad.PortSpaceUDP, 9)}
	case 8:
		m = &mad.APR{TransactionID: tid, LocalCommID: theirs, RemoteCommID: ours}
	}
	return encoded(m)[:]
}

var connected = [...]mad.PortSpace{mad.PortSpaceTCP, mad.PortSpaceIB}

// request returns a REQ or SIDR_REQ that may be valid.
func (h *hostile) request(a [8]byte) []byte {
	ip := mad.IPHeader{Source: netip.AddrPortFrom(enemy, uint16(a[1])+1), Destination: victim}
	if a[0]&1 == 1 {
		m := &mad.SIDRREQ{TransactionID: uint64(a[2] % 4), RequestID: uint32(a[3]), PKey: 0xffff,
			ServiceID: mad.ServiceID(mad.PortSpaceUDP, 7471)}
		ip.Append(m.PrivateData[:0])
		return encoded(m)[:]
	}
	m := &mad.REQ{
		TransactionID: uint64(a[2] % 4), LocalCommID: uint32(a[3] % 16), LocalCAGUID: uint64(a[4] % 2), LocalQPN: ib.QPN(a[5]),
		ServiceID: mad.ServiceID(connected[a[0]>>1&1], 7471), PKey: 0xffff, PathMTU: ib.MTU(a[6] % 7), MaxCMRetries: a[6],
		LocalCMResponseTimeout: a[7], TransportType: mad.TransportType(a[0] >> 2 & 3), ExtendedType: a[0] >> 4 & 7,
		Primary: mad.Path{LocalGID: ib.GIDFromAddr(enemy), RemoteGID: ib.GIDFromAddr(victim), AckTimeout: a[7]},
	}
	ip.Append(m.PrivateData[:0])
	return encoded(m)[:]
}

func (h *hostile) connect(a [8]byte) {
	space, port, typ := command.TCP, uint16(7), command.QPType(0)
	switch a[0] & 3 {
	case 1:
		space, port = command.UDP, 9
	case 2:
		space, typ = command.IB, command.XRCInitiator
	}
	id, err := h.e.Open(space, 0)
	if err != nil {
		return
	}
	h.own = append(h.own, id)
	h.qpn++
	err = h.e.Connect(h.now, id, Connect{Local: victim, Remote: netip.AddrPortFrom(enemy, port), QPN: h.qpn, Type: typ,
		Timeout: time.Duration(a[1]) * time.Second})
	if err != nil {
		h.t.Fatal(err)
	}
}

// program lets the engine's programs call something, allowed or not.
func (h *hostile) program(a [8]byte) {
	id := h.pick(a[1])
	switch a[0] % 9 {
	case 0, 1:
		h.qpn++
		_, _ = h.e.Accept(h.now, id, Accept{QPN: h.qpn})
	case 2:
		_ = h.e.Establish(h.now, id, []byte("ready"))
	case 3:
		_ = h.e.Reject(h.now, id, mad.RejectReason(a[2]), nil)
	case 4:
		_ = h.e.Disconnect(h.now, id, nil)
	case 5:
		_ = h.e.Fail(h.now, id)
	case 6:
		_ = h.e.Destroy(h.now, id)
	case 7:
		_ = h.e.Claim(id)
	case 8:
		_ = h.e.Established(h.now, id)
	}
}

// check takes what the engine has for its driver and checks its internal state.
func (h *hostile) check() {
	var events [4]Event
	for n := 1; n > 0; {
		n = h.e.Events(events[:])
		for _, v := range events[:n] {
			if v.Type == EventConnectRequest {
				h.own = append(h.own, v.ID)
			}
		}
	}
	var out [4]Datagram
	for n := 1; n > 0; {
		n = h.e.Transmit(out[:])
	}
	if err := h.e.consistent(); err != nil {
		h.t.Fatal(err)
	}
	if len(h.own) > 1000 {
		h.done = true
	}
}

func (h *hostile) end() {
	for _, id := range h.own {
		_ = h.e.Destroy(h.now, id)
	}
	for d := h.e.Deadline(); d != clock.Never; d = h.e.Deadline() {
		h.now = max(d, h.now)
		h.e.Advance(h.now)
	}
	h.check()
	if left := h.e.left(); left != "" {
		h.t.Fatalf("the engine still keeps: %s", left)
	}
}

// consistent checks what must hold between any two calls.
func (e *Engine) consistent() error {
	halfOpen, lingering, active, waiting := 0, 0, uint64(0), 0
	half := newShares()
	for id, c := range e.ids.All() {
		if uint32(c.id) != id {
			return fmt.Errorf("%08x is kept as %08x", uint32(c.id), id)
		}
		if c.state.halfOpen() {
			halfOpen++
			half.add(c.at.Remote, 1)
		}
		switch c.state {
		case stateLinger:
			lingering++
		case stateEstablished:
			active++
		}
		if c.listen != nil {
			waiting += len(c.listen.waiting)
			shares := newShares()
			for _, x := range c.listen.waiting {
				shares.add(x.at.Remote, 1)
			}
			if !reflect.DeepEqual(shares, c.listen.shares) {
				return fmt.Errorf("the waiting requests of peers are %v, counted as %v", shares, c.listen.shares)
			}
			if n := len(c.listen.line.ids); n > 2*c.listen.backlog+65 {
				return fmt.Errorf("%d requests are remembered in order", n)
			}
			if len(c.listen.waiting) > c.listen.backlog {
				return fmt.Errorf("%d requests wait at %08x", len(c.listen.waiting), id)
			}
		}
		if due := clock.Min(c.retryAt, c.expires); (due == clock.Never) != (c.timer == 0) || c.timer != 0 &&
			(e.timers[c.timer-1] != c || c.due != due) {
			return fmt.Errorf("%08x (%v): timer %d, due %d, retry %d, expires %d", id, c.state, c.timer, c.due, c.retryAt, c.expires)
		}
		needsTimer := c.state != stateIdle && c.state != stateListen && c.state != stateEstablished && c.state != stateSidrReplied &&
			c.state != stateDone
		if needsTimer && c.timer == 0 {
			return fmt.Errorf("%08x (%v) waits for ever", id, c.state)
		}
	}
	for i := range e.timers {
		if i > 0 && e.timers[i].due < e.timers[(i-1)/2].due {
			return fmt.Errorf("timer %d is before its parent", i)
		}
	}
	switch {
	case !reflect.DeepEqual(half, e.half):
		return fmt.Errorf("the half-open connections of peers are %v, counted as %v", half, e.half)
	case len(e.opening.ids) > 2*e.cfg.MaxHalfOpen+65:
		return fmt.Errorf("%d half-open connections are remembered in order", len(e.opening.ids))
	case halfOpen != e.halfOpen || halfOpen > e.cfg.MaxHalfOpen:
		return fmt.Errorf("%d half open, counted %d, at most %d", halfOpen, e.halfOpen, e.cfg.MaxHalfOpen)
	case lingering != e.lingering || lingering > e.cfg.MaxHalfOpen:
		return fmt.Errorf("%d lingering, counted %d, at most %d", lingering, e.lingering, e.cfg.MaxHalfOpen)
	case active != e.counters.Active:
		return fmt.Errorf("%d active, counted %d", active, e.counters.Active)
	case e.ids.Len() > e.cfg.MaxIDs || len(e.peers) > e.ids.Len() || len(e.qpns) > e.ids.Len() || len(e.timers) > e.ids.Len():
		return fmt.Errorf("%d ids, %d peers, %d QPs, %d timers", e.ids.Len(), len(e.peers), len(e.qpns), len(e.timers))
	}
	return nil
}
