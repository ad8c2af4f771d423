package cm

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/captures"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// said is a MAD of a recording.
type said struct {
	from, to netip.Addr
	b        []byte
}

// conversation returns the CM MADs of a recording of two Linux Soft-RoCE hosts.
func conversation(t *testing.T, name string) []said {
	t.Helper()
	const ip, udp, bth, deth = 14, 34, 42, 54 // offsets; the recordings have no VLANs and no IP options
	all, err := captures.All()
	if err != nil {
		t.Fatal(err)
	}
	var talk []said
	for _, r := range all {
		if r.Name != name {
			continue
		}
		for _, f := range r.Frames {
			if len(f) < deth+8+mad.Len || f[12] != 8 || f[udp+2] != 0x12 || f[udp+3] != 0xb7 || f[bth] != 0x64 || f[bth+7] != 1 {
				continue
			}
			src, dst := netip.AddrFrom4([4]byte(f[ip+12:])), netip.AddrFrom4([4]byte(f[ip+16:]))
			talk = append(talk, said{src, dst, f[deth+8:][:mad.Len]})
		}
	}
	if len(talk) == 0 {
		t.Fatalf("%s: no CM messages", name)
	}
	return talk
}

// actor is an engine in the place of one of the two hosts: with its GUID, settings and random numbers it must send
// byte for byte what Linux sent.
type actor struct {
	t    *testing.T
	e    *Engine
	addr netip.Addr
	rand []uint64 // the next random numbers
	id   ID
	now  clock.Time
}

func newActor(t *testing.T, addr netip.Addr, guid uint64) *actor {
	a := &actor{t: t, addr: addr}
	e, err := New(Config{GUID: guid, MTU: ib.MTU1024, ResponseTimeout: 20, PacketLifetime: 18, AckDelay: 15, DisableFlowControl: true,
		Rand: func() uint64 {
			if len(a.rand) == 0 {
				return 0
			}
			n := a.rand[0]
			a.rand = a.rand[1:]
			return n
		}})
	if err != nil {
		t.Fatal(err)
	}
	a.e = e
	return a
}

// nextTID makes the engine's next transaction ID the recorded one.
func (a *actor) nextTID(b []byte) {
	h, err := mad.ParseHeader(b)
	a.must(err)
	a.e.nextTID = h.TransactionID - 1
}

func (a *actor) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *actor) hears(m said) { a.e.Receive(a.now, m.b, Peer{Local: m.to, Remote: m.from, QPN: 1}) }

// says checks that the engine sends the recorded message and nothing else.
func (a *actor) says(m said) {
	a.t.Helper()
	var out [2]Datagram
	if n := a.e.Transmit(out[:]); n != 1 {
		a.t.Fatalf("%d messages instead of %s", n, describe(m.b))
	}
	if out[0].Remote != m.to || out[0].Local != m.from || !bytes.Equal(out[0].MAD[:], m.b) {
		a.t.Fatalf("%v>%v\nwant %s\ngot  %s\n%s", out[0].Local, out[0].Remote, describe(m.b), describe(out[0].MAD[:]),
			cmp.Diff(m.b, out[0].MAD[:]))
	}
}

// sees checks that the engine has one event, of type want, and returns it.
func (a *actor) sees(want EventType) Event {
	a.t.Helper()
	var out [2]Event
	if n := a.e.Events(out[:]); n != 1 || out[0].Type != want {
		a.t.Fatalf("%d events, %v, instead of %v", n, out[:n], want)
	}
	return out[0]
}

// connects lets the program connect and checks the recorded REQ.
func (a *actor) connects(m said) {
	a.t.Helper()
	req, err := mad.ParseREQ(m.b)
	a.must(err)
	hdr, err := mad.ParseIPHeader(req.PrivateData[:])
	a.must(err)
	_, port, _ := mad.ParseServiceID(req.ServiceID)
	a.rand = []uint64{uint64(req.LocalCommID)}
	a.nextTID(m.b)
	a.id, err = a.e.Open(command.TCP, 0)
	a.must(err)
	_, err = a.e.Bind(a.id, hdr.Source)
	a.must(err)
	a.rand = []uint64{uint64(req.StartingPSN)}
	a.must(a.e.Connect(a.now, a.id, Connect{
		Remote: netip.AddrPortFrom(hdr.Destination, port), QPN: uint32(req.LocalQPN),
		ResponderResources: req.ResponderResources, InitiatorDepth: req.InitiatorDepth,
		RetryCount: req.RetryCount, RNRRetry: req.RNRRetryCount, HopLimit: req.Primary.HopLimit, Private: req.PrivateData[mad.IPHeaderLen:],
	}))
	a.says(m)
}

// accepts delivers the recorded REQ and checks that the recorded REP is sent.
func (a *actor) accepts(m, answer said) {
	a.t.Helper()
	req, err := mad.ParseREQ(m.b)
	a.must(err)
	rep, err := mad.ParseREP(answer.b)
	a.must(err)
	_, port, _ := mad.ParseServiceID(req.ServiceID)
	l, err := a.e.Open(command.TCP, 0)
	a.must(err)
	_, err = a.e.Bind(l, netip.AddrPortFrom(netip.IPv4Unspecified(), port))
	if err == nil {
		a.must(a.e.Listen(l, 0))
	}
	a.rand = []uint64{uint64(rep.LocalCommID), uint64(rep.StartingPSN)}
	a.hears(m)
	v := a.sees(EventConnectRequest)
	if v.Conn.RemoteQPN != uint32(req.LocalQPN) || v.Conn.SQPSN != req.StartingPSN || v.Conn.AckTimeout != 19 ||
		v.Conn.ResponderResources != req.InitiatorDepth || v.Conn.InitiatorDepth != req.ResponderResources || v.Remote.Addr() != m.from {
		a.t.Fatalf("%v from %s", v, describe(m.b))
	}
	a.id = v.ID
	_, err = a.e.Accept(a.now, v.ID, Accept{QPN: uint32(rep.LocalQPN), ResponderResources: rep.ResponderResources,
		InitiatorDepth: rep.InitiatorDepth, RNRRetry: rep.RNRRetryCount, Private: rep.PrivateData[:]})
	a.must(err)
	a.says(answer)
}

// answered delivers the recorded REP and checks that the recorded RTU is sent.
func (a *actor) answered(m, answer said) {
	a.t.Helper()
	rep, err := mad.ParseREP(m.b)
	a.must(err)
	a.hears(m)
	v := a.sees(EventConnectResponse)
	if v.Conn.RemoteQPN != uint32(rep.LocalQPN) || v.Conn.SQPSN != rep.StartingPSN || v.Conn.RNRRetry != rep.RNRRetryCount ||
		v.Conn.AckTimeout != 19 {
		a.t.Fatalf("%v from %s", v, describe(m.b))
	}
	a.must(a.e.Establish(a.now, a.id, nil))
	a.sees(EventEstablished)
	a.says(answer)
}

// asks lets the program disconnect and checks the recorded DREQ.
func (a *actor) asks(m said) {
	a.t.Helper()
	a.nextTID(m.b)
	a.must(a.e.Disconnect(a.now, a.id, nil))
	a.says(m)
}

// TestReplayLinux puts an engine in the place of each of the two hosts of real conversations in turn: it accepts
// every message of Linux Soft-RoCE and, given the same choices, sends the same 256 bytes.
func TestReplayLinux(t *testing.T) {
	client, server := netip.MustParseAddr("10.99.0.3"), netip.MustParseAddr("10.99.0.2")
	const clientGUID, serverGUID = 0x5054c2fffe4118b0, 0x505410fffe58d96c

	// REQ, REP, RTU, DREQ, DREP; the map says who disconnects.
	for name, first := range map[string]netip.Addr{"ucmatose": server, "rping": client} {
		talk := conversation(t, name)
		if len(talk) != 5 {
			t.Fatalf("%s: %d messages, want 5", name, len(talk))
		}
		end := func(a *actor) {
			if a.addr == first {
				a.asks(talk[3])
				a.hears(talk[4])
				a.sees(EventDisconnected)
				return
			}
			a.hears(talk[3])
			a.sees(EventDisconnected)
			a.says(talk[4])
		}
		t.Run(name+"/active", func(t *testing.T) {
			a := newActor(t, client, clientGUID)
			a.connects(talk[0])
			a.answered(talk[1], talk[2])
			end(a)
		})
		t.Run(name+"/passive", func(t *testing.T) {
			a := newActor(t, server, serverGUID)
			a.accepts(talk[0], talk[1])
			a.hears(talk[2])
			a.sees(EventEstablished)
			end(a)
		})
	}

	// There is no listener.
	t.Run("reject/active", func(t *testing.T) {
		talk := conversation(t, "reject")
		a := newActor(t, client, clientGUID)
		a.connects(talk[0])
		a.hears(talk[1])
		if v := a.sees(EventRejected); v.Reason != mad.RejectInvalidServiceID {
			t.Fatalf("event %v, want a rejection for the service ID", v)
		}
	})
	t.Run("reject/passive", func(t *testing.T) {
		talk := conversation(t, "reject")
		a := newActor(t, server, serverGUID)
		a.hears(talk[0])
		a.says(talk[1])
	})

	// Two connections: the server ends the second, and then both ends end the first at the same time.
	t.Run("sendbw_cm/active", func(t *testing.T) {
		talk := conversation(t, "sendbw_cm")
		a := newActor(t, client, clientGUID)
		a.connects(talk[0])
		a.answered(talk[1], talk[2])
		firstID := a.id
		a.connects(talk[3])
		a.answered(talk[4], talk[5])
		a.hears(talk[6])
		a.sees(EventDisconnected)
		a.says(talk[7])
		a.id = firstID
		a.asks(talk[8])
		a.hears(talk[9]) // crossed with ours
		a.sees(EventDisconnected)
		a.says(talk[11])
		a.hears(talk[10]) // late, without effect
	})
	t.Run("sendbw_cm/passive", func(t *testing.T) {
		talk := conversation(t, "sendbw_cm")
		a := newActor(t, server, serverGUID)
		a.accepts(talk[0], talk[1])
		a.hears(talk[2])
		a.sees(EventEstablished)
		firstID := a.id
		a.accepts(talk[3], talk[4])
		a.hears(talk[5])
		a.sees(EventEstablished)
		a.asks(talk[6])
		a.hears(talk[7])
		a.sees(EventDisconnected)
		a.id = firstID
		a.asks(talk[9])
		a.hears(talk[8]) // crossed with ours
		a.sees(EventDisconnected)
		a.says(talk[10])
		a.hears(talk[11])
	})

	// A connection from a plain program, then an attempt in the other direction that is given up.
	t.Run("host_cm_req", func(t *testing.T) {
		talk := conversation(t, "host_cm_req")
		a := newActor(t, server, serverGUID)
		a.accepts(talk[0], talk[1])
		a.hears(talk[2])
		a.sees(EventEstablished)
		a.asks(talk[3])
		a.connects(talk[4])
		a.must(a.e.Destroy(a.now, a.id))
		a.says(talk[5])
	})
	t.Run("host_cm_req/peer", func(t *testing.T) {
		talk := conversation(t, "host_cm_req")
		a := newActor(t, netip.MustParseAddr("10.99.0.1"), 1)
		l, err := a.e.Open(command.TCP, 0)
		a.must(err)
		_, err = a.e.Bind(l, netip.MustParseAddrPort("10.99.0.1:7174"))
		a.must(err)
		a.must(a.e.Listen(l, 0))
		a.hears(talk[4])
		a.sees(EventConnectRequest)
		a.hears(talk[5]) // names no id of ours: found by its GUID
		if v := a.sees(EventConnectError); v.Reason != mad.RejectTimeout {
			t.Fatalf("event %v, want an error for a time-out", v)
		}
	})
}
