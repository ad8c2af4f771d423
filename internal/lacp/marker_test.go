package lacp

import (
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// marker takes the marker that a system sends now.
func marker(t *testing.T, s *System, now clock.Time) (port int, m lacp.Marker, frame []byte) {
	t.Helper()
	for i, f := s.Transmit(now); f != nil; i, f = s.Transmit(now) {
		if m, err := lacp.ParseMarker(f[eth.EthernetLen:]); err == nil {
			return i, m, f
		}
	}
	t.Fatal("no marker is sent")
	return 0, m, nil
}

// 6.5.4.1: a marker names the port, the system and a number; the response to the newest one, as a responder makes it, and nothing else,
// says that it has arrived.
func TestMarkerGenerator(t *testing.T) {
	s, other := one(t, 1, 2, nil), one(t, 9, 2, nil)
	for i := range 2 {
		s.SetUp(0, i, true, 1e9)
		other.SetUp(0, i, true, 1e9)
	}
	n := s.Mark(1)
	if s.Deadline() != 0 || n == 0 || s.Answered(1) != 0 {
		t.Errorf("marker %d is due at %v, and answered %d", n, s.Deadline(), s.Answered(1))
	}
	i, m, f := marker(t, s, 0)
	want := lacp.Marker{Port: 2, System: eth.MAC{2, 0, 0, 0, 0, 1}, Transaction: n}
	if i != 1 || m != want || eth.MAC(f[6:]) != s.ports[1].mac {
		t.Errorf("port %d sends %+v, want port 1 and %+v", i, m, want)
	}
	if err := other.Receive(0, 1, f[eth.EthernetLen:]); err != nil {
		t.Fatal(err)
	}
	_, answer, f := marker(t, other, 0)
	for what, change := range map[string]func(*lacp.Marker){
		"a marker":           func(m *lacp.Marker) { m.Response = false },
		"another port":       func(m *lacp.Marker) { m.Port = 1 },
		"another system":     func(m *lacp.Marker) { m.System[5] = 7 },
		"another number":     func(m *lacp.Marker) { m.Transaction++ },
		"a number before it": func(m *lacp.Marker) { m.Transaction-- },
	} {
		x := answer
		change(&x)
		if err := s.Receive(0, 1, x.Frame(eth.MAC{})[eth.EthernetLen:]); err != nil || s.Answered(1) != 0 {
			t.Errorf("%s: %v, and answered %d", what, err, s.Answered(1))
		}
	}
	if err := s.Receive(0, 0, f[eth.EthernetLen:]); err != nil || s.Answered(0) != 0 || s.Answered(1) != 0 {
		t.Error("a response that comes to another port is taken")
	}
	if err := s.Receive(0, 1, f[eth.EthernetLen:]); err != nil || s.Answered(1) != n {
		t.Errorf("%v, and answered %d, want %d", err, s.Answered(1), n)
	}
	again := s.Mark(1)
	if err := s.Receive(0, 1, f[eth.EthernetLen:]); err != nil || s.Answered(1) == again {
		t.Error("a marker that was not sent is answered")
	}
	s.SetUp(0, 1, false, 0)
	if s.ports[1].marks {
		t.Error("a port without a link is to send a marker")
	}
}

// FuzzReceive: whatever arrives, a system answers with frames that can be read, of its own ports, and waits for no more than it may.
func FuzzReceive(f *testing.F) {
	mine := lacp.Marker{Response: true, Port: 1, System: eth.MAC{2, 0, 0, 0, 0, 1}, Transaction: 1}
	f.Add(mine.Frame(eth.MAC{})[eth.EthernetLen:])
	mine.Response = false
	f.Add(mine.Frame(eth.MAC{})[eth.EthernetLen:])
	f.Add(peer(activity|aggregation|synchronization, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := one(t, 1, 2, nil)
		s.SetUp(0, 0, true, 1e9)
		number := s.Mark(0)
		for now := clock.Time(0); now < 5*second; now += second / 2 {
			s.Advance(now)
			for i, frame := s.Transmit(now); frame != nil; i, frame = s.Transmit(now) {
				_, unit := lacp.Parse(frame[eth.EthernetLen:])
				_, marker := lacp.ParseMarker(frame[eth.EthernetLen:])
				if i != 0 || unit != nil && marker != nil {
					t.Fatalf("port %d sends % x", i, frame)
				}
			}
			for range 2 * mostAnswers {
				_ = s.Receive(now, 0, b)
			}
			if len(s.answers) > mostAnswers || s.Answered(0) != 0 && s.Answered(0) != number {
				t.Fatalf("%d responses wait, and marker %d is answered", len(s.answers), s.Answered(0))
			}
		}
	})
}
