package monitoring

import (
	"context"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/connected"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// watched is a driver with something of everything that the dashboard shows: adapters with packets and without, a VLAN interface with
// packets, a virtual function and a team.
func watched(t *testing.T) (*driver.Driver, config.Config) {
	t.Helper()
	at := func(name, address string) config.Adapter {
		return config.Adapter{Name: name, Link: config.LinkSwitch, Path: "wire", Address: netip.MustParseAddr(address),
			Wire: config.Wire{Switch: "s", Prefix: 24}}
	}
	cfg := driverbed.Config(t, at("a", "192.0.2.1"), at("b", "192.0.2.2"), at("c", "192.0.2.3"), at("d", "192.0.2.4"),
		config.Adapter{Name: "near"}, config.Adapter{Name: "nearer"})
	cfg.Manage = &config.Manage{Listen: "127.0.0.1:0"}
	d := driverbed.Start(t, cfg)
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	client := api.NewClient(cfg.Socket)
	for owner, address := range map[string]string{"a": "198.51.100.1/24", "b": "198.51.100.2/24"} {
		_, err := client.CreateVLAN(t.Context(), api.VLANRequest{Owner: owner, Name: "V", ID: 10, Priority: 3, Address: address})
		must(err)
	}
	_, err := client.CreateFunction(t.Context(), api.FunctionRequest{Adapter: "a", Name: "red", Settings: []string{"address=192.0.2.9/24"}})
	must(err)
	_, err = client.CreateTeam(t.Context(), api.TeamRequest{Name: "T", Type: "AFT"})
	must(err)
	for _, member := range []string{"c", "d"} {
		_, err := client.AttachMember(t.Context(), "T", member, api.TeamMemberRequest{Primary: member == "c", GivesMAC: member == "c"})
		must(err)
	}
	return d, cfg
}

// flow are messages that attached programs send from one address to another, one at a time.
type flow struct {
	sent atomic.Uint64 // bytes that have arrived
	stop func()
}

// message is the size of one.
const message = 20000

// send starts a flow, until it is stopped or the test ends.
func send(t *testing.T, socket string, from, to netip.Addr) *flow {
	t.Helper()
	conn, peer := connected.Pair(t, socket, from, to)
	f := &flow{}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		out, in := make([]byte, message), make([]byte, message)
		for ; ctx.Err() == nil; time.Sleep(2 * time.Millisecond) { // leaves processor time to Prometheus
			_, err := conn.Write(out)
			if err == nil {
				_, err = io.ReadFull(peer, in)
			}
			if err != nil {
				t.Errorf("traffic from %v to %v: %v", from, to, err)
				return
			}
			f.sent.Add(message)
		}
	})
	f.stop = sync.OnceFunc(func() {
		cancel()
		wait.Wait()
		_ = conn.Close()
		_ = peer.Close()
	})
	t.Cleanup(f.stop)
	return f
}
