package testbed

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/verbs"
)

const attaches = true

// attach starts a driver with the adapters, listening on a socket of its own, and attaches both programs
// to it.
func (b *Bed) attach(t testing.TB) {
	socket, dh, stop := drive(t, b.Addrs[:], server.Config{})
	b.StopDriver = stop
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	join := func() *verbs.Host {
		h, err := verbs.Attach(ctx, socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Errorf("detach: %v", err)
			}
		})
		return h
	}
	b.Server, b.Client = join(), join()
	b.SetEnabled = func(adapter int, enabled bool) error { return dh.SetAdapterState(uint32(adapter), enabled) }
}

// Socket starts a driver with two adapters in this process, for other processes to attach to, and returns
// the path of its socket.
func Socket(t testing.TB, addrs [2]netip.Addr) string {
	socket, _ := Driver(t, addrs)
	return socket
}

// DriverAt starts a driver in this process with an adapter at each address, and returns the path of its
// socket.
func DriverAt(t testing.TB, addrs ...netip.Addr) string {
	socket, _, _ := drive(t, addrs, server.Config{})
	return socket
}

// Driver starts a driver with two adapters in this process and returns the path
// of its socket and its host of adapters.
func Driver(t testing.TB, addrs [2]netip.Addr) (socket string, host *device.Host) {
	socket, host, _ = drive(t, addrs[:], server.Config{})
	return socket, host
}

// DriverWith is Driver for a driver whose server of programs is configured so.
func DriverWith(t testing.TB, addrs [2]netip.Addr, cfg server.Config) (socket string, host *device.Host) {
	socket, host, _ = drive(t, addrs[:], cfg)
	return socket, host
}

// DriverOf starts a driver with these adapters in this process, until the test ends, and returns the path of its socket.
func DriverOf(t testing.TB, adapters ...device.AdapterConfig) (socket string) {
	t.Helper()
	socket, _, _ = driveOf(t, adapters, server.Config{})
	return socket
}

func drive(t testing.TB, addrs []netip.Addr, cfg server.Config) (socket string, host *device.Host, stop func()) {
	t.Helper()
	var adapters []device.AdapterConfig
	for _, a := range addrs {
		adapters = append(adapters, device.AdapterConfig{Addr: a})
	}
	return driveOf(t, adapters, cfg)
}

func driveOf(t testing.TB, adapters []device.AdapterConfig, cfg server.Config) (socket string, host *device.Host, stop func()) {
	t.Helper()
	dh, err := device.NewHost(device.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range adapters {
		if _, err := dh.AddAdapter(a); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "vpi") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Driver = "test"
	server, err := server.New(server.DeviceHost(dh), cfg)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		_ = dh.Close()
		_ = os.RemoveAll(dir)
	})
	return socket, dh, func() { _ = server.Close() }
}
