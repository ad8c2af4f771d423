package cable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

// numbered returns a frame that contains the number n and has a length derived from it.
func numbered(n uint64) []byte {
	b := bytes.Repeat([]byte{byte(n)}, minFrame+4*int(n*131%1050))
	binary.BigEndian.PutUint64(b[8:], n)
	return b
}

// line is two wires with a network between them that may be bad.
type line struct {
	*rapid.T
	now         clock.Time
	wires       [2]*Wire
	under       [2][][]byte // datagrams under way to each end
	put, next   [2]uint64   // frames sent by each; lowest number that may arrive at each
	came, heard [2]int
	said        [2]int
	bad         bool
}

func newLine(t *rapid.T, size int) *line {
	l := &line{T: t}
	window := rapid.IntRange(4*maxRecord, 40*maxRecord).Draw(t, "window")
	for i := range l.wires {
		l.wires[i] = NewWire(WireConfig{Session: uint64(i), Size: size, Limit: uint64(window), Window: window}, 0)
	}
	return l
}

// send sends up to count frames from one end, as many as fit, and hands the datagrams to the network.
func (l *line) send(end, count int) {
	w := l.wires[end]
	for range count {
		b := numbered(l.put[end])
		if !w.Fits(l.now, len(b)) {
			l.flush(end)
			if !w.Fits(l.now, len(b)) {
				break
			}
		}
		w.Put(b[:8], b[8:20], b[20:])
		l.put[end]++
	}
	l.flush(end)
}

func (l *line) flush(end int) {
	w := l.wires[end]
	for {
		b, size := w.Datagrams(l.now)
		if len(b) == 0 {
			return
		}
		w.Sent(l.now, len(b))
		for len(b) > 0 {
			n := min(size, len(b))
			l.under[1-end] = append(l.under[1-end], bytes.Clone(b[:n]))
			b = b[n:]
		}
	}
}

// arrive delivers the datagrams under way to an end. A bad network loses, delays, repeats or damages some.
func (l *line) arrive(end int) {
	all := l.under[end]
	l.under[end] = nil
	for i := 0; i < len(all); i++ {
		b := all[i]
		if l.bad {
			switch rapid.IntRange(0, 9).Draw(l.T, "fate") {
			case 0:
				continue
			case 1:
				l.under[end] = append(l.under[end], b) // later
				continue
			case 2:
				l.take(end, b)
			case 3: // messages and headers are guarded by the UDP checksum alone
				if b[0] == kindFrames && len(b) > headerLen {
					b[rapid.IntRange(headerLen, len(b)-1).Draw(l.T, "bit")] ^= 1
				}
			}
		}
		l.take(end, b)
	}
	w := l.wires[end]
	for b := w.Next(); b != nil; b = w.Next() {
		n := binary.BigEndian.Uint64(b[8:])
		if want := numbered(n); n < l.next[end] || n >= l.put[1-end] || !bytes.Equal(b, want) {
			l.Fatalf("frame %d of %d bytes, want one from %d to %d", n, len(b), l.next[end], l.put[1-end])
		}
		l.next[end] = n + 1
		l.came[end]++
		w.Drop()
		if l.came[end]%3 == 0 {
			w.Release()
		}
	}
	w.Release()
	l.flush(end)
}

func (l *line) take(end int, b []byte) {
	message, err := l.wires[end].Take(l.now, b)
	if err != nil {
		l.Fatal(err)
	}
	if message != nil {
		if want := []byte{byte(l.heard[end])}; !bytes.Equal(message, want) {
			l.Fatalf("message %v, want %v", message, want)
		}
		l.heard[end]++
	}
}

func (l *line) say(end int) {
	if l.wires[end].Say([]byte{byte(l.said[end])}) {
		l.said[end]++
	}
}

// settle lets time pass until nothing is under way.
func (l *line) settle() {
	for range 100 {
		l.now = l.now.Add(20 * time.Millisecond)
		for end := range l.wires {
			l.flush(end)
			l.arrive(end)
		}
	}
}

// TestWire: whatever the network does, frames arrive whole, in order and at most once, and messages all arrive. When
// the network is good again the credits are intact and everything arrives.
func TestWire(t *testing.T) {
	for _, size := range []int{minDatagram, 1472, 8952, MaxDatagram} {
		rapid.Check(t, func(t *rapid.T) {
			l := newLine(t, size)
			l.bad = rapid.Bool().Draw(t, "bad")
			bad := l.bad
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				end := rapid.IntRange(0, 1).Draw(t, "end")
				switch rapid.IntRange(0, 3).Draw(t, "what") {
				case 0, 1:
					l.send(end, rapid.IntRange(1, 60).Draw(t, "count"))
				case 2:
					l.arrive(end)
				case 3:
					l.say(end)
				}
				l.now = l.now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * time.Millisecond)
			}
			l.bad = false
			l.settle()
			if !bad && (l.came[0] != int(l.put[1]) || l.came[1] != int(l.put[0])) {
				t.Fatalf("%v frames arrived of %v sent by the other ends", l.came, l.put)
			}
			if l.heard[0] != l.said[1] || l.heard[1] != l.said[0] {
				t.Fatalf("%v messages arrived of %v", l.heard, l.said)
			}
			for end, w := range l.wires {
				held, lacking := w.in.held, w.position+w.window-w.limit
				if bad && held < maxRecord && lacking < maxRecord {
					held, lacking = 0, 0 // a damaged length: the rest of a frame is waited for until the next one comes
				}
				if held != 0 || lacking != 0 || w.Saying() || w.Over(l.now) {
					t.Fatalf("end %d: %d bytes held, %d to say, over %v, position %d, limit %d", end, w.in.held, len(w.says), w.Over(l.now),
						w.position, w.limit)
				}
			}
			before := l.put
			for range 30 {
				l.send(0, 50)
				l.send(1, 50)
				l.arrive(0)
				l.arrive(1)
			}
			l.settle()
			if l.put[0] < before[0]+30 || l.next[0] != l.put[1] || l.next[1] != l.put[0] {
				t.Fatalf("on a good network %v arrived of %v, from %v on", l.next, l.put, before)
			}
		})
	}
}

// TestWireWaitsForCredits: an end that takes nothing is sent no more than its window, and is asked for credits from
// time to time, also after a datagram with credits was lost.
func TestWireWaitsForCredits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLine(t, 1472)
		l.send(0, 1000)
		if w := l.wires[0]; w.position > w.limit || w.Deadline() > clock.Time(askFirst) {
			t.Fatalf("sent to position %d of limit %d, next deadline %v", w.position, w.limit, w.Deadline())
		}
		for _, b := range l.under[1] {
			l.take(1, b)
		}
		sent := l.put[0]
		l.under[1] = nil
		l.flush(1)
		l.under[0] = nil // its answer is lost
		l.send(0, 1)
		if l.put[0] != sent {
			t.Fatal("a frame was sent beyond the window")
		}
		l.settle()
		if l.send(0, 1); l.put[0] == sent {
			t.Fatal("credits that were lost with a datagram are never sent again")
		}
	})
}

// TestWireAway: an end that has not looked for long waits anew: the other end may not have had a processor either, or what it says was not
// read yet. Silence while it looks is silence.
func TestWireAway(t *testing.T) {
	w := NewWire(WireConfig{Size: 1472, Limit: 1 << 16, Window: 1 << 16}, 0)
	for now := clock.Time(0); now < clock.Time(10*silence); now = now.Add(silence) {
		if w.Over(now) != (now >= clock.Time(4*silence)) { // of each time mostAway, a quarter, is silence
			t.Errorf("over %v at %v", w.Over(now), now)
		}
	}
	w = NewWire(WireConfig{Size: 1472, Limit: 1 << 16, Window: 1 << 16}, 0)
	at := clock.Time(10 * silence)
	for now := at; now < at.Add(silence-mostAway); now = now.Add(aliveEvery) {
		if w.Over(now) {
			t.Errorf("over at %v, of which it was away for %v", now, at)
		}
	}
	if !w.Over(at.Add(silence - mostAway)) {
		t.Error("not over after silence")
	}
}

// TestWireEnds: a session is over after some time of silence, and at once after a goodbye.
func TestWireEnds(t *testing.T) {
	a := NewWire(WireConfig{Size: 1472, Limit: 1 << 16, Window: 1 << 16}, 0)
	for now := clock.Time(0); now < clock.Time(silence); now = now.Add(aliveEvery) {
		if a.Over(now) {
			t.Errorf("the session is over at %v, before the time of silence has passed", now)
		}
	}
	if a.Over(clock.Time(silence) - 1) {
		t.Error("the session is over before the time of silence has passed")
	}
	if !a.Over(clock.Time(silence)) {
		t.Error("the session is not over after the time of silence")
	}
	if b, _ := a.Datagrams(clock.Time(aliveEvery)); len(b) != headerLen {
		t.Errorf("a keep-alive has %d bytes, want %d", len(b), headerLen)
	}
	b := NewWire(WireConfig{Size: 1472, Limit: 1 << 16, Window: 1 << 16}, 0)
	if _, err := b.Take(5, a.Bye()); err != nil || !b.Over(5) || !a.Over(5) {
		t.Errorf("after a goodbye (%v): sender over %v, receiver over %v, want both", err, a.Over(5), b.Over(5))
	}
}

// TestWireRefusesMoreThanCredits: data beyond the credits is an error, whatever position the datagram claims.
func TestWireRefusesMoreThanCredits(t *testing.T) {
	const window = 4 * maxRecord
	for _, at := range []uint64{window, window + 1 - 100, 1 << 40, 1<<63 - 1} {
		w := NewWire(WireConfig{Size: 1472, Limit: window, Window: window}, 0)
		b := make([]byte, headerLen+100)
		(&header{kind: kindFrames, position: at}).put(b)
		if _, err := w.Take(0, b); !errors.Is(err, errCredits) {
			t.Errorf("position %d: error %v, want %v", at, err, errCredits)
		}
	}
}

// FuzzWire: no datagrams make a wire panic, hand out something that is not a frame, or keep more than its window.
func FuzzWire(f *testing.F) {
	a := NewWire(WireConfig{Size: 1472, Limit: 1 << 20, Window: 1 << 16}, 0)
	for i := range uint64(20) {
		b := numbered(i)
		a.Put(b, nil, nil)
	}
	all, size := a.Datagrams(0)
	for len(all) > 0 {
		n := min(size, len(all))
		f.Add(all[:n], uint16(0), byte(0))
		all = all[n:]
	}
	a.Sent(0, 1<<20)
	a.Say([]byte("hello"))
	m, _ := a.Datagrams(0)
	f.Add(bytes.Clone(m), uint16(5), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, skip uint16, flip byte) {
		w := NewWire(WireConfig{Size: 1472, Limit: 1 << 16, Window: 8 * maxRecord}, 0)
		for i := range 30 {
			c := bytes.Clone(b)
			if len(c) >= headerLen {
				binary.LittleEndian.PutUint64(c[16:], w.expected+uint64(skip)*uint64(i%3))
				c[len(c)-1] ^= flip
			}
			if _, err := w.Take(clock.Time(i), c); err != nil {
				break
			}
			for p := w.Next(); p != nil; p = w.Next() {
				if len(p) < minFrame || len(p) > MaxFrame || len(p)%4 != 0 {
					t.Fatalf("handed out a frame of %d bytes", len(p))
				}
				w.Drop()
				if i%2 == 0 {
					w.Release()
				}
			}
			if w.in.held < 0 || w.in.held > int(w.window) || len(w.in.buf) != int(w.window)+2*maxRecord {
				t.Fatalf("%d bytes held of %d", w.in.held, w.window)
			}
		}
	})
}

// TestDoor: an adapter is admitted after it has shown that it receives at its address and knows the key.
func TestDoor(t *testing.T) {
	from, other := netip.MustParseAddrPort("192.0.2.1:5"), netip.MustParseAddrPort("192.0.2.1:6")
	key := []byte("a key of some length")
	hello := Hello{Node: "hca", Port: 1, VCRC: true, Program: "test"}
	port := link.Port{MTU: ib.MTU2048, MaxMTU: ib.MTU4096, GUIDs: make([]uint64, link.GUIDRows), PKeys: make([]ib.PKey, 64), LID: 9}
	d := NewDoor(key)
	g := greeter{greeting: Greeting{Session: 77, Size: 1472, Window: 1 << 17, Hello: hello}, key: key}
	first := g.greeting.Greet(g.cookie, g.key)
	_, answer, ok := d.Greeted(0, from, bytes.Clone(first))
	if ok || len(answer) > len(first) {
		t.Fatalf("admitted without a challenge: %v; answer of %d bytes to %d", ok, len(answer), len(first))
	}
	if _, done, again, err := g.answered(answer); done || !again || err != nil {
		t.Fatalf("after the challenge: done %v, again %v, error %v; want another greeting", done, again, err)
	}
	second := g.greeting.Greet(g.cookie, g.key)
	if _, _, ok := d.Greeted(0, other, bytes.Clone(second)); ok {
		t.Error("admitted with the challenge of another address")
	}
	if _, _, ok := d.Greeted(clock.Time(3*cookieTime), from, bytes.Clone(second)); ok {
		t.Error("admitted with an old challenge")
	}
	got, _, ok := d.Greeted(clock.Time(cookieTime), from, bytes.Clone(second))
	if !ok || got != g.greeting {
		t.Fatalf("admitted %v with %+v, want %+v", ok, got, g.greeting)
	}
	a := Admission{Session: 88, Size: 1400, Window: 1 << 16, Welcome: Welcome{Node: "hca", Port: 1, Fabric: [16]byte{3}},
		State: State{Port: port}}
	admitted, done, _, err := g.answered(d.Admit(77, &a))
	if !done || err != nil || admitted.Session != 88 || admitted.Size != 1400 || admitted.Window != 1<<16 || admitted.State.Port.LID != 9 ||
		admitted.Welcome != a.Welcome {
		t.Errorf("done %v (%v), admitted as %+v", done, err, admitted)
	}
	var refused *RefusedError
	var taken *takenError
	if _, _, _, err := g.answered(d.Deny(77, errors.New("no"), false)); !errors.As(err, &refused) || refused.Why != "no" {
		t.Errorf("after a denial: error %v, want a refusal with its reason", err)
	}
	if _, _, _, err := g.answered(d.Deny(77, errors.New("no"), true)); !errors.As(err, &taken) {
		t.Errorf("after a denial because the place is taken: error %v", err)
	}
	if _, done, again, err := g.answered(d.Deny(78, errors.New("no"), false)); done || again || err != nil {
		t.Error("an answer to another session was accepted")
	}
	for _, wrong := range [][]byte{nil, []byte("another key")} {
		_, answer, ok := d.Greeted(0, from, g.greeting.Greet(d.cookie(from, 77, 0), wrong))
		if _, _, _, err := g.answered(answer); ok || !errors.As(err, &refused) ||
			refused.Why != "cable: the key of the adapter is not that of the fabric" {
			t.Errorf("key %q of the adapter: admitted %v, error %v; want a refusal for the key", wrong, ok, err)
		}
		var bad *messageError
		if _, _, _, err := g.answered(NewDoor(wrong).Admit(77, &a)); !errors.As(err, &bad) {
			t.Errorf("key %q of the fabric: error %v, want one for the key", wrong, err)
		}
	}
}

// FuzzDoor: no datagrams make either end of a greeting panic, and no answer is longer than what it answers.
func FuzzDoor(f *testing.F) {
	from := netip.MustParseAddrPort("[2001:db8::1]:5")
	d := NewDoor(nil)
	g := greeter{greeting: Greeting{Session: 7, Size: 1472, Window: 1 << 17}}
	f.Add(g.greeting.Greet([cookieLen]byte{}, nil))
	f.Add(g.greeting.Greet(d.cookie(from, 7, 0), nil))
	f.Add(d.Admit(7, &Admission{State: State{Port: link.Port{MTU: 1, MaxMTU: 5}}}))
	f.Add(d.Deny(7, errors.New("why"), true))
	f.Add(Gone(7))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, answer, ok := d.Greeted(0, from, bytes.Clone(b)); !ok && len(answer) > len(b) {
			t.Errorf("answered %d bytes to %d", len(answer), len(b))
		}
		_, _, _, _ = g.answered(bytes.Clone(b))
		gone(b, 7)
	})
}

// TestParseUDP: the address of a fabric over UDP is a host with or without a port.
func TestParseUDP(t *testing.T) {
	for s, want := range map[string]string{
		"udp://h": "h 7069", "udp://192.0.2.1:5": "192.0.2.1 5", "udp://[2001:db8::1]": "2001:db8::1 7069",
		"udp://[fe80::1%eth0]:99": "fe80::1%eth0 99",
		"":                        "", "udp://": "", "h:5": "", "udp://h:0": "", "udp://h:x": "", "udp://h:65536": "",
		"udp://2001:db8::1": "", "udp://[::1": "", "udp://a b": "", "udp://h/x": "", "udp://:5": "",
	} {
		host, port, err := ParseUDP(s)
		if got := host + " " + port; err == nil && got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", s, got, err, want)
		}
	}
}
