package ipc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

type clientConfig = device.ClientConfig

var ctx = context.Background()

// TestAttachTellsWhoIsThere: the driver learns a program's name, process and user when it attaches, with characters
// that could confuse a terminal replaced, and the program learns the driver's.
func TestAttachTellsWhoIsThere(t *testing.T) {
	h, c := pair(t, ServerConfig{Driver: "softvpi 1"}, Options{Name: "prog\x01"})
	cfg := h.only(t).cfg
	if cfg.Name != "prog?" || cfg.PID != os.Getpid() || cfg.UID != os.Getuid() || !cfg.Attached {
		t.Errorf("the driver knows the program as %+v", cfg)
	}
	if name, pid := c.Driver(); name != "softvpi 1" || pid != os.Getpid() {
		t.Errorf("the driver is %q, process %d; want \"softvpi 1\" and this process", name, pid)
	}
}

// TestDialWithoutDriver: Dial reports that the socket does not exist if no driver runs.
func TestDialWithoutDriver(t *testing.T) {
	if _, err := Dial(ctx, t.TempDir()+"/none", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
}

// TestDriverRefuses: if the driver refuses a session, Dial returns the driver's error.
func TestDriverRefuses(t *testing.T) {
	h := &fakeHost{refuse: command.Errorf(command.Exhausted, "no room")}
	_, path := serve(t, h, ServerConfig{})
	if _, err := Dial(ctx, path, Options{}); !isCode(err, command.Exhausted) {
		t.Errorf("error %v, want exhausted", err)
	}
}

// TestMaxClients: a program beyond MaxClients is refused, and the first one is still served.
func TestMaxClients(t *testing.T) {
	h := &fakeHost{}
	_, path := serve(t, h, ServerConfig{MaxClients: 1})
	c := dial(t, path, Options{})
	if _, err := Dial(ctx, path, Options{}); !isCode(err, command.Exhausted) {
		t.Errorf("second program: error %v, want exhausted", err)
	}
	if _, err := c.AllocPD(ctx, 0); err != nil {
		t.Errorf("first program: %v", err)
	}
}

// TestNoDescriptorForProgram: a driver that has no descriptor left for a program refuses it with an error that says
// so, and serves the next one.
func TestNoDescriptorForProgram(t *testing.T) {
	s, path := serve(t, &fakeHost{}, ServerConfig{})
	c := dialRaw(t, path)
	await.Eventually(t, "accepted", func() bool { return s.Clients() == 1 })
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	c.put(appendFrame(nil, opHello, 0, 1, encode(goodHello())))
	reason := c.end()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(reason, "wake pipe") {
		t.Errorf("refused with %q, want a reason that names the wake pipe", reason)
	}
	dial(t, path, Options{})
}

// TestErrorsCrossWithTheirClass: an error of the driver reaches the program with its class and text.
func TestErrorsCrossWithTheirClass(t *testing.T) {
	_, c := pair(t, ServerConfig{}, Options{})
	_, err := c.AllocPD(ctx, 7)
	if !isCode(err, command.NotFound) || err.Error() != "no such object: adapter 7: there is 1" {
		t.Errorf("error %v, want not found, about adapter 7", err)
	}
}

// TestArenasComeBeforeTheirRings: when a program gets the answer that names a ring in a new arena, it has mapped that
// arena.
func TestArenasComeBeforeTheirRings(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{})
	s := h.only(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 10 {
				q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 4096})
				if err != nil {
					t.Error(err)
					return
				}
				g := ring.Geometry{Entries: int(q.Depth), Stride: int(q.Stride)}
				r, err := ring.OpenCQ(c.Arena(q.Ring.Arena)[q.Ring.Offset:], g)
				if err != nil {
					t.Error(err)
					return
				}
				s.push(t, q.Handle, ring.CQE{ID: uint64(q.Handle)})
				var out [2]ring.CQE
				if n := r.Poll(out[:]); n != 1 || out[0].ID != uint64(q.Handle) {
					t.Errorf("polled %d completions, first %+v; want one of this CQ", n, out[0])
				}
			}
		}()
	}
	wg.Wait()
	if n := len(*c.arenas.Load()); n < 3 {
		t.Errorf("%d arenas, want several", n)
	}
}

// TestEventsInOrderWithBackPressure: events arrive in order, and the driver sends no more of them than the program
// has granted credit for.
func TestEventsInOrderWithBackPressure(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{})
	s := h.only(t)
	const n = 3000
	for i := range n {
		s.events <- command.Event{Type: command.EventGIDChange, Context: uint64(i)}
	}
	await.Eventually(t, "the credit is used up", func() bool {
		c.events.mu.Lock()
		defer c.events.mu.Unlock()
		return len(c.events.list) == eventCredits
	})
	if left := len(s.events); left < n-eventCredits-maxPush {
		t.Errorf("%d of %d events left in the driver", left, n)
	}
	out := make([]command.Event, 50)
	for i := 0; i < n; {
		k, err := c.Events(ctx, out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range out[:k] {
			if e.Context != uint64(i) {
				t.Fatalf("event %d arrived in place of %d", e.Context, i)
			}
			i++
		}
	}
	cctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := c.Events(cctx, out); !isCode(err, command.TimedOut) {
		t.Errorf("without events: error %v, want timed out", err)
	}
}
