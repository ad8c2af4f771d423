package cm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/mad"
)

// side is an engine with its address.
type side struct {
	name string
	addr netip.Addr
	e    *Engine
}

// pair is two engines and the messages between them.
type pair struct {
	now  clock.Time
	a, b *side
	wire []flight // sent and not yet delivered
}

type flight struct {
	from *side
	d    Datagram
}

func newPair(edit func(*Config)) *pair {
	p := &pair{}
	make := func(name, addr string, guid uint64) *side {
		r := rand.New(rand.NewPCG(guid, 1))
		cfg := Config{GUID: guid, Rand: r.Uint64}
		if edit != nil {
			edit(&cfg)
		}
		e, err := New(cfg)
		if err != nil {
			panic(err)
		}
		return &side{name, netip.MustParseAddr(addr), e}
	}
	p.a, p.b = make("a", "10.0.0.1", 0xa), make("b", "10.0.0.2", 0xb)
	return p
}

func (p *pair) sides() [2]*side { return [2]*side{p.a, p.b} }

func (p *pair) other(s *side) *side {
	if s == p.a {
		return p.b
	}
	return p.a
}

// collect puts what the engines want to send on the wire.
func (p *pair) collect() {
	var out [4]Datagram
	for _, s := range p.sides() {
		for n := 1; n > 0; {
			n = s.e.Transmit(out[:])
			for _, d := range out[:n] {
				p.wire = append(p.wire, flight{s, d})
			}
		}
	}
}

// take removes message i from the wire and returns it.
func (p *pair) take(i int) flight {
	f := p.wire[i]
	p.wire = append(p.wire[:i:i], p.wire[i+1:]...)
	return f
}

func (p *pair) deliver(f flight) {
	to := p.other(f.from)
	if f.d.Remote != to.addr {
		return
	}
	to.e.Receive(p.now, f.d.MAD[:], Peer{Local: to.addr, Remote: f.from.addr, QPN: 1})
}

// flow delivers messages until neither engine sends any more.
func (p *pair) flow() {
	for p.collect(); len(p.wire) > 0; p.collect() {
		p.deliver(p.take(0))
	}
}

// deadline returns the earlier deadline of the two engines.
func (p *pair) deadline() clock.Time { return clock.Min(p.a.e.Deadline(), p.b.e.Deadline()) }

func (p *pair) advance(to clock.Time) {
	p.now = to
	p.a.e.Advance(to)
	p.b.e.Advance(to)
}

func (s *side) events() []Event {
	var all []Event
	var out [2]Event
	for n := 1; n > 0; {
		n = s.e.Events(out[:])
		all = append(all, out[:n]...)
	}
	return all
}

// left describes what an engine still keeps; it is empty if that is nothing.
func (e *Engine) left() string {
	if e.ids.Len()+len(e.peers)+len(e.qpns)+len(e.ports)+len(e.listeners)+len(e.timers)+e.halfOpen+e.lingering+e.replies.len()+
		e.sendq.len() == 0 && e.counters.Active == 0 {
		return ""
	}
	return fmt.Sprintf("ids=%d peers=%d qpns=%d ports=%d listeners=%d timers=%d half-open=%d lingering=%d replies=%d sendq=%d active=%d",
		e.ids.Len(), len(e.peers), len(e.qpns), len(e.ports), len(e.listeners), len(e.timers), e.halfOpen, e.lingering, e.replies.len(),
		e.sendq.len(), e.counters.Active)
}

// describe returns a MAD as one line of text.
func describe(b []byte) string {
	m, err := mad.DecodeCM(b)
	if err != nil {
		return err.Error()
	}
	switch m := m.(type) {
	case *mad.REQ:
		p := &m.Primary
		ip, err := mad.ParseIPHeader(m.PrivateData[:])
		addrs := fmt.Sprintf("%v->%v", ip.Source, ip.Destination)
		if err != nil {
			addrs = err.Error()
		}
		typ := fmt.Sprint(m.TransportType)
		if m.TransportType == mad.TransportExtended {
			typ = fmt.Sprintf("extended(%d)", m.ExtendedType)
		}
		return fmt.Sprintf("REQ %08x service=%x guid=%x qpn=%#x type=%s psn=%06x resources=%d depth=%d flow=%t srq=%t retry=%d rnr=%d timeouts=%d/%d max=%d pkey=%04x mtu=%v path=%v->%v label=%05x class=%d hops=%d sl=%d ack=%d %s%s",
			m.LocalCommID, m.ServiceID, m.LocalCAGUID, uint32(m.LocalQPN), typ, uint32(m.StartingPSN), m.ResponderResources,
			m.InitiatorDepth, m.FlowControl, m.SRQ,
			m.RetryCount, m.RNRRetryCount, m.LocalCMResponseTimeout, m.RemoteCMResponseTimeout, m.MaxCMRetries, uint16(m.PKey), m.PathMTU,
			p.LocalGID.Addr(), p.RemoteGID.Addr(), p.FlowLabel, p.TrafficClass, p.HopLimit, p.SL, p.AckTimeout, addrs,
			text(m.PrivateData[36:]))
	case *mad.REP:
		qpn := fmt.Sprintf("qpn=%#x", uint32(m.LocalQPN))
		if m.LocalEECN != 0 {
			qpn += fmt.Sprintf(" eecn=%#x", m.LocalEECN)
		}
		return fmt.Sprintf("REP %08x for %08x guid=%x %s psn=%06x resources=%d depth=%d delay=%d failover=%d flow=%t rnr=%d srq=%t%s",
			m.LocalCommID, m.RemoteCommID, m.LocalCAGUID, qpn, uint32(m.StartingPSN), m.ResponderResources, m.InitiatorDepth,
			m.TargetAckDelay, m.Failover, m.FlowControl, m.RNRRetryCount, m.SRQ, text(m.PrivateData[:]))
	case *mad.RTU:
		return fmt.Sprintf("RTU %08x for %08x%s", m.LocalCommID, m.RemoteCommID, text(m.PrivateData[:]))
	case *mad.REJ:
		return fmt.Sprintf("REJ %08x for %08x of %d: %d %v%s%s", m.LocalCommID, m.RemoteCommID, m.Message, m.Reason, m.Reason,
			info(m.Info[:m.InfoLength]), text(m.PrivateData[:]))
	case *mad.MRA:
		return fmt.Sprintf("MRA %08x for %08x of %d: timeout %d", m.LocalCommID, m.RemoteCommID, m.Message, m.ServiceTimeout)
	case *mad.DREQ:
		return fmt.Sprintf("DREQ %08x for %08x qpn=%#x%s", m.LocalCommID, m.RemoteCommID, uint32(m.RemoteQPN), text(m.PrivateData[:]))
	case *mad.DREP:
		return fmt.Sprintf("DREP %08x for %08x%s", m.LocalCommID, m.RemoteCommID, text(m.PrivateData[:]))
	case *mad.SIDRREQ:
		return fmt.Sprintf("SIDR_REQ %08x service=%x pkey=%04x%s", m.RequestID, m.ServiceID, uint16(m.PKey), text(m.PrivateData[36:]))
	case *mad.SIDRREP:
		return fmt.Sprintf("SIDR_REP for %08x service=%x: %v qpn=%#x qkey=%08x%s", m.RequestID, m.ServiceID, m.Status, uint32(m.QPN),
			m.QKey, text(m.PrivateData[:]))
	case *mad.LAP:
		return fmt.Sprintf("LAP %08x for %08x", m.LocalCommID, m.RemoteCommID)
	case *mad.APR:
		return fmt.Sprintf("APR %08x for %08x: %v", m.LocalCommID, m.RemoteCommID, m.Status)
	}
	return "?"
}

func text(b []byte) string {
	if b = bytes.TrimRight(b, "\x00"); len(b) == 0 {
		return ""
	}
	return fmt.Sprintf(" %q", b)
}

func info(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return fmt.Sprintf(" info=%x", b)
}

// String returns an event as one line, with the fields that belong to its type.
func (v Event) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v %08x", v.Type, uint32(v.ID))
	if v.Context != 0 {
		fmt.Fprintf(&s, " context=%d", v.Context)
	}
	a := &v.Conn
	switch v.Type {
	case EventConnectRequest:
		fmt.Fprintf(&s, " at %08x %v<-%v", uint32(v.Listener), v.Local, v.Remote)
		if v.Space != command.UDP {
			fmt.Fprintf(&s, " peer-flow=%t", v.PeerFlowControl)
		}
	case EventUnreachable:
		fmt.Fprintf(&s, ": %v", v.Failure)
	case EventDisconnected:
		fmt.Fprintf(&s, " timewait=%v", v.Timewait.Round(time.Millisecond))
		if v.Failure != FailureNone {
			fmt.Fprintf(&s, ": %v", v.Failure)
		}
	case EventTimewaitExit:
		fmt.Fprintf(&s, " qpn=%#x", a.LocalQPN)
	}
	if v.Reason != 0 {
		fmt.Fprintf(&s, " reason %d (%v)", v.Reason, v.Reason)
	}
	if v.Status != 0 {
		fmt.Fprintf(&s, " status %d (%v)", v.Status, v.Status)
	}
	s.WriteString(info(v.Rejection) + text(v.Private))
	if v.Space == command.UDP && v.Type == EventConnectResponse {
		fmt.Fprintf(&s, " qpn=%#x qkey=%08x to %v", a.RemoteQPN, a.QKey, a.RemoteGID)
	}
	if v.Space != command.UDP && (v.Type == EventConnectRequest || v.Type == EventConnectResponse) {
		fmt.Fprintf(&s, " %v", a)
	}
	return s.String()
}

// String returns the QP's settings as one line.
func (a *Attributes) String() string {
	return fmt.Sprintf("qpn=%#x/%#x psn=%06x/%06x mtu=%v depth=%d resources=%d retry=%d rnr=%d ack=%d flow=%t label=%05x port=%d",
		a.LocalQPN, a.RemoteQPN, uint32(a.SQPSN), uint32(a.RQPSN), a.MTU, a.InitiatorDepth, a.ResponderResources, a.RetryCount, a.RNRRetry,
		a.AckTimeout, a.FlowControl, a.FlowLabel, a.SrcPort)
}

func encoded(m mad.Message) *[mad.Len]byte {
	var b [mad.Len]byte
	encode(&b, m)
	return &b
}
