package ibsim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestLocal: over abstract sockets the server works as over UDP, and notices a client that ends without notice.
func TestLocal(t *testing.T) {
	name := fmt.Sprintf("ibsim-test-%d", rand.Uint64())
	l, err := ListenLocal(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ListenLocal(name); err == nil {
		t.Error("a second server was opened with the same name")
	}
	w := &world{T: t, Server: NewServer(newRack(t))}
	run(t, w.Server, l)
	p, err := umad.OpenIbsim(umad.IbsimOptions{Socket: name, Host: "hca2"})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := w.smp(p, mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0), 1); err != nil {
			t.Fatal(err)
		}
	}
	p.Close()
	await.Eventually(w, "it has gone", func() bool { return w.attached() == 0 })
	silent(t, name)
	await.Eventually(w, "one that ended without a word is gone", func() bool { return w.attached() == 0 })
}

// silent is a client that connects and ends without notice.
func silent(t *testing.T, name string) {
	t.Helper()
	bind := func(what string) int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name + ":" + what + "\x00"}); err != nil {
			t.Fatal(err)
		}
		return fd
	}
	control, data := bind("ctl77"), bind("in77")
	defer unix.Close(control)
	defer unix.Close(data)
	b := make([]byte, controlLen)
	copy(b, []byte{0xef, 0xbe, 0xad, 0xde})
	b[atType], b[atBody] = typeConnect, 77
	if err := unix.Sendto(control, b, 0, &unix.SockaddrUnix{Name: "@" + name + ":ctl\x00"}); err != nil {
		t.Fatal(err)
	}
	if n, _, err := unix.Recvfrom(control, b, 0); err != nil || n != controlLen || b[atType] != typeConnect {
		t.Fatal(n, err, errors.New("the connect was not answered"))
	}
}

// TestDo: commands can come from other processes.
func TestDo(t *testing.T) {
	name := fmt.Sprintf("ibsim-test-%d", rand.Uint64())
	if _, err := Do(name, "help"); !errors.Is(err, ErrNoServer) {
		t.Errorf("without a server: %v", err)
	}
	l, err := ListenLocal(name)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Server: NewServer(newRack(t))}
	run(t, w.Server, l)
	if a, err := Do(name, "unlink sw1[7]"); err != nil || a != "" {
		t.Errorf("unlink answered %q (%v), want nothing", a, err)
	}
	w.Server.Do(func(_ clock.Time, f *fabric.Fabric) {
		node, _ := f.Find("sw1")
		if s := f.PortInfo(fabric.Place{Node: node, Port: 7}).PortState; s != mad.PortDown {
			t.Errorf("the unlinked port is in state %v, want down", s)
		}
	})
	if a, err := Do(name, "help"); err != nil || !strings.Contains(a, "relink NODE[PORT]") {
		t.Errorf("help: %q, %v", a, err)
	}
	var e *CommandError
	if _, err := Do(name, "relink sw9[7]"); !errors.As(err, &e) || e.Error() != `there is no node "sw9" in the fabric` {
		t.Error(err)
	}
	if _, err := Do(name, strings.Repeat("x", maxCommand+1)); !errors.As(err, &e) {
		t.Error(err)
	}
}
