package ibsim

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
)

// full is a listener of a user's programs, which read only what they are given leave to.
type full struct {
	deaf
	owner uint32
	room  int // datagrams that the programs still read
}

func (f *full) user(peer) uint32                          { return f.owner }
func (f *full) open(uint32, uint32, peer) (socket, error) { return fullSocket{f: f}, nil }

type fullSocket struct {
	deafSocket
	f *full
}

func (s fullSocket) try([]byte) bool {
	if s.f.room == 0 {
		return false
	}
	s.f.room--
	return true
}

// attach attaches a program to the first node.
func attach(t *testing.T, s *Server, l Listener) *client {
	t.Helper()
	b := make([]byte, controlLen)
	binary.LittleEndian.PutUint32(b, controlMagic)
	b[atType] = typeConnect
	if !s.message(l, nil, b) || b[atType] != typeConnect {
		t.Fatal("a connect was refused")
	}
	return s.clients[binary.LittleEndian.Uint32(b[atBody:])]
}

// TestUnread: programs that do not read cost the server so many datagrams in total, however many programs they are; those
// that are cut off for it are the slowest ones of the user whose programs have the most unread, and are counted.
func TestUnread(t *testing.T) {
	s := NewServer(newRack(t))
	hostile, honest := &full{owner: 1}, &full{owner: 2}
	own := attach(t, s, honest)
	var b [dataLen]byte
	put := func(c *client, n int) {
		s.Do(func(clock.Time, *fabric.Fabric) {
			for range n {
				s.put(c, &b)
			}
		})
	}
	put(own, 1000)
	most, total := 0, 0
	for range 3 * maxUnread / 500 { // each has fewer than the honest one
		put(attach(t, s, hostile), 500)
		total = 0
		for _, c := range s.clients {
			total += c.queue.count
		}
		most = max(most, total)
	}
	if most > maxUnread || most < maxUnread-500 || s.unread != total {
		t.Errorf("up to %d datagrams were kept, and %d are counted of %d; want up to %d", most, s.unread, total, maxUnread)
	}
	if own.closed || own.queue.count != 1000 {
		t.Errorf("another user's program, closed %v, has %d datagrams, want 1000", own.closed, own.queue.count)
	}
	answer, err := s.Command("status")
	if err != nil || s.cut == 0 || !strings.Contains(answer, "cut off because they did not read: ") ||
		strings.Contains(answer, "did not read: 0,") {
		t.Errorf("status says %q, %v, after %d programs were cut off", answer, err, s.cut)
	}
	// One program alone.
	for _, c := range s.clients {
		if c != own {
			s.Do(func(clock.Time, *fabric.Fabric) { s.detach(c) })
		}
	}
	one := attach(t, s, hostile)
	put(one, maxQueue)
	if one.closed {
		t.Error("a program was cut off at the limit")
	}
	put(one, 1)
	if !one.closed || s.unread != 1000 {
		t.Errorf("beyond the limit, the program is cut off: %v; %d unread, want 1000", one.closed, s.unread)
	}
	// Who reads gets everything, and then nothing is kept.
	honest.room = 999
	if s.flush(own) || own.queue.count != 1 {
		t.Errorf("%d datagrams are left, want 1", own.queue.count)
	}
	honest.room = 2
	if !s.flush(own) || own.queue.chunks != nil || s.unread != 0 {
		t.Errorf("%d datagrams are left, want none", s.unread)
	}
}

// TestQueueOrder: a queue gives back what was put into it, in order, while both go on.
func TestQueueOrder(t *testing.T) {
	var q queue
	var b [dataLen]byte
	in, out := uint32(0), uint32(0)
	for round := range 200 {
		for range round % 97 {
			binary.LittleEndian.PutUint32(b[:], in)
			q.push(&b)
			in++
		}
		for q.count > round%13 {
			if got := binary.LittleEndian.Uint32(q.next()[:]); got != out {
				t.Fatalf("datagram %d came as number %d", got, out)
			}
			q.drop()
			out++
		}
	}
}
