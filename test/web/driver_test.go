package web

import (
	"context"
	"io"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/bed/driverbed"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
	"github.com/softvpi/softvpi/verbs"
)

// The adapters of the driver: two pairs with traffic, one of which goes past the wire, and one for what ends connections.
const (
	here, there = "here", "there"
	left, right = "left", "right"
	spare       = "spare"
)

// running starts a driver and returns its socket and the addresses of its adapters.
func running(t *testing.T) (socket string, at map[string]netip.Addr) {
	t.Helper()
	var adapters []driver.Adapter
	for _, name := range []string{here, there, left, right, spare} {
		a := driver.Adapter{Name: name}
		if name == left || name == right {
			a.Path, a.Impairment = "wire", "rate=200M"
		}
		adapters = append(adapters, a)
	}
	cfg := driverbed.Config(t, adapters...)
	d := driverbed.Start(t, cfg)
	at = map[string]netip.Addr{}
	for _, a := range cfg.Adapters {
		at[a.Name] = a.Address
	}
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	return cfg.Socket, at
}

// traffic has two programs that are attached to the driver exchange messages until the test ends.
func traffic(t *testing.T, socket string, from, to netip.Addr) {
	t.Helper()
	open := func(addr netip.Addr) *nd.Adapter {
		p, err := nd.Open(t.Context(), nd.Options{Mode: verbs.Attached, Socket: socket})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() }) // with connections that are still open
		a, err := p.OpenAdapterAt(addr)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	server := rdmanet.ListenConfig{Adapter: open(to)}
	l, err := server.Listen(t.Context(), netip.AddrPortFrom(to, 7001).String())
	if err != nil {
		t.Fatal(err)
	}
	dialer := rdmanet.Dialer{Adapter: open(from)}
	conn, err := dialer.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.AcceptConn()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = io.Copy(peer, peer) }) // until the connection is closed
	wait.Go(func() {
		message := make([]byte, 2000)
		for ; ; time.Sleep(2 * time.Millisecond) { // leaves the processors to the browser
			_, err := conn.Write(message)
			if err == nil {
				_, err = io.ReadFull(conn, message)
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Errorf("traffic: %v", err)
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = conn.Close()
		_ = peer.Close()
		wait.Wait()
		_ = l.Close()
	})
}
