package bench

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestStreams: the ends agree on what was sent, and both count their processor time.
func TestStreams(t *testing.T) {
	const streams = 3
	addr := netip.AddrPortFrom(loopback.Addr(), loopback.Port()).String()
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() { served <- ServeStreams(context.Background(), addr, streams, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-served:
		t.Fatal(err)
	}
	x, err := DialStreams(context.Background(), addr, streams, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if x.Bytes < streams*streamBlock || x.Bytes%streamBlock != 0 || x.Seconds < 0.05 || x.Busy <= 0 {
		t.Errorf("%+v", x)
	}
}
