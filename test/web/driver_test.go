package web

import (
	"context"
	"io"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/connected"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/verbs"
)

// The adapters of the driver: two pairs with traffic, one of which bypasses the wire, and one adapter for tests that
// end connections.
const (
	here, there = "here", "there"
	left, right = "left", "right"
	spare       = "spare"
)

// running starts a driver, and returns its socket and the addresses of its adapters.
func running(t *testing.T) (socket string, at map[string]netip.Addr) {
	t.Helper()
	var adapters []config.Adapter
	for _, name := range []string{here, there, left, right, spare} {
		a := config.Adapter{Name: name}
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

// traffic has two attached programs exchange messages until the test ends.
func traffic(t *testing.T, socket string, from, to netip.Addr) {
	t.Helper()
	conn, peer := connected.Pair(t, socket, from, to)
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = io.Copy(peer, peer) }) // until the connection is closed
	wait.Go(func() {
		message := make([]byte, 2000)
		for ; ; time.Sleep(2 * time.Millisecond) { // leaves processor time to the browser
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
	})
}

// idle has an attached program hold queue pairs that do nothing, until the test ends.
func idle(t *testing.T, socket string, at netip.Addr, n int) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	h, err := verbs.Open(t.Context(), verbs.Options{Mode: verbs.Attached, Socket: socket, Name: "idle"})
	must(err)
	t.Cleanup(func() { _ = h.Close() }) // with everything it still has
	d, err := h.DeviceByAddr(at)
	must(err)
	pd, err := d.AllocPD()
	must(err)
	cq, err := d.CreateCQ(16)
	must(err)
	for range n {
		_, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1})
		must(err)
	}
}
