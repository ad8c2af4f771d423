package scale

import (
	"net/netip"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed"
)

// What an idle QP may cost in addition to its rings, and what its connection may cost in addition to the peer's names
// in the connection manager's tables. A small number of QPs does not show it, because the adapter's own memory is
// shared among them.
const (
	idleQP         = 2048
	idleConnection = 1024
)

// Many connected QPs between two programs, with traffic on all of them at the same time. Ten times as many
// connections must together carry at least a quarter of what the fewer ones do.
func TestManyConnections(t *testing.T) {
	qps := size(10000, 400)
	t.Run("embedded", func(t *testing.T) {
		addrs := testbed.Addrs()
		server, client := spawn(t), spawn(t)
		server.call(t, "open", openArgs{Addr: addrs[0]}, nil)
		client.call(t, "open", openArgs{Addr: addrs[1]}, nil)
		connectMany(t, server, client, qps)
		exchangeMany(t, server, client, qps)
	})
	for _, path := range []string{"wire", "auto"} {
		t.Run("attached "+path, func(t *testing.T) {
			d := startDriver(t, path)
			server, client := d.attach(t, 0), d.attach(t, 1)
			before := measure()
			connectMany(t, server, client, qps)
			cost := per(measure().Heap, before.Heap, 2*qps)
			t.Logf("driver: %.0f bytes of heap a QP, its connection included", cost)
			if full() && cost > idleQP+idleConnection {
				t.Errorf("an idle QP with its connection costs the driver %.0f bytes besides its rings, want at most %d", cost,
					idleQP+idleConnection)
			}
			exchangeMany(t, server, client, qps)
		})
	}
}

// connectMany makes qps connections between the two programs.
func connectMany(t *testing.T, server, client *worker, qps int) {
	const depth = 2
	args := endpointArgs{QPs: qps, Depth: depth, Memory: 2 * qps * depth * slot, Receive: true}
	var before, after usage
	client.call(t, "usage", nil, &before)
	server.call(t, "endpoint", args, nil)
	client.call(t, "endpoint", args, nil)
	seconds := pair(t, server, client)
	client.call(t, "usage", nil, &after)
	t.Logf("%d connections in %.2f s, %.0f a second", qps, seconds, float64(qps)/seconds)
	t.Logf("client: %.0f bytes of heap and %.0f of resident memory a connection", per(after.Heap, before.Heap, qps),
		per(after.RSS, before.RSS, qps))
}

// exchangeMany has every connection carry requests and answers, and compares that with fewer connections.
func exchangeMany(t *testing.T, server, client *worker, qps int) {
	rates := map[int]float64{}
	for n := qps; n >= 10; n /= 10 {
		a := roundArgs{QPs: n, Rounds: max(size(20, 4), size(20000, 4000)/n)}
		var best float64
		before := retransmissions(t, client)
		for range 2 {
			best = max(best, float64(n*a.Rounds)/exchange(t, server, client, a))
		}
		rates[n] = best
		t.Logf("%5d QPs: %.0f requests and answers a second, %v", n, best, retransmissions(t, client).since(before))
	}
	if full() && rates[qps] < rates[qps/10]/4 {
		t.Errorf("%d QPs carry %.0f requests a second, %d carry %.0f", qps, rates[qps], qps/10, rates[qps/10])
	}
}

func per(after, before uint64, n int) float64 { return (float64(after) - float64(before)) / float64(n) }

// exchange has the client send requests on many connections, which the server answers. Both verify the data. It
// returns the seconds it took.
func exchange(t *testing.T, server, client *worker, a roundArgs) (seconds float64) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		if err := server.try("received", a, nil); err != nil {
			t.Errorf("server: %v", err)
		}
	}()
	err := client.try("rounds", a, &seconds)
	wg.Wait()
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	return seconds
}

// testDriver is a driver in the process of the test.
type testDriver struct {
	*driver.Driver
	addrs [2]netip.Addr
}

// startDriver starts a driver with two adapters, between which connections take the given path.
func startDriver(t testing.TB, path string) *testDriver {
	t.Helper()
	addrs, dir := testbed.Addrs(), tempDir(t)
	d, err := driver.Start(t.Context(), config.Config{
		Socket: dir + "/d.sock", State: dir + "/state", SkipSelfCheck: true,
		Adapters: []config.Adapter{{Name: "left", Address: addrs[0], Path: path}, {Name: "right", Address: addrs[1], Path: path}},
	}, driver.Options{Version: "test"})
	check(t, err)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close the driver: %v", err)
		}
	})
	return &testDriver{d, addrs}
}

func (d *testDriver) attach(t testing.TB, side int) *worker {
	t.Helper()
	w := spawn(t)
	w.call(t, "open", openArgs{Socket: d.Config().Socket, Addr: d.addrs[side]}, nil)
	return w
}
