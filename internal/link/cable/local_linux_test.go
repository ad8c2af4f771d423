package cable

import (
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"golang.org/x/sys/unix"
)

// cabled is an adapter's session with the fabric's ends of its rings and its bell.
type cabled struct {
	*local
	in   *Consumer
	out  *Producer
	ring int
}

func newCabled(t *testing.T) *cabled {
	t.Helper()
	bells, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Close(bells[0])
		unix.Close(bells[1])
	})
	mem := memory()
	s := &local{bell: bells[0], out: NewProducer(mem, true, false), in: NewConsumer(mem, false)}
	return &cabled{s, NewConsumer(mem, true), NewProducer(mem, false, false), bells[1]}
}

// tells reports whether the session's descriptor is readable.
func (c *cabled) tells(t *testing.T) bool {
	t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.bell), Events: unix.POLLIN}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// carry puts a frame into the ring towards the adapter.
func (c *cabled) carry() {
	c.out.Put(numbered(0), nil, nil)
	if c.out.Publish() {
		Ring(c.ring)
	}
}

// receives returns how many frames receive hands out.
func (c *cabled) receives(t *testing.T) int {
	t.Helper()
	n, err := c.receive(make([]frame.In, maxReceived))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sends has the session send count frames and returns how many the ring took.
func (c *cabled) sends(t *testing.T, count int) int {
	t.Helper()
	frames := make([]frame.Out, count)
	for i := range frames {
		frames[i].HeadEnd = uint16(copy(frames[i].Head[:], numbered(0)[:minFrame]))
	}
	n, err := c.send(frames)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSendLeavesTheBell: a bell rung for a frame stays readable until somebody receives. A send in between must not
// take it away from those that sleep on it.
func TestSendLeavesTheBell(t *testing.T) {
	c := newCabled(t)
	if c.receives(t) != 0 || c.tells(t) {
		t.Fatal("a new session has frames, or its bell is readable")
	}
	c.carry()
	if c.sends(t, 1); !c.tells(t) {
		t.Fatal("the bell is not readable after a send, though a frame waits")
	}
	if n := c.receives(t); n != 1 || c.tells(t) {
		t.Fatalf("received %d frames, bell readable: %t; want 1 and false", n, c.tells(t))
	}
	if c.carry(); !c.tells(t) {
		t.Fatal("the bell is not readable when the next frame comes")
	}
}

// TestBellTellsOfRoom: a bell rung for room in the ring is cleared by receive, so that it does not stay readable for
// ever, and is rung again for new room.
func TestBellTellsOfRoom(t *testing.T) {
	c := newCabled(t)
	for round := range 3 {
		c.receives(t)
		if n := c.sends(t, slots+1); round == 0 && n != slots || round > 0 && n != 1 {
			t.Fatalf("round %d: the ring took %d frames", round, n)
		}
		if _, err := c.local.out.Room(); err != nil || c.tells(t) {
			t.Fatal(err, "the bell is readable though the ring is full")
		}
		if n, err := c.in.Waiting(); n == 0 || err != nil {
			t.Fatal(n, err)
		}
		c.in.Take()
		if c.in.Publish() {
			Ring(c.ring)
		}
		if !c.tells(t) {
			t.Fatal("the bell is not readable though there is room again")
		}
		if n := c.receives(t); n != 0 || c.tells(t) {
			t.Fatalf("received %d frames, bell still readable: %t; want 0 and false", n, c.tells(t))
		}
	}
}
