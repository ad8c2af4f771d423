package driver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// vpi returns a configuration of a ConnectX-3's ports of either protocol, on a netlist with a node for each.
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

// oneCard returns a configuration with a device of two ports that can be either.
func oneCard(t *testing.T) config.Config {
	t.Helper()
	cfg := vpi(t, 2)
	const card = "Switch\t3 \"sw1\"\n[1]\t\"card\"[1]\n[2]\t\"card\"[2]\n\nCa\t2 \"card\"\n[1]\t\"sw1\"[1]\n[2]\t\"sw1\"[2]\n"
	if err := os.WriteFile(cfg.Fabric.Netlist, []byte(card), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range cfg.Adapters {
		cfg.Adapters[i].Device, cfg.Adapters[i].Node, cfg.Adapters[i].Port = "HCA", "card", 0
	}
	return cfg
}

// TestPortSensesItsProtocol: a port senses what it is connected to when the adapter starts or restarts, and not in
// between; with IB or ETH it has that protocol (WinOF 5.50, 4.1.1).
func TestPortSensesItsProtocol(t *testing.T) {
	t.Parallel()
	d := start(t, vpi(t, 1))
	defer stop(t, d)
	is := func(what string, infiniBand bool) {
		t.Helper()
		if a := d.Status().Adapters[0]; (a.InfiniBand != nil) != infiniBand || !a.Enabled {
			t.Errorf("%s: enabled %v, InfiniBand %+v; want InfiniBand: %v", what, a.Enabled, a.InfiniBand, infiniBand)
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
	await.Eventually(t, "the port comes up", func() bool { return d.Status().Adapters[0].Up })
	if err := checkOf(t, d); err != nil {
		t.Error(err)
	}
	for _, e := range raised(t, d) {
		if strings.HasPrefix(e, "PortTypeNotChanged") {
			t.Error("unwanted event: ", e)
		}
	}
}

// checkOf runs the self-check over the first adapter.
func checkOf(t *testing.T, d *Driver) error {
	t.Helper()
	_, err := d.selfCheck(t.Context())
	return err
}

// TestPortTypeThatCannotBe: if the link cannot have the protocol that is set, a ConnectX-3's port keeps the one it
// has and a later card's does not start; both report it.
func TestPortTypeThatCannotBe(t *testing.T) {
	cfg := twoCables(t)
	cfg.SkipSelfCheck = true
	cfg.Adapters[0].Generation = "mlx4"
	d := start(t, cfg)
	set(t, d, "left", "PortType1", "2")
	restart(t, d, "left")
	if d.portOf(0) == nil {
		t.Error("an mlx4 port at an InfiniBand link changed to Ethernet")
	}
	wantEvent(t, d, "PortTypeNotChanged", "left", "ETH")
	if err := d.registry.Apply(registry.Change{Kind: registry.SetValue, Key: d.running[1].Configuration(),
		Value: registry.DWord("LINK_TYPE_P1", 2)}); err != nil {
		t.Fatal(err)
	}
	if err := d.RestartAdapter("right"); err == nil {
		t.Error("an mlx5 port restarted with a protocol that its link cannot have")
	}
	wantEvent(t, d, "UnsupportedPortType", "right", "ETH")
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	if a := d.Status().Adapters; !a[0].Enabled || a[1].Enabled {
		t.Error("want the mlx4 port enabled and the mlx5 port not")
	}
}

// TestIllegalPorts: port 1 Ethernet without RoCE and port 2 InfiniBand is not allowed (WinOF 5.50, 4.1.1.2). If it is
// set, RoCE is switched on; if it results from sensing, the port does not start.
func TestIllegalPorts(t *testing.T) {
	for _, sensed := range []bool{false, true} {
		cfg := oneCard(t)
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
			wantEvent(t, d, "PortsContradict", "HCA", "port 2 does not start")
		} else {
			wantEvent(t, d, "RoCEModeRefused", "left", "without RoCE")
			wantEvent(t, d, "PortsContradict", "HCA", "port 1 starts with RoCE v2")
		}
		stop(t, d)
	}
}

// TestSameGUID: of two devices that are the same node of the fabric only the first starts, because they would have the
// same GUID (WinOF 5.50, 10).
func TestSameGUID(t *testing.T) {
	cfg := oneCard(t)
	for i := range cfg.Adapters {
		a := &cfg.Adapters[i]
		a.Device, a.Link, a.Port = "", config.LinkCable, uint8(i+1)
	}
	d := start(t, cfg)
	defer stop(t, d)
	if a := d.Status().Adapters; !a[0].Enabled || a[1].Enabled {
		t.Errorf("left is enabled %v and right %v, want only the first", a[0].Enabled, a[1].Enabled)
	}
	wantEvent(t, d, "SameGUID", "right", "another one has the GUID")
	wantEvent(t, d, "AdapterStartFailed", "right", "the same GUID")
}

// TestPortsOfADeviceRestartAlone: each port of a device takes up its own key at its own restart; the connections and
// the state of the other stay.
func TestPortsOfADeviceRestartAlone(t *testing.T) {
	cfg := oneCard(t)
	d := start(t, cfg)
	defer stop(t, d)
	await.Eventually(t, "the ports come up", func() bool { a := d.Status().Adapters; return a[0].Up && a[1].Up })
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
		t.Errorf("the second port is still InfiniBand, or pending: %+v", a[1].InfiniBand)
	}
	if !a[0].Up || a[0].InfiniBand == nil || a[0].InfiniBand.LID != before.InfiniBand.LID {
		t.Errorf("the first port did not stay as it was: %+v", a[0].InfiniBand)
	}
	for _, e := range raised(t, d) {
		if strings.HasPrefix(e, "LinkDown") && strings.Contains(e, "left") || strings.HasPrefix(e, "AdapterStopped") &&
			strings.Contains(e, "left") {
			t.Error("unwanted event: ", e)
		}
	}
}

// TestPortType_Functions: virtual functions of a port that was InfiniBand's wait while it is Ethernet's over a wire that has no room for
// them, also in a driver that has started meanwhile, and are there when it is InfiniBand's again.
func TestPortType_Functions(t *testing.T) {
	t.Parallel()
	cfg := vpi(t, 1)
	d := start(t, cfg)
	there := func() (names []string) {
		for _, f := range d.Functions() {
			if f.Up && f.Fabric != nil {
				names = append(names, f.Name)
			}
		}
		slices.Sort(names)
		return names
	}
	come := func(what string, want ...string) {
		t.Helper()
		await.Eventually(t, what, func() bool { return slices.Equal(there(), want) })
	}
	become := func(kind string) {
		t.Helper()
		set(t, d, "left", "PortType1", kind)
		restart(t, d, "left")
	}
	create(t, d, "left", "red", "guid=0x0200c90000000012", "max=100")
	create(t, d, "left", "blue")
	come("both are up", "blue", "red")
	become("2")
	come("none is up at an Ethernet port")
	become("1")
	come("both are up again", "blue", "red")
	become("2")
	stop(t, d)
	d = start(t, cfg)
	defer func() { stop(t, d) }()
	come("none is up at the Ethernet port of the next driver")
	become("1")
	come("both are up there, too", "blue", "red")
	for _, f := range d.Functions() {
		if f.Name == "red" && (f.Max != 100 || len(f.Fabric.GUIDs) == 0 || f.Fabric.GUIDs[0] != "0x0200c90000000012") {
			t.Errorf("its settings are %+v, %+v", f, f.Fabric)
		}
	}
}
