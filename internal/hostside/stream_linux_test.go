package hostside

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// signals reports whether an end's descriptors say within a while that there is something to do.
func signals(t *testing.T, e End, while time.Duration) bool {
	t.Helper()
	p := []unix.PollFd{{Fd: int32(e.Descriptors()[0]), Events: unix.POLLIN}}
	for late := time.Now().Add(while); ; {
		n, err := unix.Poll(p, int(max(0, time.Until(late)).Milliseconds()))
		if err == nil {
			return n > 0
		}
		if err != unix.EINTR { // the runtime's own signals
			t.Fatal(err)
		}
	}
}

// TestStream_HangUpWhilePaused: a virtual machine that ends while nothing is read from it does not keep the loop awake, and
// the next one is served once reading goes on.
func TestStream_HangUpWhilePaused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	e, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	machine := func() net.Conn {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if !signals(t, e, await.Limit) {
			t.Fatal("nothing says that a virtual machine has come")
		}
		e.Ready()
		return c
	}
	first := machine()
	e.Pause(true)
	_ = first.Close()
	if signals(t, e, 20*time.Millisecond) {
		t.Error("the end signals that the virtual machine is gone, though it is paused")
	}
	e.Pause(false)
	if !signals(t, e, await.Limit) {
		t.Fatal("nothing says that the virtual machine is gone")
	}
	frame := make([]byte, 100)
	if n := e.Read(0, frame); n != 0 {
		t.Errorf("%d bytes are read of nobody", n)
	}
	second := machine()
	if _, err := second.Write([]byte{0, 0, 0, 3, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if !signals(t, e, await.Limit) {
		t.Fatal("nothing says that a frame has come")
	}
	if n := e.Read(0, frame); n != 3 {
		t.Errorf("%d bytes of a frame of 3 are read", n)
	}
	_ = second.Close()
}
