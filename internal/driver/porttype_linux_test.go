package driver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/registry"
)

// vpi is a configuration of ports that can be either, of a ConnectX-3, on a netlist with a node for each.
func vpi(t *testing.T, ports int) config.Config {
	t.Helper()
	cfg := twoAdapters(t)
	file := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(file, []byte(netlist), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Fabric, cfg.SkipSelfCheck = &config.Fabric{Netlist: file}, true
	cfg.Adapters = cfg.Adapters[:ports]
	for i := range cfg.Adapters {
		a := &cfg.Adapters[i]
		a.Link, a.Generation, a.Node, a.Port = config.LinkVPI, "mlx4", [...]string{"hca1", "hca2"}[i], [...]uint8{1, 2}[i]
	}
	return cfg
}

// WinOF 5.50, 4.1.1: a port senses what it is plugged into when the adapter starts and when it is restarted, and not meanwhile; IB and
// ETH are as they say.
func TestPortSensesItsProtocol(t *testing.T) {
	d := start(t, vpi(t, 1))
	defer stop(t, d)
	is := func(what string, infiniBand bool) {
		t.Helper()
		if a := d.Status().Adapters[0]; (a.InfiniBand != nil) != infiniBand || !a.Enabled {
			t.Errorf("%s: %+v", what, a.InfiniBand)
		}
	}
	cut := func(do func(*fabric.Fabric, clock.Time, fabric.Place)) {
		d.wiring.rack.Do(func(now clock.Time, f *fabric.Fabric) { do(f, now, fabric.Place{Node: 1, Port: 1}) })
	}
	is("the fabric is there", true)
	cut((*fabric.Fabric).Unlink)
	is("the cable is pulled out", true)
	restart(t, d, "left")
	is("restarted without a cable", false)
	if err := checkOf(t, d); err != nil {
		t.Error(err)
	}
	cut((*fabric.Fabric).Relink)
	is("the cable is back", false)
	set(t, d, "left", "PortType1", "2")
	restart(t, d, "left")
	is("ETH", false)
	set(t, d, "left", "PortType1", "1")
	if !d.Status().Adapters[0].Pending {
		t.Error("the key does not wait for a restart")
	}
	restart(t, d, "left")
	is("IB", true)
	eventually(t, "the port does not come up", func() bool { return d.Status().Adapters[0].Up })
	if err := checkOf(t, d); err != nil {
		t.Error(err)
	}
	for _, e := range raised(t, d) {
		if strings.HasPrefix(e, "PortTypeNotChanged") {
			t.Error(e)
		}
	}
}

// checkOf pings over the first adapter.
func checkOf(t *testing.T, d *Driver) error {
	t.Helper()
	_, err := d.selfCheck(t.Context())
	return err
}

// A protocol that the link cannot have: a ConnectX-3's port stays as it is, a later one does not start; both say so.
func TestPortTypeThatCannotBe(t *testing.T) {
	cfg := twoCables(t)
	cfg.SkipSelfCheck = true
	cfg.Adapters[0].Generation = "mlx4"
	d := start(t, cfg)
	set(t, d, "left", "PortType1", "2")
	restart(t, d, "left")
	if d.portOf(0) == nil {
		t.Error("an mlx4 port is Ethernet's")
	}
	wantEvent(t, d, "PortTypeNotChanged", "left", "ETH")
	if err := d.registry.Apply(registry.Change{Kind: registry.SetValue, Key: d.running[1].Configuration(), Value: registry.DWord("LINK_TYPE_P1", 2)}); err != nil {
		t.Fatal(err)
	}
	if err := d.RestartAdapter("right"); err == nil {
		t.Error("an mlx5 port restarts")
	}
	wantEvent(t, d, "UnsupportedPortType", "right", "ETH")
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	if a := d.Status().Adapters; !a[0].Enabled || a[1].Enabled {
		t.Error("an mlx5 port starts")
	}
}

// WinOF 5.50, 4.1.1.2: port 1 Ethernet without RoCE and port 2 InfiniBand is no configuration. Set so, RoCE is switched on; sensed
// so, the port does not start.
func TestIllegalPorts(t *testing.T) {
	for _, sensed := range []bool{false, true} {
		cfg := vpi(t, 2)
		cfg.Adapters[0].Device, cfg.Adapters[1].Device = "HCA", "HCA"
		d := start(t, cfg)
		set(t, d, "left", "PortType1", "2")
		if !sensed {
			set(t, d, "left", "PortType2", "1")
		}
		set(t, d, "left", "roce_mode", "4")
		stop(t, d)
		d = start(t, cfg)
		a := d.Status().Adapters
		if a[0].InfiniBand != nil || sensed && a[1].Up || !sensed && (a[0].RoCE == "none" || !a[0].Up || a[1].InfiniBand == nil) {
			t.Errorf("sensed %v: %+v\n%+v", sensed, a[0], a[1])
		}
		if sensed {
			wantEvent(t, d, "AdapterStartFailed", "right", "without RoCE")
		} else {
			wantEvent(t, d, "RoCEModeRefused", "left", "without RoCE")
		}
		stop(t, d)
	}
}

// Each port of a device takes its own key up at its own restart, and the other's connections and state stay as they are.
func TestPortsOfADeviceRestartAlone(t *testing.T) {
	cfg := vpi(t, 2)
	cfg.Adapters[0].Device, cfg.Adapters[1].Device = "HCA", "HCA"
	d := start(t, cfg)
	defer stop(t, d)
	eventually(t, "the ports do not come up", func() bool { a := d.Status().Adapters; return a[0].Up && a[1].Up })
	before := d.Status().Adapters[0]
	if a := d.Status().Adapters; a[0].Device != "left" || a[1].Device != "left" || a[0].Port != 1 || a[1].Port != 2 {
		t.Fatalf("the ports are %d of %q and %d of %q", a[0].Port, a[0].Device, a[1].Port, a[1].Device)
	}
	set(t, d, "left", "PortType2", "2")
	if a := d.Status().Adapters; a[0].Pending || !a[1].Pending {
		t.Errorf("the key waits for a restart of the first port %v, of the second %v", a[0].Pending, a[1].Pending)
	}
	restart(t, d, "right")
	a := d.Status().Adapters
	if a[1].InfiniBand != nil || a[1].Pending {
		t.Errorf("the second port is %+v", a[1].InfiniBand)
	}
	if !a[0].Up || a[0].InfiniBand == nil || a[0].InfiniBand.LID != before.InfiniBand.LID {
		t.Errorf("the first port is %+v", a[0].InfiniBand)
	}
	for _, e := range raised(t, d) {
		if strings.HasPrefix(e, "LinkDown") && strings.Contains(e, "left") || strings.HasPrefix(e, "AdapterStopped") && strings.Contains(e, "left") {
			t.Error(e)
		}
	}
}
