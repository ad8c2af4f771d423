package udp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
)

// TestSourcePortsLeaveDescriptors: a process with few descriptors left binds no further source ports; routes send from
// the receiving socket's instead, and get ports of their own when there are descriptors again.
func TestSourcePortsLeaveDescriptors(t *testing.T) {
	l := variant{}.open(t).(*socketLink)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}()
	few := was
	few.Cur = uint64(l.fd) + 4 // three quarters of that are open
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	r := frame.Route{SrcPort: 0xc001}
	if w := l.pool.choose(&r); w.socket != 0 || r.SrcPort != l.cfg.Port || len(l.sources) != 0 {
		t.Errorf("with few descriptors: socket %d, port %#x, %d sockets", w.socket, r.SrcPort, len(l.sources))
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	r = frame.Route{SrcPort: 0xc001}
	if w := l.pool.choose(&r); w.socket == 0 || r.SrcPort != 0xc001 {
		t.Errorf("with many descriptors: socket %d, port %#x", w.socket, r.SrcPort)
	}
}
