package frames

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// measured runs a sender until a receiver has measured, and checks what that says.
func measured(t *testing.T, send, receive Config) {
	t.Helper()
	ctx, cancel := context.WithCancel(testbed.Context(t))
	sent := make(chan error, 1)
	go func() {
		_, err := Send(ctx, send, func() {})
		sent <- err
	}()
	r, err := Receive(ctx, receive)
	cancel()
	if e := <-sent; e == nil || ctx.Err() == nil {
		t.Errorf("the sender ends before the receiver: %v", e)
	}
	if err != nil || r.Frames == 0 || r.Rate() <= 0 || r.Seconds < receive.For.Seconds() {
		t.Errorf("%+v, %v; want frames in at least %v", r, err, receive.For)
	}
}

// TestPacketDirect: two programs of a driver measure frames.
func TestPacketDirect(t *testing.T) {
	dir, err := os.MkdirTemp("", "fr")
	testbed.OK(t, err)
	defer os.RemoveAll(dir)
	mac, addr := [6]byte{2, 0, 0, 0, 8, 9}, netip.MustParseAddr("10.82.0.1")
	wire := filepath.Join(dir, "w")
	end := testbed.Must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: wire + ".peer", Net: "unixgram"}))(t) // else the port is down
	defer end.Close()
	l := testbed.Must(datagram.Open(datagram.Config{Local: wire, Remote: wire + ".peer", MTU: 1500,
		Stations: []link.Station{{MAC: mac, Prefixes: []netip.Prefix{netip.PrefixFrom(addr, 24)}}}}))(t)
	t.Setenv(paths.SocketVariable, testbed.DriverOf(t, device.AdapterConfig{Name: "port", Addr: addr, MAC: mac, Link: l}))
	receive := Config{Adapter: "port", Size: 64, Burst: 32, For: 20 * time.Millisecond}
	send := receive
	send.To, send.For = mac, time.Hour
	measured(t, send, receive)
}

// TestRings: so do two packet sockets on an interface.
func TestRings(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	sender := Config{Interface: "lo", Size: 64, Burst: 32, For: 20 * time.Millisecond}
	e, done, err := sender.ringSender()
	testbed.OK(t, err)
	defer done()
	take, closed, err := sender.ringReceiver()
	testbed.OK(t, err)
	defer closed()
	ctx := testbed.Context(t)
	for got := 0; got == 0; {
		testbed.OK(t, ctx.Err())
		if n, err := e(); n == 0 || err != nil {
			t.Fatalf("a burst of %d frames: %v", n, err)
		}
		if got, err = take(); err != nil {
			t.Fatal(err)
		}
	}
}
