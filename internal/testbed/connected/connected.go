// Package connected has two programs that are attached to a driver, with a connection between them.
package connected

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
	"github.com/softvpi/softvpi/verbs"
)

// port is where the one that is called listens.
const port = 7001

// Pair returns the two ends of a connection from an address of the driver's adapters to another, until the test ends. The caller ends what
// uses them in a Cleanup of its own, which comes before.
func Pair(t testing.TB, socket string, from, to netip.Addr) (near, far *rdmanet.Conn) {
	t.Helper()
	server := rdmanet.ListenConfig{Adapter: attach(t, socket, to)}
	l, err := server.Listen(t.Context(), netip.AddrPortFrom(to, port).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	dialer := rdmanet.Dialer{Adapter: attach(t, socket, from)}
	if near, err = dialer.Dial(t.Context(), l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.AcceptConn(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// attach returns the adapter with an address, as a program of its own has it.
func attach(t testing.TB, socket string, at netip.Addr) *nd.Adapter {
	t.Helper()
	p, err := nd.Open(t.Context(), nd.Options{Mode: verbs.Attached, Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	a, err := p.OpenAdapterAt(at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
