package rdmanet_test

import (
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/rdmanet"
)

// Connections share what polls: those that nobody uses have no goroutine, and those that are read have the reader
// alone. More of them than the shared queue first has room for work all the same.
func TestConnectionsShareAPoller(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		const connections = 120
		n := newNetwork(t, b, rdmanet.Buffers{Size: 256})
		var all [][2]net.Conn
		first, _ := connected(t, n)
		before := runtime.NumGoroutine()
		for range connections {
			c1, c2 := connected(t, n)
			all = append(all, [2]net.Conn{c1, c2})
		}
		// Those that have set the connections up may still be about to end.
		if grown := 0; !await.Until(func() bool { grown = runtime.NumGoroutine() - before; return grown <= connections/4 }) {
			t.Errorf("%d idle connections have %d goroutines", connections, grown)
		}
		var wg sync.WaitGroup
		for i, c := range all {
			wg.Go(func() { echoTimes(t, c[1], 50) })
			wg.Go(func() { callTimes(t, c[0], byte(i), 50) })
		}
		wg.Wait()
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	})
}

const echoed = 100

func echoTimes(t *testing.T, c net.Conn, times int) {
	b := make([]byte, echoed)
	for range times {
		if _, err := io.ReadFull(c, b); err != nil {
			t.Errorf("server: %v", err)
			return
		}
		if _, err := c.Write(b); err != nil {
			t.Errorf("server: %v", err)
			return
		}
	}
}

func callTimes(t *testing.T, c net.Conn, mark byte, times int) {
	b := make([]byte, echoed)
	for n := range times {
		b[0], b[echoed-1] = mark, byte(n)
		if _, err := c.Write(b); err != nil {
			t.Errorf("client: %v", err)
			return
		}
		clear(b)
		if _, err := io.ReadFull(c, b); err != nil || b[0] != mark || b[echoed-1] != byte(n) {
			t.Errorf("client %d: answer %d is %d, %d: %v", mark, n, b[0], b[echoed-1], err)
			return
		}
	}
}
