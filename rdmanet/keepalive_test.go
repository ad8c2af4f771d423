package rdmanet_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/rdmanet"
)

// Probes do a connection no harm: after many of them it carries data both ways. A closed one has none to switch.
func TestKeepAliveLeavesTheLivingAlone(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		n := newNetwork(t, b, rdmanet.Buffers{})
		n.dialer.KeepAlive = time.Millisecond
		c1, c2 := connected(t, n)
		if err := c2.SetKeepAlivePeriod(time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if err := c1.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c1.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read of an idle connection: %v, want its deadline", err)
		}
		if err := c1.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		for _, pair := range [][2]net.Conn{{c1, c2}, {c2, c1}} {
			if _, err := pair[0].Write([]byte("alive")); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 5)
			if _, err := io.ReadFull(pair[1], got); err != nil || string(got) != "alive" {
				t.Fatalf("read %q, %v", got, err)
			}
		}
		if err := c1.Close(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c1.SetKeepAlive(false), c1.SetKeepAlivePeriod(time.Second)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v, want net.ErrClosed", err)
		}
	})
}
