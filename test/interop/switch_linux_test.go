package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/lan"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/state"
	"github.com/softvpi/softvpi/internal/fabric/topology"
)

// TestGuestOnASwitch: a virtual machine whose card is the host side of an adapter that is plugged in at a live Ethernet switch, with this
// system behind another adapter there: its kernel moves bytes by TCP, and its rxe pings that adapter's RDMA function, through the switch.
func TestGuestOnASwitch(t *testing.T) {
	site(t)
	dir, err := os.MkdirTemp("", "vm") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, vm := filepath.Join(dir, "cables"), filepath.Join(dir, "vm")
	sw := runSwitch(t, socket)
	plug := func(name string, a config.Adapter) *driver.Driver {
		t.Helper()
		a.Name, a.Link, a.Node = name, config.LinkFabric, name
		d, err := driver.Start(t.Context(), config.Config{Socket: filepath.Join(dir, name+".sock"), State: filepath.Join(dir, name),
			SkipSelfCheck: true, Fabric: &config.Fabric{Connect: socket}, Adapters: []config.Adapter{a}}, driver.Options{Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	// The machine's adapter has the address of its card, and no RDMA: RoCE is the machine's.
	near := plug("near", config.Adapter{Address: netip.MustParseAddr("10.99.0.77"), Wire: config.Wire{MAC: "52:54:00:99:00:02", Prefix: 24},
		HostSide: config.HostSide{Host: config.HostDatagram + ":" + vm}})
	off := "4"
	if _, err := near.Set("near", "roce_mode", &off); err != nil {
		t.Fatal(err)
	}
	if err := near.RestartAdapter("near"); err != nil {
		t.Fatal(err)
	}
	g := bootOn(t, 1500, fmt.Sprintf("dgram,id=n0,local.type=unix,local.path=%s.peer,remote.type=unix,remote.path=%[1]s", vm))
	far := plug("far", config.Adapter{Address: ours.v4, Wire: config.Wire{MAC: "02:00:00:00:99:01", Prefix: 24},
		HostSide: config.HostSide{Host: "tap:nic0"}})
	command(t, "ip", "addr", "add", ours.v4.String()+"/24", "dev", "nic0")
	command(t, "ip", "addr", "add", ours.v6.String()+"/64", "dev", "nic0", "nodad")
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { g.bulk(t, f) })
	}
	g.driver = far.Config().Socket
	t.Cleanup(func() { g.driver = "" })
	g.pings(t, families[0], framePings)
	sw.Lock()
	defer sw.Unlock()
	var part state.Part
	text, err := sw.Part("0")
	if err != nil || json.Unmarshal([]byte(text), &part) != nil || len(part.Ports) < 2 {
		t.Fatal(err, text)
	}
	for _, p := range part.Ports[:2] { // each direction carries the bytes of each family
		if !p.Host || p.InBytes < 2*bulkBytes || p.OutBytes < 2*bulkBytes {
			t.Errorf("%+v", p)
		}
	}
}

// runSwitch runs a fabric of a switch with hosts near and far at a socket.
func runSwitch(t *testing.T, socket string) *live.Rack {
	t.Helper()
	port := ethernet.PortConfig{Trust: ethernet.TrustDSCP}
	host := func(name string) lan.Node {
		return lan.Node{Name: name, Station: &ethernet.StationConfig{Wire: port, Waiting: 64 << 10}}
	}
	sw := lan.Node{Name: "switch", Ports: []ethernet.PortConfig{port, port}}
	n, err := lan.New(0, lan.Config{Nodes: []lan.Node{host("near"), host("far"), sw},
		Links: []lan.Link{{A: ethernet.End{Node: 0}, B: ethernet.End{Node: 2}},
			{A: ethernet.End{Node: 1}, B: ethernet.End{Node: 2, Port: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	r := live.New(fabric.New(&topology.Topology{}, nil), live.Options{Ethernet: n})
	l, err := live.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = r.Close()
	})
	return r
}
