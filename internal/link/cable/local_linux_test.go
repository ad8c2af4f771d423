package cable

import (
	"net"
	"os"
	"runtime"
	"sync/atomic"
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

// talking returns a session over a socket, and the fabric's end of it.
func talking(t *testing.T) (s *local, fabric int) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(ends[1]) })
	f := os.NewFile(uintptr(ends[0]), "socket")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &local{conn: c.(*net.UnixConn), bell: -1}, ends[1]
}

// heard reads a message that has come; nil: none has.
func heard(t *testing.T, fabric int) []byte {
	t.Helper()
	b := make([]byte, MaxMessage)
	n, err := unix.Read(fabric, b)
	if err == unix.EAGAIN {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// TestTell_LosesNothingThatHasRoom: the fabric hears what the adapter's pauses are, however often others take the processor.
func TestTell_LosesNothingThatHasRoom(t *testing.T) {
	s, fabric := talking(t)
	if err := unix.SetNonblock(fabric, true); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	defer stop.Store(true)
	for range 2 * runtime.GOMAXPROCS(0) {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	for i := range 4000 {
		if s.tell([]byte("pauses")); string(heard(t, fabric)) != "pauses" {
			t.Fatalf("message %d is lost", i)
		}
	}
}

// TestTell_NeverWaits: a fabric that reads nothing loses messages, and holds nobody up.
func TestTell_NeverWaits(t *testing.T) {
	s, fabric := talking(t)
	if err := unix.SetNonblock(fabric, true); err != nil {
		t.Fatal(err)
	}
	const told = 20000
	for range told {
		s.tell([]byte("pauses"))
	}
	got := 0
	for heard(t, fabric) != nil {
		got++
	}
	if got == 0 || got == told {
		t.Errorf("the socket has kept %d messages of %d", got, told)
	}
	if s.tell([]byte("again")); string(heard(t, fabric)) != "again" {
		t.Error("nothing is heard once there is room")
	}
}
