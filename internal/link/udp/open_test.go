package udp

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
)

func TestAddressInUse(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a := v.open(t)
		cfg := v.cfg
		cfg.Addr, cfg.Port = a.Status().Addr.Addr(), a.Status().Addr.Port()
		_, err := Open(cfg)
		var in *AddressInUseError
		if !errors.As(err, &in) || !errors.Is(err, syscall.EADDRINUSE) || in.Addr != a.Status().Addr {
			t.Fatalf("error %v, want one for %v in use", err, a.Status().Addr)
		}
		if runtime.GOOS == "linux" && in.Owner.PID != syscall.Getpid() {
			t.Errorf("the owner is %+v (%v), want this process", in.Owner, err)
		}
	})
}

func TestConfigErrors(t *testing.T) {
	good := netip.MustParseAddr("127.0.0.1")
	for _, c := range []struct {
		cfg   Config
		field string
	}{
		{Config{}, "Addr"},
		{Config{Addr: netip.IPv4Unspecified()}, "Addr"},
		{Config{Addr: netip.MustParseAddr("ff02::1")}, "Addr"},
		{Config{Addr: good, SourcePorts: 16385}, "SourcePorts"},
		{Config{Addr: good, ReceiveBuffer: -1}, "ReceiveBuffer"},
		{Config{Addr: good, Batch: 65}, "Batch"},
	} {
		_, err := Open(c.cfg)
		var fe *FieldError
		if !errors.As(err, &fe) || fe.Field != c.field {
			t.Errorf("%+v: %v, want an error of %s", c.cfg, err, c.field)
		}
	}
	if _, err := Open(Config{Addr: netip.MustParseAddr("192.0.2.77")}); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("an address of another host: error %v, want EADDRNOTAVAIL", err)
	}
}

func TestPrepareErrors(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a := v.open(t)
		other := netip.IPv6Loopback()
		if v.v6 {
			other = netip.MustParseAddr("127.0.0.1")
		}
		for _, dst := range []netip.Addr{{}, other, netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
			if err := a.Prepare(&frame.Route{Dst: dst}); err == nil {
				t.Errorf("destination %v was accepted", dst)
			}
		}
		// An unusable route costs only its own packets.
		frames := packets(&frame.Route{Dst: other}, a.Capabilities(), payloadsOf(3, 10)...)
		if n, err := a.Send(frames); n != 3 || err != nil || a.Stats().SendErrors != 3 {
			t.Errorf("sent %d (%v) with %d errors; want 3 taken and 3 errors", n, err, a.Stats().SendErrors)
		}
	})
}

// TestClosed: after Close every call returns net.ErrClosed, and a second Close is no error.
func TestClosed(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		r := routeTo(t, a, b)
		frames := packets(r, a.Capabilities(), payloadsOf(1, 10)...)
		for range 2 {
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Send(frames); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Send: %v", err)
		}
		if _, err := a.Receive(make([]frame.In, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Receive: %v", err)
		}
		if err := a.Prepare(r); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Prepare: %v", err)
		}
		if n := a.Errors(make([]link.Unreachable, 1)); n != 0 {
			t.Errorf("Errors returned %d, want 0", n)
		}
		a.Stats()
	})
}

// TestNotify: Notify is called when packets have arrived where none were waiting.
func TestNotify(t *testing.T) {
	notes := make(chan struct{}, 1)
	v := variant{cfg: Config{Portable: true, Notify: func() {
		select {
		case notes <- struct{}{}:
		default:
		}
	}}}
	b := v.open(t)
	v.cfg.Notify = nil
	a := v.open(t)
	if d := b.Descriptors(); d != nil {
		t.Errorf("a portable link has descriptors %v, want none", d)
	}
	for range 10 {
		sendAll(t, a, packets(routeTo(t, a, b), a.Capabilities(), payloadsOf(1, 10)...))
		<-notes
		if n := receiveSome(t, b); n != 1 {
			t.Fatalf("%d packets after Notify was called, want 1", n)
		}
	}
}

func TestInterfaceOf(t *testing.T) {
	ifi, ok := InterfaceOf(netip.MustParseAddr("127.0.0.1"))
	if !ok || ifi.Flags&net.FlagLoopback == 0 {
		t.Errorf("127.0.0.1 is said to be on %v", ifi.Name)
	}
	if runtime.GOOS == "linux" {
		if ifi, ok := InterfaceOf(netip.MustParseAddr("127.200.3.4")); !ok || ifi.Flags&net.FlagLoopback == 0 {
			t.Errorf("127.200.3.4 is said to be on %v", ifi.Name)
		}
	}
	if ifi, ok := InterfaceOf(netip.MustParseAddr("192.0.2.77")); ok {
		t.Errorf("192.0.2.77 is said to be on %v, want no interface", ifi.Name)
	}
}

// TestReceiveBuffer: the receiver's socket buffer has the size asked for, and packets that find no room in it are
// counted.
func TestReceiveBuffer(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a := v.open(t)
		v.cfg.ReceiveBuffer = 212992
		b := v.open(t)
		if got := b.Stats().ReceiveBuffer; got < 212992 || got > 2*212992 {
			t.Errorf("the buffer has %d bytes, want 212992 to twice that", got)
		}
		if v.cfg.Portable {
			return // its reader empties the buffer all the time
		}
		frames := packets(routeTo(t, a, b), a.Capabilities(), payloadsOf(100, 4096)...)
		for range 10 {
			sendAll(t, a, frames)
		}
		if b.Stats().ReceiveDrops == 0 {
			t.Error("4 MB were sent into a smaller buffer and no drops were counted")
		}
	})
}
