package driver

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/registry"
)

// shown returns what is decided about a driver's virtual functions, sorted.
func shown(d *Driver) (list []string) {
	for _, f := range d.Functions() {
		list = append(list, fmt.Sprintf("%s %s %s %s vlan %d vlans %s link %s up %v max %g min %g trust %v group %s keys %v", f.Adapter, f.Name, f.MAC,
			f.Address, f.VLAN, f.VLANs, f.Link, f.Up, f.Max, f.Min, f.Trust, f.Group, f.ByKeys))
	}
	slices.Sort(list)
	return list
}

// equal fails unless two lists are the same.
func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("%s:\n%s\nwant:\n%s", what, g, w)
	}
}

func create(t *testing.T, d *Driver, adapter, name string, words ...string) {
	t.Helper()
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: adapter, Name: name, Settings: words}); err != nil {
		t.Fatal(err)
	}
}

func change(t *testing.T, d *Driver, name string, words ...string) {
	t.Helper()
	if err := d.SetFunction(api.FunctionRequest{Name: name, Settings: words}); err != nil {
		t.Fatal(err)
	}
}

// TestFunctions_Kept: the next driver has the virtual functions of the one before, as they were set: all settings of those that were
// created by command, and what was changed of those that the keys have; not those that were removed.
func TestFunctions_Kept(t *testing.T) {
	cfg := hosting(t)
	d := start(t, cfg)
	mlxconfigured(t, d, 0, map[string]uint64{"SRIOV_EN": 1, "NUM_OF_VFS": 2})
	create(t, d, "a", "all", "mac=02:00:00:00:00:09", "address=192.0.2.9/24", "vlan=7", "link=up", "max=100", "min=10", "trust=on",
		fmt.Sprint("group=", os.Getgid()))
	create(t, d, "b", "tags", "vlans=10+20-29")
	create(t, d, "a", "gone")
	change(t, d, "all", "max=200")
	change(t, d, "a-vf1", "vlan=5", "link=down")
	if err := d.SetFunction(api.FunctionRequest{Name: "all", Settings: []string{"address=192.0.2.2/24"}}); err == nil {
		t.Error("it has the address of an adapter")
	}
	if err := d.RemoveFunction("gone"); err != nil {
		t.Fatal(err)
	}
	want := shown(d)
	if len(want) != 4 || !strings.Contains(want[2], " all ") || !strings.Contains(want[2], "vlan 7 vlans  link up up true max 200 min 10 trust true") {
		t.Errorf("before: %q", want)
	}
	if err := d.RestartAdapter("a"); err != nil {
		t.Fatal(err)
	}
	equal(t, "after a restart of the adapter", shown(d), want)
	stop(t, d)
	d = start(t, cfg)
	equal(t, "in the next driver", shown(d), want)
	if err := d.RemoveFunction("a-vf1"); err != nil { // what was set of it is forgotten; the keys still have it
		t.Fatal(err)
	}
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	if got := shown(d); len(got) != 4 || !strings.Contains(got[1], " a-vf1 ") || !strings.Contains(got[1], "vlan 0 vlans  link auto") {
		t.Errorf("after a-vf1 was removed: %q", got)
	}
}

// TestFunctions_KeptElse: what the configuration says wins over what is kept. A virtual function whose address an adapter has now is
// there without working until it gets another one; one of an adapter that is not configured any more comes back with it.
func TestFunctions_KeptElse(t *testing.T) {
	cfg := hosting(t)
	d := start(t, cfg)
	create(t, d, "a", "red", "address=192.0.2.9/24")
	create(t, d, "b", "blue", "max=5")
	want := shown(d)
	stop(t, d)

	other := cfg
	other.Adapters = []config.Adapter{cfg.Adapters[0], cfg.Adapters[1]}
	other.Adapters[1].Name, other.Adapters[1].Address = "c", netip.MustParseAddr("192.0.2.9")
	d = start(t, other)
	if got := d.Functions(); len(got) != 1 || got[0].Name != "red" || got[0].Up || got[0].Address != "192.0.2.9/24" {
		t.Errorf("with its address taken: %+v", got)
	}
	change(t, d, "red", "address=192.0.2.10/24")
	if got := d.Functions(); len(got) != 1 || !got[0].Up {
		t.Errorf("with another one: %+v", got)
	}
	change(t, d, "red", "max=7")
	stop(t, d)

	d = start(t, cfg)
	defer stop(t, d)
	want[0] = strings.NewReplacer("192.0.2.9", "192.0.2.10", "max 0", "max 7").Replace(want[0])
	equal(t, "as it was configured", shown(d), want)
}

// TestFunctions_KeptWrong: a kept setting that is not allowed any more is told, and the virtual function's link is down; its other
// settings act. What describes no virtual function is left out.
func TestFunctions_KeptWrong(t *testing.T) {
	cfg := hosting(t)
	d := start(t, cfg)
	create(t, d, "a", "red", "vlan=7", "max=5")
	a := d.running[0].known()
	for _, f := range []registry.Function{{Name: "red", Created: true, Settings: []string{"vlan=7", "max=5", "group=no such group"}},
		{Name: "no name", Created: true}, {Name: "empty", Created: true}} {
		if err := d.registry.Apply(a.KeepFunction(f)...); err != nil {
			t.Fatal(err)
		}
	}
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	got := d.Functions()
	if len(got) != 2 || got[0].Name != "empty" || !got[0].Up {
		t.Fatalf("%+v", got)
	}
	if f := got[1]; f.Name != "red" || f.VLAN != 7 || f.Max != 5 || f.Link != "down" || f.Up || f.Group != "" {
		t.Errorf("%+v", f)
	}
	wantEvent(t, d, "RegistryValueIgnored", `VirtualFunctions\red\Settings`, "group=no such group", "a group of the system", "link=down")
	change(t, d, "red", "link=auto")
	if f := d.Functions()[1]; !f.Up {
		t.Errorf("after its link was set: %+v", f)
	}
}
