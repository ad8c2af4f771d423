package cm

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestRelease: whichever DREQ and DREP are lost, and whenever the peer forgets the connection, the side that
// disconnects gets one event within releaseTimeout, keeps its QP number in time-wait and gives it back. While the
// peer still answers, the event comes fast.
func TestRelease(t *testing.T) {
	const linuxTimewait = 256 * time.Millisecond // the shorter of Linux's two, see firstPace
	for _, c := range []struct {
		name    string
		timeout uint8                                     // of the peer's response
		retries uint8                                     // ours
		answers func(since time.Duration, asked int) bool // whether DREP number asked arrives
		within  time.Duration                             // within which the event must come
		failure Failure
	}{
		{"nothing lost", 20, 15, func(time.Duration, int) bool { return true }, 0, FailureNone},
		{"the first DREQ or DREP lost", 20, 15, func(_ time.Duration, n int) bool { return n > 1 }, 100 * time.Millisecond, FailureNone},
		{"the first two lost, and the peer forgets after its time-wait", 20, 15,
			func(d time.Duration, n int) bool { return n > 2 && d < linuxTimewait }, linuxTimewait, FailureNone},
		{"the first six lost", 20, 15, func(_ time.Duration, n int) bool { return n > 6 }, 5 * time.Second, FailureNone},
		{"a peer that is silent", 20, 15, func(time.Duration, int) bool { return false }, releaseTimeout, FailureTimeout},
		{"a silent peer that claimed 2.4 hours", 31, 15, func(time.Duration, int) bool { return false }, releaseTimeout, FailureTimeout},
		{"a silent peer that answers fast", 10, 15, func(time.Duration, int) bool { return false }, releaseTimeout, FailureTimeout},
		{"one retry", 17, 1, func(time.Duration, int) bool { return false }, time.Second, FailureTimeout},
		{"one retry, answered", 17, 1, func(_ time.Duration, n int) bool { return n > 1 }, 100 * time.Millisecond, FailureNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, id := established(t, c.timeout, c.retries)
			e, start := p.b.e, p.now
			if err := e.Disconnect(start, id, nil); err != nil {
				t.Fatal(err)
			}
			asked, told, over := 0, clock.Never, false
			for limit := start.Add(time.Minute); !over && p.now < limit; {
				p.wire = nil
				p.collect()
				for _, f := range p.wire {
					if asked++; c.answers(p.now.Sub(start), asked) {
						m, err := mad.DecodeCM(f.d.MAD[:])
						if err != nil {
							t.Fatal(err)
						}
						q := m.(*mad.DREQ)
						drep := encoded(&mad.DREP{TransactionID: q.TransactionID, LocalCommID: q.RemoteCommID, RemoteCommID: q.LocalCommID})
						e.Receive(p.now, drep[:], Peer{Local: p.b.addr, Remote: p.a.addr, QPN: 1})
					}
				}
				for _, v := range p.b.events() {
					switch v.Type {
					case EventDisconnected:
						if told != clock.Never {
							t.Error("two events of the end")
						}
						if told = p.now; v.Failure != c.failure {
							t.Errorf("the end is %q, want %q", v.Failure, c.failure)
						}
					case EventTimewaitExit:
						over = true
					default:
						t.Errorf("unexpected %v", v)
					}
				}
				if next := e.Deadline(); next != clock.Never {
					p.now = next
					e.Advance(next)
				}
			}
			if told == clock.Never || told.Sub(start) > c.within {
				t.Errorf("the event came after %v, want it within %v", told.Sub(start), c.within)
			}
			if !over {
				t.Error("the QP number was not given back")
			}
			if most := int(c.retries) + 1; asked > most {
				t.Errorf("%d DREQs, want at most MaxCMRetries and one, %d", asked, most)
			}
		})
	}
}

// established returns two engines with a connection that a asked for and b accepted, and b's id.
func established(t *testing.T, responseTimeout, retries uint8) (*pair, ID) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p := newPair(func(c *Config) {
		if c.GUID == 0xa {
			c.ResponseTimeout = responseTimeout
		} else {
			c.MaxRetries = retries
		}
	})
	l, err := p.b.e.Open(command.TCP, 0)
	must(err)
	_, err = p.b.e.Bind(l, netip.MustParseAddrPort("0.0.0.0:7"))
	must(err)
	must(p.b.e.Listen(l, 1))
	c, err := p.a.e.Open(command.TCP, 0)
	must(err)
	must(p.a.e.Connect(p.now, c, Connect{Remote: netip.AddrPortFrom(p.b.addr, 7), Local: p.a.addr, QPN: 0x101, RetryCount: 7}))
	p.flow()
	r := p.b.events()
	if len(r) != 1 || r[0].Type != EventConnectRequest {
		t.Fatalf("the listener's events are %v, want one request", r)
	}
	must(p.b.e.Claim(r[0].ID))
	_, err = p.b.e.Accept(p.now, r[0].ID, Accept{QPN: 0x102})
	must(err)
	p.flow()
	must(p.a.e.Establish(p.now, c, nil))
	p.flow()
	p.b.events()
	return p, r[0].ID
}

// TestLateRelease: every DREQ is answered: in time-wait, after it, after the program has destroyed its id, and for
// ids that never existed (IBA 12.9: a DREP stops the sender).
func TestLateRelease(t *testing.T) {
	p, id := established(t, 17, 15)
	at, err := p.b.e.Attributes(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.b.e.Disconnect(p.now, id, nil); err != nil {
		t.Fatal(err)
	}
	p.flow()
	remote := p.b.e.ids.Get(uint32(id)).remoteID
	asks := func(name string, m *mad.DREQ) {
		t.Helper()
		p.b.e.Receive(p.now, encoded(m)[:], Peer{Local: p.b.addr, Remote: p.a.addr, QPN: 1})
		var out [2]Datagram
		if n := p.b.e.Transmit(out[:]); n != 1 {
			t.Fatalf("%s: %d messages, want a DREP", name, n)
		}
		got, err := mad.DecodeCM(out[0].MAD[:])
		if d, is := got.(*mad.DREP); err != nil || !is || d.TransactionID != m.TransactionID || d.LocalCommID != m.RemoteCommID ||
			d.RemoteCommID != m.LocalCommID {
			t.Errorf("%s: answered with %s", name, describe(out[0].MAD[:]))
		}
	}
	dreq := mad.DREQ{TransactionID: 5, LocalCommID: remote, RemoteCommID: uint32(id), RemoteQPN: ib.QPN(at.LocalQPN)}
	asks("in time-wait", &dreq)
	p.advance(p.now.Add(time.Minute))
	asks("after it", &dreq)
	if err := p.b.e.Destroy(p.now, id); err != nil {
		t.Fatal(err)
	}
	asks("destroyed", &dreq)
	asks("never there", &mad.DREQ{TransactionID: 6, LocalCommID: 77, RemoteCommID: 78, RemoteQPN: 9})
}
