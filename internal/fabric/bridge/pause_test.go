package bridge

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

const pauseRate = 100e9

// station is what is at a port: it obeys pauses, and numbers what it sends at each priority.
type station struct {
	*Port
	number byte
	flow   pause.Engine
	sent   [8]uint32
	got    [4][8]uint32 // by sender: the next one
}

// newStations returns four at a switch that know each other. Priority 3 is lossless.
func newStations(t interface{ Fatal(...any) }) (s [4]*station) {
	b, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s {
		p, err := b.Add(PortConfig{PVID: 2, Tagged: VLANs{2}, MTU: 9000})
		if err != nil {
			t.Fatal(err)
		}
		s[i] = &station{Port: p, number: byte(i)}
		p.SetPauses(0, pause.Only(1<<3), pause.Only(1<<3), pauseRate)
		s[i].flow.Set(0, pause.Config{Obeys: pause.Only(1 << 3), Asks: pause.Only(1 << 3), Rate: pauseRate})
	}
	for i := range s {
		p := s[i].Port
		p.Receive(0, numbered(byte(i), 9, 0, 0, 60))
	}
	for _, x := range s {
		x.take(t, 0, 100)
		x.got = [4][8]uint32{}
	}
	return s
}

// numbered returns a frame of VLAN 1 with a number.
func numbered(from, to, priority byte, number uint32, n int) *Frame {
	b := append([]byte{2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x81, 0, priority << 5, 1, 0x88, 0xb5}, make([]byte, n-18)...)
	binary.BigEndian.PutUint32(b[18:], number)
	return &Frame{Pieces: [3][]byte{b}}
}

// send sends n frames, unless its priority is paused.
func (s *station) send(now clock.Time, to, priority byte, n, size int) {
	for range n {
		if s.flow.Paused(now)>>priority&1 != 0 {
			return
		}
		s.Receive(now, numbered(s.number, to, priority, s.sent[priority], size))
		s.sent[priority]++
	}
}

// take takes frames, and checks that none of priority 3 is missing or comes too late.
func (s *station) take(t interface{ Fatal(...any) }, now clock.Time, most int) (n int) {
	out := make([]Frame, most)
	n, _ = s.Take(now, out)
	for _, f := range out[:n] {
		b := f.Pieces[0]
		if eth.EtherType(binary.BigEndian.Uint16(b[12:])) == eth.TypeMACControl {
			s.flow.Receive(now, b)
			continue
		}
		from, priority, number := b[11], b[14]>>5, binary.BigEndian.Uint32(b[18:])
		if next := &s.got[from][priority]; number < *next || number > *next && priority == 3 {
			t.Fatal("frame", number, "of priority", priority, "of", from, "comes as number", *next)
		} else {
			*next = number + 1
		}
	}
	return n
}

// TestPauses: frames of a lossless priority that a port does not take are not lost, and do not overtake each other: who sends them is
// paused, and goes on when they have been taken; others lose what has no room, and are not paused. A port that asks for a pause gets
// nothing of the priority, and everything of others.
func TestPauses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStations(t)
		now := clock.Time(0)
		most := 0
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now = now.Add(10 * time.Microsecond)
			for i, x := range s[:2] { // senders to both others
				to := byte(2 + rapid.IntRange(0, 1).Draw(t, "to"))
				x.send(now, to&^1, 3, rapid.IntRange(0, 64).Draw(t, "lossless"), 100+1000*i)
				x.send(now, to, 0, rapid.IntRange(0, 64).Draw(t, "lossy"), 500)
				x.take(t, now, 4)
			}
			for _, x := range s[2:] {
				if rapid.IntRange(0, 9).Draw(t, "asks") == 0 {
					x.flow.Ask(uint8(rapid.IntRange(0, 1).Draw(t, "for a pause")) << 3)
				}
				if x.flow.Ready(now) {
					x.Receive(now, &Frame{Pieces: [3][]byte{x.flow.Append(now, nil)}})
				}
				before := x.got
				x.take(t, now, rapid.IntRange(0, 64).Draw(t, "takes"))
				if x.flow.Told() != 0 && (x.got[0][3] != before[0][3] || x.got[1][3] != before[1][3]) {
					t.Fatal("something of a paused priority comes")
				}
				if q := x.queues[3]; q != nil {
					most = max(most, q.len)
				}
			}
		}
		if most > QueueFrames/xoffPart+4*64+QueueFrames/2 {
			t.Errorf("%d frames wait", most)
		}
		for _, x := range s[2:] {
			x.flow.Ask(0)
			if x.flow.Ready(now) {
				x.Receive(now, &Frame{Pieces: [3][]byte{x.flow.Append(now, nil)}})
			}
			for x.take(t, now, 100) > 0 {
			}
		}
		for i, x := range s[:2] {
			x.take(t, now, 100)
			if x.flow.Paused(now) != 0 {
				t.Error("a sender is paused although nothing waits")
			}
			if got := s[2].got[i][3]; got != x.sent[3] {
				t.Errorf("%d of %d frames have come", got, x.sent[3])
			}
		}
	})
}

// TestPauses_Headroom: what a sender hands over before it hears of the pause finds room, beyond what others' queues have; a pause is
// repeated while it holds, and a port that is removed lets those go on whom it held up.
func TestPauses_Headroom(t *testing.T) {
	s := newStations(t)
	for i := range uint32(3 * QueueFrames) { // it hears nothing
		s[0].Receive(0, numbered(0, 2, 3, i, 1000))
	}
	s[1].send(0, 2, 0, 3*QueueFrames, 1000)
	if lost, n := s[2].Counters().QueueDrops, s[2].queues[3].len; lost < 2*QueueFrames || n != 3*QueueFrames {
		t.Errorf("%d frames of the other priority are lost, %d of the lossless one wait", lost, n)
	}
	if s[0].take(t, 0, 10); s[0].flow.Paused(0) != 1<<3 || s[1].Waiting(0) != 0 {
		t.Errorf("paused: %08b", s[0].flow.Paused(0))
	}
	due := s[0].Deadline()
	if n := s[0].take(t, due-1, 10); n != 0 {
		t.Error("the pause is repeated too early")
	}
	if n := s[0].take(t, due, 10); n != 1 || s[0].flow.Paused(s[0].flow.Until(3)-1) == 0 {
		t.Error("the pause is not repeated")
	}
	if sent, _ := s[0].Pauses(due); sent != 2 {
		t.Errorf("%d pauses are counted", sent)
	}
	if woken := s[2].Remove(due); woken != 1 {
		t.Errorf("ports %b are woken", woken)
	}
	if s[0].take(t, due, 10); s[0].flow.Paused(due) != 0 {
		t.Error("the sender is paused for a port that is gone")
	}
}

// TestPauses_Global: a pause of the whole link stops everything but the port's own pauses, for its time.
func TestPauses_Global(t *testing.T) {
	s := newStations(t)
	x := s[2]
	x.SetPauses(0, pause.Whole, pause.Whole, pauseRate)
	x.Receive(0, &Frame{Pieces: [3][]byte{(&eth.Pause{Quanta: [8]uint16{1000}}).Append(nil)}})
	s[0].send(0, 2, 3, 1, 100)
	s[0].send(0, 2, 0, 1, 100)
	end := clock.Time(5120) // 1,000 quanta at 100 Gb/s
	if x.Waiting(0) != 0 || x.take(t, end-1, 10) != 0 || x.Deadline() != end {
		t.Errorf("%d frames are to be taken, due at %v", x.Waiting(0), x.Deadline())
	}
	if n := x.take(t, end, 10); n != 2 {
		t.Errorf("%d frames come afterwards", n)
	}
	other := (&eth.Pause{Quanta: [8]uint16{1000}}).Append(nil)
	copy(other, []byte{2, 0, 0, 0, 0, 1})
	if x.Receive(end, &Frame{Pieces: [3][]byte{other}}); x.Deadline() != clock.Never {
		t.Error("a pause to somebody else is obeyed")
	}
}
