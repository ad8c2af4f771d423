package driver

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// twoCables returns a configuration with two InfiniBand ports and nothing else.
func twoCables(t *testing.T) config.Config {
	cfg := twoAdapters(t)
	cfg.Adapters = []config.Adapter{{Name: "left", Link: config.LinkCable}, {Name: "right", Link: config.LinkCable,
		Address: netip.MustParseAddr("10.99.0.2")}}
	return cfg
}

func (d *Driver) portOf(i int) *InfiniBandStatus { return d.Status().Adapters[i].InfiniBand }

// TestTwoCablesComeUp: two InfiniBand adapters come up without further configuration: with a switch, a subnet
// manager, and a self-check that transfers data over packets and over memory.
func TestTwoCablesComeUp(t *testing.T) {
	d := start(t, twoCables(t))
	defer stop(t, d)
	if got := d.Checks(); len(got) != 2 || got[0].Path != "wire" || got[1].Path != "local" {
		t.Errorf("checks %v, want the wire path, then the local one", got)
	}
	lids := map[uint16]bool{}
	for i, a := range d.Status().Adapters {
		p := a.InfiniBand
		if p == nil || !a.Up || p.State != "Active" || p.LID == 0 || p.SMLID == 0 || p.Rate != "4xEDR" || p.Mbps != 100_000 ||
			p.MTU != 4096 || len(p.PKeys) == 0 || p.PortGUID == 0 {
			t.Errorf("adapter %d: %+v", i, p)
			continue
		}
		lids[p.LID] = true
	}
	if len(lids) != 2 {
		t.Errorf("the LIDs are %v, want two different ones", lids)
	}
}

// TestDisabledAdapterTakesItsPortDown: a disabled adapter takes its port down and an enabled one brings it up again,
// and both states outlast a restart of the driver.
func TestDisabledAdapterTakesItsPortDown(t *testing.T) {
	t.Parallel()
	cfg := twoCables(t)
	d := start(t, cfg)
	set := func(enable bool) {
		t.Helper()
		if err := d.SetAdapter(AdapterRequest{Adapter: "right", Enable: enable}); err != nil {
			t.Fatal(err)
		}
	}
	set(false)
	if p := d.portOf(1); p.State != "Down" || p.Rate != "" {
		t.Errorf("the port of a disabled adapter is %+v, want it down", p)
	}
	if p := d.portOf(0); p.State != "Active" {
		t.Errorf("the other port is %+v, want it active", p)
	}
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	defer func() {
		if t.Failed() {
			t.Logf("adapters %+v, ports %+v and %+v", d.Status().Adapters, d.portOf(0), d.portOf(1))
		}
	}()
	if p := d.portOf(1); p.State != "Down" {
		t.Errorf("after a restart the port is %+v, want it down", p)
	}
	set(true)
	await.Eventually(t, "the port is active again", func() bool { return d.Status().Adapters[1].Up && d.portOf(1).State == "Active" })
	if err := d.RestartAdapter("left"); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the other port is active again", func() bool { return d.Status().Adapters[0].Up && d.portOf(0).State == "Active" })
}

// TestNoSubnetManager: without a subnet manager ports stay in Initialize, and nothing is checked.
func TestNoSubnetManager(t *testing.T) {
	cfg := twoCables(t)
	cfg.SubnetManager = &config.SubnetManager{Off: true}
	d := start(t, cfg)
	defer stop(t, d)
	if a := d.Status().Adapters[0]; a.Up || a.InfiniBand.State != "Initialize" || a.InfiniBand.LID != 0 {
		t.Errorf("up %v, %+v", a.Up, a.InfiniBand)
	}
	if len(d.Checks()) != 0 {
		t.Errorf("checked %v", d.Checks())
	}
}

const netlist = `Switch	3 "sw1"
[1]	"hca1"[1]	# "hca1" lid 0 1xFDR
[2]	"hca2"[2]	# "hca2" lid 0 4xHDR

Ca	1 "hca1"
[1]	"sw1"[1]	# lid 0 lmc 0 "sw1" lid 0 1xFDR

Ca	2 "hca2"
[2]	"sw1"[2]	# lid 0 lmc 0 "sw1" lid 0 4xHDR
`

// TestFabricOfANetlist: a netlist describes the fabric, and each adapter is at the node and port that the
// configuration names.
func TestFabricOfANetlist(t *testing.T) {
	cfg := twoCables(t)
	file := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(file, []byte(netlist), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Fabric = &config.Fabric{Netlist: file}
	cfg.Adapters[0].Node, cfg.Adapters[0].Port = "hca2", 2
	d := start(t, cfg)
	defer stop(t, d)
	if a, b := d.portOf(0).Rate, d.portOf(1).Rate; a != "4xHDR" || b != "1xFDR" {
		t.Errorf("the rates are %s and %s, want 4xHDR and 1xFDR", a, b)
	}
	if len(d.Checks()) != 2 {
		t.Errorf("checks %v, want two", d.Checks())
	}
	cfg = twoCables(t)
	cfg.Fabric, cfg.Adapters[0].Node = &config.Fabric{Netlist: file}, "hca9"
	if d, err := Start(context.Background(), cfg, Options{Version: "test"}); err == nil {
		stop(t, d)
		t.Error("an adapter at a node that does not exist was accepted")
	}
}
