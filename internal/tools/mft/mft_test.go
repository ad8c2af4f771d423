package mft

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver"
	driverconfig "github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// rig is a driver with adapters of both generations: left and last are mlx5, right is mlx4.
type rig struct {
	t      *testing.T
	cfg    driverconfig.Config
	driver *driver.Driver
}

func start(t *testing.T) *rig {
	t.Helper()
	g := &rig{t: t, cfg: driverbed.Config(t, driverconfig.Adapter{Name: "left"}, driverconfig.Adapter{Name: "right", Generation: "mlx4"},
		driverconfig.Adapter{Name: "last"})}
	g.run()
	t.Cleanup(func() { _ = g.driver.Close() })
	return g
}

func (g *rig) run() {
	g.t.Helper()
	var err error
	if g.driver, err = driver.Start(g.t.Context(), g.cfg, driver.Options{}); err != nil {
		g.t.Fatal(err)
	}
}

// call runs a tool against the rig's driver; typed is what the user types at its prompt.
func (g *rig) call(main tool.Main, typed string, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	env := tool.Env{Name: "tool", Args: append([]string{"-socket", g.cfg.Socket}, args...), Stdin: strings.NewReader(typed), Stdout: &out,
		Stderr: &errs}
	return main(g.t.Context(), env), out.String(), errs.String()
}

// ok runs a tool that must succeed without an error message, and returns its output.
func (g *rig) ok(main tool.Main, typed string, args ...string) string {
	g.t.Helper()
	status, out, errs := g.call(main, typed, args...)
	if status != tool.Success || errs != "" {
		g.t.Fatalf("%v: status %d: %s", args, status, errs)
	}
	return out
}

// line returns the values in a parameter's line, with one blank between them.
func line(t *testing.T, text, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ +` + name + ` +(.*)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in:\n%s", name, text)
	}
	return strings.Join(strings.Fields(m[1]), " ")
}

// SR-IOV is enabled in the manuals' steps: list the devices, query, set, answer the question, restart, query.
func TestEnablingSRIOV(t *testing.T) {
	g := start(t)
	if out, want := g.ok(MST, "", "status"), "MST devices:\n------------\nmt4115_pciconf0\nmt4103_pci_cr0\nmt4103_pciconf0\nmt4115_pciconf1\n"; out != want {
		t.Errorf("status prints\n%s\nwant\n%s", out, want)
	}
	const device = "mt4115_pciconf0"
	out := g.ok(Config, "", "-d", device, "q")
	if strings.Contains(out, "New") || line(t, out, "SRIOV_EN") != "N/A" {
		t.Error("want SRIOV_EN N/A and no new values before anything is set:\n", out)
	}
	out = g.ok(Config, "y\n", "-d", device, "s", "SRIOV_EN=1", "NUM_OF_VFS=16")
	fields, err := os.ReadFile(filepath.Join("testdata", "mlxconfig.fields"))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, name := range strings.Split(strings.TrimSpace(string(fields)), "\n") { // in the order of the manuals' samples
		i := strings.Index(out[at:], name)
		if i < 0 {
			t.Fatalf("no %q after offset %d in:\n%s", name, at, out)
		}
		at += i
	}
	for name, want := range map[string]string{"SRIOV_EN": "N/A 1", "NUM_OF_VFS": "N/A 16", "LINK_TYPE_P1": "N/A N/A"} {
		if got := line(t, out, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, want := range []string{"Apply new Configuration? ? (y/n) [n] : ", "Applying... Done!"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if got := line(t, g.ok(Config, "", "-d", device, "q"), "SRIOV_EN"); got != "N/A 1" {
		t.Errorf("SRIOV_EN before the restart: %s, want N/A 1", got)
	}
	if err := api.NewClient(g.cfg.Socket).RestartAdapter(t.Context(), "left"); err != nil {
		t.Fatal(err)
	}
	if out := g.ok(Config, "", "-d", device, "q"); line(t, out, "SRIOV_EN") != "1" || strings.Contains(out, "New") {
		t.Errorf("after the restart, want SRIOV_EN 1 and no new values:\n%s", out)
	}
	if err := g.driver.Close(); err != nil {
		t.Fatal(err)
	}
	g.run()
	if got := line(t, g.ok(Config, "", "-d", "/dev/mst/"+device, "query", "num_of_vfs"), "NUM_OF_VFS"); got != "16" {
		t.Errorf("NUM_OF_VFS after the driver's restart: %s, want 16", got)
	}
	if got := line(t, g.ok(Config, "", "-d", "mt4115_pciconf1", "q"), "SRIOV_EN"); got != "N/A" {
		t.Errorf("SRIOV_EN of the other device: %s, want N/A", got)
	}
	if out := g.ok(Config, "", "-d", device, "-y", "reset"); line(t, out, "SRIOV_EN") != "1 N/A" {
		t.Errorf("reset, want SRIOV_EN 1 N/A:\n%s", out)
	}
	if got := line(t, g.ok(Config, "", "-d", device, "q"), "NUM_OF_VFS"); got != "16 N/A" {
		t.Errorf("NUM_OF_VFS after the reset: %s, want 16 N/A", got)
	}
}

// mlxconfig changes nothing unless its question is answered with yes.
func TestNoIsTheDefault(t *testing.T) {
	g := start(t)
	for _, typed := range []string{"", "\n", "n\n", "yy\n"} {
		if out := g.ok(Config, typed, "-d", "mt4103_pciconf0", "set", "LINK_TYPE_P1=1", "set", "LINK_TYPE_P2=1"); !strings.Contains(out,
			"Nothing was changed") {
			t.Errorf("answer %q: want \"Nothing was changed\":\n%s", typed, out)
		}
		if out := g.ok(Config, "", "-d", "mt4103_pci_cr0", "q"); strings.Contains(out, "New") {
			t.Errorf("answer %q changed something:\n%s", typed, out)
		}
	}
	if out := g.ok(Config, "y", "-d", "mt4103_pciconf0", "set", "LINK_TYPE_P1=1", "set", "LINK_TYPE_P2=1"); line(t, out,
		"LINK_TYPE_P2") != "N/A 1" {
		t.Error("answer y: want LINK_TYPE_P2 N/A 1:\n", out)
	}
}

func TestJSON(t *testing.T) {
	g := start(t)
	var changed configured
	if err := json.Unmarshal([]byte(g.ok(Config, "", "-d", "mt4115_pciconf0", "-y", "--json", "set", "SRIOV_IB_ROUTING_MODE_P1=1")),
		&changed); err != nil {
		t.Fatal(err)
	}
	if changed.Applied == nil || !*changed.Applied || changed.Device != "mt4115_pciconf0" || changed.Adapter != "left" {
		t.Errorf("set prints %+v, want it applied to mt4115_pciconf0 of left", changed)
	}
	var list []configured
	if err := json.Unmarshal([]byte(g.ok(Config, "", "--json", "query", "SRIOV_IB_ROUTING_MODE_P1")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 || len(list[0].Parameters) != 1 || *list[0].Parameters[0].New != 1 || list[0].Parameters[0].Status != "built" ||
		len(list[1].Parameters) != 0 {
		t.Errorf("query prints %+v, want 3 devices, the first with one parameter that acts", list)
	}
	var known map[string][]described
	if err := json.Unmarshal([]byte(g.ok(Config, "", "--json", "i")), &known); err != nil || len(known) != 3 ||
		known["mt4103_pciconf0"][0].Name != "SRIOV_EN" {
		t.Errorf("i prints %v, %v; want 3 devices that know SRIOV_EN", err, known)
	}
	var all []mstDevice
	if err := json.Unmarshal([]byte(g.ok(MST, "", "status", "-v", "--json")), &all); err != nil || len(all) != 3 ||
		all[1].Other != "mt4103_pci_cr0" {
		t.Errorf("status prints %v, %v; want 3 devices, the second also named mt4103_pci_cr0", err, all)
	}
	if out := g.ok(MST, "", "status", "-v"); !regexp.MustCompile(`(?m)^mt4115_pciconf0 +bus:dev\.fn=01:00\.0 +net-left$`).MatchString(out) {
		t.Error("no bus, device and function of left in\n", out)
	}
}

func TestRefusals(t *testing.T) {
	g := start(t)
	for _, c := range []struct {
		main   tool.Main
		args   string
		status int
		want   string
	}{
		{Config, "", 2, "a command is missing"},
		{Config, "burn", 2, "allowed: query, set, reset, show_confs"},
		{Config, "set SRIOV_EN=1", 2, "-d is missing"},
		{Config, "-d mt4117_pciconf0 q", 2, "allowed: mt4115_pciconf0, mt4103_pciconf0, mt4115_pciconf1"},
		{Config, "-d mt4115_pciconf0 set", 2, "NAME=VALUE"},
		{Config, "-d mt4115_pciconf0 set SRIOV_EN", 2, "NAME=VALUE"},
		{Config, "-d mt4115_pciconf0 set SRIOV_EN=2", 2, "SRIOV_EN is 2; allowed: 0 (False), 1 (True)"},
		{Config, "-d mt4115_pciconf0 set SRIOV_EN=1 sriov_en=0", 2, "given twice"},
		{Config, "-d mt4103_pciconf0 set LLDP_NB_DCBX_P1=1", 2, "allowed: SRIOV_EN, NUM_OF_VFS"},
		{Config, "-d mt4103_pciconf0 set NUM_OF_VFS=127", 2, "allowed: 0 to 126"},
		{Config, "q nothing", 2, "show_confs"},
		{Config, "i more", 2, "more"},
		{Config, "-z", 2, "-z"},
		{MST, "", 2, "allowed: status, help"},
		{MST, "start", 2, "allowed: status, help"},
		{MST, "status more", 2, "allowed: status, help"},
	} {
		status, out, errs := g.call(c.main, "y\n", strings.Fields(c.args)...)
		if status != c.status || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 || strings.Contains(out, "Apply") {
			t.Errorf("%s: status %d, %q %q, want %d and %q", c.args, status, out, errs, c.status, c.want)
		}
	}
	_ = g.driver.Close()
	if status, _, errs := g.call(Config, "", "q"); status != tool.Failure || !strings.Contains(errs, "no driver is running") {
		t.Errorf("without a driver: status %d, %s; want %d and \"no driver is running\"", status, errs, tool.Failure)
	}
}

// Every parameter of mlxconfig acts.
func TestParametersAct(t *testing.T) {
	for _, p := range catalogue.Parameters() {
		if p.Tool == catalogue.ConfigTool && p.Status != catalogue.Built {
			t.Errorf("%s is %v", p.Name, p.Status)
		}
	}
}
