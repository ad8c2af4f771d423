package cm

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// step is a command of a transcript with its arguments.
type step struct {
	*script
	t       *testing.T
	d       *datadriven.TestData
	who     named
	private []byte
}

func newStep(s *script, t *testing.T, d *datadriven.TestData) *step {
	x := &step{script: s, t: t, d: d}
	x.private = []byte(x.arg("private", ""))
	if n := x.num("private-length", 0); n > 0 {
		x.private = make([]byte, n)
	}
	x.who = s.names[x.arg("id", "c")]
	switch d.Cmd {
	case "accept", "reject", "claim", "first-packet":
		x.who = s.names[x.arg("id", "r")]
	}
	return x
}

func (s *step) arg(key, value string) string {
	s.d.MaybeScanArgs(s.t, key, &value)
	return value
}

func (s *step) num(key string, value int) int {
	n, err := strconv.ParseInt(s.arg(key, strconv.Itoa(value)), 0, 64)
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.d.Pos, key, err)
	}
	return int(n)
}

// steps maps the commands of transcripts to what they do.
var steps = map[string]func(*step) error{
	"new": (*step).begin, "listen": (*step).listen, "connect": (*step).connect, "accept": (*step).accept,
	"reject": func(s *step) error {
		return s.who.side.e.Reject(s.now, s.who.id, mad.RejectReason(s.num("reason", 0)), s.private)
	},
	"claim":        func(s *step) error { return s.who.side.e.Claim(s.who.id) },
	"establish":    func(s *step) error { return s.who.side.e.Establish(s.now, s.who.id, s.private) },
	"first-packet": func(s *step) error { return s.who.side.e.Established(s.now, s.who.id) },
	"disconnect":   func(s *step) error { return s.who.side.e.Disconnect(s.now, s.who.id, s.private) },
	"fail":         func(s *step) error { return s.who.side.e.Fail(s.now, s.who.id) },
	"destroy":      func(s *step) error { return s.who.side.e.Destroy(s.now, s.who.id) },
	"attributes": func(s *step) error {
		a, err := s.who.side.e.Attributes(s.who.id)
		fmt.Fprintf(&s.out, "%v\n", &a)
		return err
	},
	"icmp":    (*step).icmp,
	"flow":    func(s *step) error { s.flow(); return nil }, // deliver everything
	"deliver": (*step).carry, "drop": (*step).carry, "duplicate": (*step).carry, "hold": (*step).carry,
	"release": (*step).release,
	"send":    (*step).send, // a message made by hand, from a peer of b or a
	"advance": (*step).pass,
	"counters": func(s *step) error {
		side := s.side(s.arg("side", "a"))
		fmt.Fprintf(&s.out, "%s: %+v\n", side.name, *side.e.Counters())
		return nil
	},
	"left": func(s *step) error {
		for _, side := range s.sides() {
			fmt.Fprintf(&s.out, "%s: %s\n", side.name, side.e.left())
		}
		return nil
	},
}

func (s *step) do() error {
	if _, there := s.names[s.arg("id", "c")]; !there && s.d.HasArg("id") && s.d.Cmd != "listen" && s.d.Cmd != "connect" {
		return fmt.Errorf("no id is named %s", s.arg("id", ""))
	}
	f := steps[s.d.Cmd]
	if f == nil {
		s.t.Fatalf("%s: unknown command %s", s.d.Pos, s.d.Cmd)
	}
	return f(s)
}

func (s *step) begin() error {
	s.pair = newPair(func(c *Config) {
		c.MTU = ib.MTU(s.num("mtu", 5))
		c.MaxRetries = uint8(s.num("retries", 0))
		c.DisableFlowControl = s.d.HasArg("no-flow")
		c.MaxHalfOpen = s.num("half-open", 0)
		if c.GUID == 0xb {
			c.MTU = ib.MTU(s.num("b-mtu", int(c.MTU)))
		}
	})
	if s.d.HasArg("v6") {
		s.a.addr, s.b.addr = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	}
	s.qpn = 0x100
	s.names, s.requests = map[string]named{}, 0
	return nil
}

func (s *step) listen() error {
	side := s.side(s.arg("side", "b"))
	id, err := side.e.Open(space(s.arg("space", "tcp")), uint64(s.num("context", 0)))
	if err != nil {
		return err
	}
	at, err := side.e.Bind(id, netip.MustParseAddrPort(s.arg("at", "0.0.0.0:7")))
	if err != nil {
		side.e.Destroy(s.now, id)
		return err
	}
	s.names[s.arg("id", "l")] = named{side, id}
	fmt.Fprintf(&s.out, "%08x at %v\n", uint32(id), at)
	return side.e.Listen(id, s.num("backlog", 0))
}

func (s *step) connect() error {
	side := s.side(s.arg("side", "a"))
	id, err := side.e.Open(space(s.arg("space", "tcp")), 0)
	if err != nil {
		return err
	}
	s.names[s.arg("id", "c")] = named{side, id}
	s.qpn++
	timeout, err := time.ParseDuration(s.arg("timeout", "0s"))
	if err != nil {
		return err
	}
	return side.e.Connect(s.now, id, Connect{
		Remote: netip.MustParseAddrPort(s.arg("to", netip.AddrPortFrom(s.other(side).addr, 7).String())), Local: side.addr,
		QPN: uint32(s.num("qpn", int(s.qpn))), Type: qpTypes[s.arg("qp", "")], SRQ: s.d.HasArg("srq"),
		ResponderResources: uint8(s.num("resources", 4)), InitiatorDepth: uint8(s.num("depth", 8)),
		RetryCount: 7, RNRRetry: uint8(s.num("rnr", 6)), Private: s.private, Timeout: timeout,
	})
}

var qpTypes = map[string]command.QPType{"": 0, "uc": command.UC, "initiator": command.XRCInitiator, "target": command.XRCTarget}

func (s *step) accept() error {
	s.qpn++
	_, err := s.who.side.e.Accept(s.now, s.who.id, Accept{QPN: s.qpn, SRQ: s.d.HasArg("srq"),
		ResponderResources: uint8(s.num("resources", 16)), InitiatorDepth: uint8(s.num("depth", 2)), RNRRetry: uint8(s.num("rnr", 7)),
		Private: s.private})
	return err
}

func (s *step) icmp() error {
	side := s.side(s.arg("side", "a"))
	var quoted []byte
	if s.d.HasArg("quoted") { // the message dropped last
		quoted = s.lost[:link.QuotedMAD]
	}
	side.e.Unreachable(s.now, s.other(side).addr, link.UnreachableKind(s.num("kind", 1)), quoted)
	return nil
}

// carry delivers, drops, duplicates or holds the next messages.
func (s *step) carry() error {
	for range s.num("n", 1) {
		s.collect()
		if len(s.wire) == 0 {
			return errors.New("nothing is sent")
		}
		f := s.take(0)
		s.print(f, map[string]string{"deliver": "", "drop": " (lost)", "duplicate": " (twice)", "hold": " (held)"}[s.d.Cmd])
		switch s.d.Cmd {
		case "deliver":
			s.deliver(f)
		case "duplicate":
			s.deliver(f)
			s.deliver(f)
		case "drop":
			s.lost = f.d.MAD[:]
		case "hold":
			s.held = append(s.held, f)
		}
	}
	return nil
}

func (s *step) release() error {
	for _, f := range s.held {
		s.print(f, " (late)")
		s.deliver(f)
	}
	s.held = nil
	return nil
}

// pass lets time pass.
func (s *step) pass() error {
	until, err := time.ParseDuration(s.arg("by", ""))
	if err != nil {
		return err
	}
	s.wait(s.now.Add(until), s.d.HasArg("deaf"))
	return nil
}

// send delivers a message to b (or a) as if the other side, or the address "from", had sent it.
func (s *step) send() error {
	to := s.side(s.arg("to", "b"))
	from := netip.MustParseAddr(s.arg("from", s.other(to).addr.String()))
	c := s.names[s.arg("about", "r")]
	var known conn
	if c.side != nil && c.side.e.ids.Get(uint32(c.id)) != nil {
		known = *c.side.e.ids.Get(uint32(c.id))
	}
	m, err := s.message(to, from, &known)
	if err != nil {
		return err
	}
	b := encoded(m)
	b[2] = byte(s.num("class-version", 2))
	fmt.Fprintf(&s.out, ">%s %s\n", to.name, describe(b[:]))
	to.e.Receive(s.now, b[:], Peer{Local: to.addr, Remote: from, QPN: uint32(s.num("from-qpn", 1))})
	return nil
}

// message returns the message that the step names, with the fields of the given connection.
func (s *step) message(to *side, from netip.Addr, known *conn) (mad.Message, error) {
	theirs, ours := uint32(known.remoteID), uint32(known.id)
	switch s.arg("message", "") {
	case "REQ":
		return s.request(to, from), nil
	case "REP":
		return &mad.REP{TransactionID: uint64(s.num("tid", int(known.tid))), LocalCommID: uint32(s.num("theirs", 0x77)),
			RemoteCommID: uint32(s.num("comm", int(ours))),
			LocalCAGUID:  0xb, LocalQPN: ib.QPN(s.num("qpn", 0x900)), LocalEECN: uint32(s.num("eecn", 0))}, nil
	case "RTU":
		return &mad.RTU{TransactionID: 9, LocalCommID: theirs, RemoteCommID: ours}, nil
	case "DREQ":
		return &mad.DREQ{TransactionID: 9, LocalCommID: uint32(s.num("theirs", int(theirs))),
			RemoteCommID: uint32(s.num("comm", int(ours))), RemoteQPN: ib.QPN(s.num("qpn", int(known.attr.LocalQPN)))}, nil
	case "DREP":
		return &mad.DREP{TransactionID: uint64(s.num("tid", 9)), LocalCommID: theirs, RemoteCommID: ours}, nil
	case "MRA":
		return &mad.MRA{TransactionID: 9, LocalCommID: 0x77, RemoteCommID: ours, Message: uint8(s.num("of", 0)),
			ServiceTimeout: uint8(s.num("timeout", 20))}, nil
	case "REJ":
		return &mad.REJ{TransactionID: uint64(s.num("tid", int(known.tid))), LocalCommID: theirs, RemoteCommID: ours,
			Reason:     mad.RejectReason(s.num("reason", 28)),
			InfoLength: uint8(s.num("info-length", 0)), Info: [mad.REJInfoLen]byte{byte(s.num("info", 0))}}, nil
	case "SIDR_REP":
		return &mad.SIDRREP{TransactionID: uint64(s.num("tid", int(known.tid))), RequestID: ours, QPN: ib.QPN(s.num("qpn", 0x900)),
			ServiceID: mad.ServiceID(mad.PortSpaceUDP, uint16(s.num("port", 7)))}, nil
	case "LAP":
		return &mad.LAP{TransactionID: 9, LocalCommID: theirs, RemoteCommID: ours}, nil
	}
	return nil, errors.New("which message?")
}

// request returns a REQ from an address.
func (s *step) request(to *side, from netip.Addr) *mad.REQ {
	req := mad.REQ{TransactionID: 9, LocalCommID: uint32(s.num("comm", 0x77)), ServiceID: mad.ServiceID(
		mad.PortSpace(space(s.arg("space", "tcp"))), uint16(s.num("port", 7))),
		LocalCAGUID: 0xa, LocalQPN: ib.QPN(s.num("qpn", 0x900)), StartingPSN: 5, PKey: ib.PKey(s.num("pkey", 0xffff)),
		PathMTU:       ib.MTU(s.num("mtu", 3)),
		TransportType: mad.TransportType(s.num("type", 0)), ExtendedType: uint8(s.num("extended", 0)), MaxCMRetries: 15, LocalCMResponseTimeout: 17,
		Primary: mad.Path{LocalGID: ib.GIDFromAddr(netip.MustParseAddr(s.arg("gid", from.String()))),
			RemoteGID: ib.GIDFromAddr(netip.MustParseAddr(s.arg("to-gid", to.addr.String()))), AckTimeout: uint8(s.num("ack", 15))}}
	mad.IPHeader{Source: netip.AddrPortFrom(netip.MustParseAddr(s.arg("source", from.String())), uint16(s.num("source-port", 1000))),
		Destination: to.addr}.Append(req.PrivateData[:0])
	if s.d.HasArg("alternate") {
		req.Alternate = req.Primary
	}
	if s.d.HasArg("no-ip-header") {
		req.PrivateData[0] = 0x10
	}
	return &req
}
