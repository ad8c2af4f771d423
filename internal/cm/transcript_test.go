package cm

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestTranscripts plays the named cases of the protocol between two engines, a
// (10.0.0.1) and b (10.0.0.2), and compares every message and event.
// Run with -rewrite to write the transcripts anew.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		s := &script{names: map[string]named{}}
		datadriven.RunTest(t, path, s.run)
	})
}

// script carries out the commands of a transcript.
type script struct {
	*pair
	out   strings.Builder
	names map[string]named
	held  []flight
	lost  []byte // the message that was dropped last
	qpn   uint32
	// requests counts those that were shown: the latest is named r, and r1, r2, ... in turn.
	requests int
}

type named struct {
	side *side
	id   ID
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	if err := s.do(t, d); err != nil {
		fmt.Fprintf(&s.out, "error: %v\n", err)
	}
	if s.pair != nil {
		s.report()
	}
	if s.out.Len() == 0 {
		return "ok\n"
	}
	return s.out.String()
}

// report prints the events and names the new ids.
func (s *script) report() {
	for _, side := range s.sides() {
		for _, v := range side.events() {
			fmt.Fprintf(&s.out, "%s: %v\n", side.name, v)
			if v.Type == EventConnectRequest {
				s.names["r"] = named{side, v.ID}
				s.requests++
				s.names[fmt.Sprintf("r%d", s.requests)] = named{side, v.ID}
			}
		}
	}
}

func (s *script) do(t *testing.T, d *datadriven.TestData) error {
	arg := func(key, value string) string {
		d.MaybeScanArgs(t, key, &value)
		return value
	}
	num := func(key string, value int) int {
		n, err := strconv.ParseInt(arg(key, strconv.Itoa(value)), 0, 64)
		if err != nil {
			t.Fatalf("%s: %s: %v", d.Pos, key, err)
		}
		return int(n)
	}
	private := []byte(arg("private", ""))
	if n := num("private-length", 0); n > 0 {
		private = make([]byte, n)
	}
	who := s.names[arg("id", "c")]
	switch d.Cmd {
	case "accept", "reject", "claim", "first-packet":
		who = s.names[arg("id", "r")]
	}
	if _, there := s.names[arg("id", "c")]; !there && d.HasArg("id") && d.Cmd != "listen" && d.Cmd != "connect" {
		return fmt.Errorf("no id is named %s", arg("id", ""))
	}
	switch d.Cmd {
	case "new":
		s.pair = newPair(func(c *Config) {
			c.MTU = ib.MTU(num("mtu", 5))
			c.MaxRetries = uint8(num("retries", 0))
			c.DisableFlowControl = d.HasArg("no-flow")
			c.MaxHalfOpen = num("half-open", 0)
			if c.GUID == 0xb {
				c.MTU = ib.MTU(num("b-mtu", int(c.MTU)))
			}
		})
		if d.HasArg("v6") {
			s.a.addr, s.b.addr = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
		}
		s.qpn = 0x100
		s.names, s.requests = map[string]named{}, 0
	case "listen":
		side := s.side(arg("side", "b"))
		id, err := side.e.Open(space(arg("space", "tcp")), uint64(num("context", 0)))
		if err != nil {
			return err
		}
		at, err := side.e.Bind(id, netip.MustParseAddrPort(arg("at", "0.0.0.0:7")))
		if err != nil {
			side.e.Destroy(s.now, id)
			return err
		}
		s.names[arg("id", "l")] = named{side, id}
		fmt.Fprintf(&s.out, "%08x at %v\n", uint32(id), at)
		return side.e.Listen(id, num("backlog", 0))
	case "connect":
		side := s.side(arg("side", "a"))
		id, err := side.e.Open(space(arg("space", "tcp")), 0)
		if err != nil {
			return err
		}
		s.names[arg("id", "c")] = named{side, id}
		s.qpn++
		timeout, err := time.ParseDuration(arg("timeout", "0s"))
		if err != nil {
			return err
		}
		return side.e.Connect(s.now, id, Connect{
			Remote: netip.MustParseAddrPort(arg("to", netip.AddrPortFrom(s.other(side).addr, 7).String())), Local: side.addr,
			QPN: uint32(num("qpn", int(s.qpn))), UC: d.HasArg("uc"), SRQ: d.HasArg("srq"),
			ResponderResources: uint8(num("resources", 4)), InitiatorDepth: uint8(num("depth", 8)),
			RetryCount: 7, RNRRetry: uint8(num("rnr", 6)), Private: private, Timeout: timeout,
		})
	case "accept":
		s.qpn++
		_, err := who.side.e.Accept(s.now, who.id, Accept{QPN: s.qpn, SRQ: d.HasArg("srq"),
			ResponderResources: uint8(num("resources", 16)), InitiatorDepth: uint8(num("depth", 2)), RNRRetry: uint8(num("rnr", 7)), Private: private})
		return err
	case "reject":
		return who.side.e.Reject(s.now, who.id, mad.RejectReason(num("reason", 0)), private)
	case "claim":
		return who.side.e.Claim(who.id)
	case "establish":
		return who.side.e.Establish(s.now, who.id, private)
	case "first-packet":
		return who.side.e.Established(s.now, who.id)
	case "disconnect":
		return who.side.e.Disconnect(s.now, who.id, private)
	case "fail":
		return who.side.e.Fail(s.now, who.id)
	case "destroy":
		return who.side.e.Destroy(s.now, who.id)
	case "attributes":
		a, err := who.side.e.Attributes(who.id)
		fmt.Fprintf(&s.out, "%v\n", &a)
		return err
	case "icmp":
		side := s.side(arg("side", "a"))
		var quoted []byte
		if d.HasArg("quoted") { // what was dropped last
			quoted = s.lost[:link.QuotedMAD]
		}
		side.e.Unreachable(s.now, s.other(side).addr, link.UnreachableKind(num("kind", 1)), quoted)
	case "flow": // deliver everything
		s.flow()
	case "deliver", "drop", "duplicate", "hold":
		for range num("n", 1) {
			s.collect()
			if len(s.wire) == 0 {
				return errors.New("nothing is sent")
			}
			f := s.take(0)
			s.print(f, map[string]string{"deliver": "", "drop": " (lost)", "duplicate": " (twice)", "hold": " (held)"}[d.Cmd])
			switch d.Cmd {
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
	case "release":
		for _, f := range s.held {
			s.print(f, " (late)")
			s.deliver(f)
		}
		s.held = nil
	case "send": // a message made by hand, from a peer of b or a
		return s.send(d, arg, num)
	case "advance":
		until, err := time.ParseDuration(arg("by", ""))
		if err != nil {
			return err
		}
		s.wait(s.now.Add(until), d.HasArg("deaf"))
	case "counters":
		side := s.side(arg("side", "a"))
		fmt.Fprintf(&s.out, "%s: %+v\n", side.name, *side.e.Counters())
	case "left":
		for _, side := range s.sides() {
			fmt.Fprintf(&s.out, "%s: %s\n", side.name, side.e.left())
		}
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	return nil
}

// wait lets time pass. deaf: what is sent meanwhile is lost.
func (s *script) wait(until clock.Time, deaf bool) {
	for s.deadline() <= until {
		s.advance(s.deadline())
		fmt.Fprintf(&s.out, "[%v]\n", time.Duration(s.now).Round(time.Millisecond))
		s.report()
		if deaf {
			s.collect()
			for len(s.wire) > 0 {
				s.print(s.take(0), " (lost)")
			}
		} else {
			s.flow()
		}
	}
	s.now = until
}

func (s *script) flow() {
	for s.collect(); len(s.wire) > 0; s.collect() {
		f := s.take(0)
		s.print(f, "")
		s.deliver(f)
		s.report()
	}
}

func (s *script) print(f flight, note string) {
	fmt.Fprintf(&s.out, "%s>%s %s%s\n", f.from.name, s.other(f.from).name, describe(f.d.MAD[:]), note)
}

func (s *script) side(name string) *side {
	if name == "a" {
		return s.a
	}
	return s.b
}

func space(name string) command.PortSpace {
	if name == "udp" {
		return command.UDP
	}
	return command.TCP
}

// send delivers a message to b (or a) as if the other side, or the address
// "from", had sent it.
func (s *script) send(d *datadriven.TestData, arg func(string, string) string, num func(string, int) int) error {
	to := s.side(arg("to", "b"))
	from := netip.MustParseAddr(arg("from", s.other(to).addr.String()))
	c := s.names[arg("about", "r")]
	var known conn
	if c.side != nil && c.side.e.ids.Get(c.id) != nil {
		known = *c.side.e.ids.Get(c.id)
	}
	theirs, ours := uint32(known.remoteID), uint32(known.id)
	var m mad.Message
	switch arg("message", "") {
	case "REQ":
		req := mad.REQ{TransactionID: 9, LocalCommID: uint32(num("comm", 0x77)), ServiceID: mad.ServiceID(mad.PortSpaceTCP, uint16(num("port", 7))),
			LocalCAGUID: 0xa, LocalQPN: ib.QPN(num("qpn", 0x900)), StartingPSN: 5, PKey: ib.PKey(num("pkey", 0xffff)), PathMTU: ib.MTU(num("mtu", 3)),
			TransportType: mad.TransportType(num("type", 0)), MaxCMRetries: 15, LocalCMResponseTimeout: 17,
			Primary: mad.Path{LocalGID: ib.GIDFromAddr(netip.MustParseAddr(arg("gid", from.String()))), RemoteGID: ib.GIDFromAddr(netip.MustParseAddr(arg("to-gid", to.addr.String()))), AckTimeout: uint8(num("ack", 15))}}
		mad.IPHeader{Source: netip.AddrPortFrom(netip.MustParseAddr(arg("source", from.String())), uint16(num("source-port", 1000))), Destination: to.addr}.Append(req.PrivateData[:0])
		if d.HasArg("alternate") {
			req.Alternate = req.Primary
		}
		if d.HasArg("no-ip-header") {
			req.PrivateData[0] = 0x10
		}
		m = &req
	case "REP":
		m = &mad.REP{TransactionID: uint64(num("tid", int(known.tid))), LocalCommID: uint32(num("theirs", 0x77)), RemoteCommID: uint32(num("comm", int(ours))),
			LocalCAGUID: 0xb, LocalQPN: ib.QPN(num("qpn", 0x900))}
	case "RTU":
		m = &mad.RTU{TransactionID: 9, LocalCommID: theirs, RemoteCommID: ours}
	case "DREQ":
		m = &mad.DREQ{TransactionID: 9, LocalCommID: uint32(num("theirs", int(theirs))), RemoteCommID: uint32(num("comm", int(ours))), RemoteQPN: ib.QPN(num("qpn", int(known.attr.LocalQPN)))}
	case "DREP":
		m = &mad.DREP{TransactionID: uint64(num("tid", 9)), LocalCommID: theirs, RemoteCommID: ours}
	case "MRA":
		m = &mad.MRA{TransactionID: 9, LocalCommID: 0x77, RemoteCommID: ours, Message: uint8(num("of", 0)), ServiceTimeout: uint8(num("timeout", 20))}
	case "REJ":
		m = &mad.REJ{TransactionID: uint64(num("tid", int(known.tid))), LocalCommID: theirs, RemoteCommID: ours, Reason: mad.RejectReason(num("reason", 28)),
			InfoLength: uint8(num("info-length", 0)), Info: [mad.REJInfoLen]byte{byte(num("info", 0))}}
	case "SIDR_REP":
		m = &mad.SIDRREP{TransactionID: uint64(num("tid", int(known.tid))), RequestID: ours, QPN: ib.QPN(num("qpn", 0x900)), ServiceID: mad.ServiceID(mad.PortSpaceUDP, uint16(num("port", 7)))}
	case "LAP":
		m = &mad.LAP{TransactionID: 9, LocalCommID: theirs, RemoteCommID: ours}
	default:
		return errors.New("which message?")
	}
	b := encoded(m)
	b[2] = byte(num("class-version", 2))
	fmt.Fprintf(&s.out, ">%s %s\n", to.name, describe(b[:]))
	to.e.Receive(s.now, b[:], Peer{Local: to.addr, Remote: from, QPN: uint32(num("from-qpn", 1))})
	return nil
}
