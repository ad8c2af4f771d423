package mft

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	driverconfig "github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/firmware"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// field returns a value that flint query prints.
func field(t *testing.T, text, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `: +(.*)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in:\n%s", name, text)
	}
	return strings.Join(strings.Fields(m[1]), " ")
}

func replace(t *testing.T, file, old, now string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), old) {
		t.Fatalf("no %q in %s (%v):\n%s", old, file, err, b)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(b), old, now, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// SR-IOV is enabled by the manual's steps with flint and mlxburn (WinOF 5.50, 4.5.3.4.1.2): dump the configuration, edit it,
// make an image of it, burn that, restart.
func TestEnablingSRIOVByFlint(t *testing.T) {
	g := start(t)
	t.Chdir(t.TempDir())
	const device = "mt4103_pciconf0"
	for _, f := range []struct{ file, text string }{{"device.ini", g.ok(Flint, "", "-d", device, "dc")}} {
		if err := os.WriteFile(f.file, []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(t, "device.ini", "num_pfs = 1\nsriov_en = false\ntotal_vfs = 16\n", "num_pfs = 1\ntotal_vfs = 8\nsriov_en = true\n")
	replace(t, "device.ini", "Name = SoftVPI 4103", "Name = Ours")
	g.ok(Flint, "", "-d", device, "ri", "fw.mlx")
	g.ok(Burn, "", "-fw", "fw.mlx", "-conf", "device.ini", "-wrimage", "file.bin")
	if out := g.ok(Flint, "", "-i", "file.bin", "verify"); !strings.Contains(out, "-I- FW image verification succeeded. Image is bootable.") {
		t.Errorf("verify prints:\n%s", out)
	}
	if out := g.ok(Flint, "", "-dev", device, "-image", "file.bin", "b"); !strings.Contains(out, "-I- To load new FW run mlxfwreset") {
		t.Errorf("burn prints:\n%s", out)
	}
	if out := g.ok(Flint, "", "-d", device, "q"); field(t, out, "Name") != "Ours" || !strings.Contains(out, "until its reset") {
		t.Errorf("after the burn, want the name Ours, and that the device runs another image:\n%s", out)
	}
	written, _ := os.ReadFile("file.bin")
	g.ok(Flint, "", "-d", device, "ri", "again.bin")
	if again, err := os.ReadFile("again.bin"); err != nil || string(again) != string(written) {
		t.Errorf("ri reads another image than was burned (%v)", err)
	}
	g.ok(Reset, "", "-d", device, "r", "--yes")
	if out := g.ok(Flint, "", "-d", device, "q"); strings.Contains(out, "until its reset") {
		t.Errorf("after the reset:\n%s", out)
	}
	if out := g.ok(Config, "", "-d", device, "i"); !regexp.MustCompile(`NUM_OF_VFS.*\n.*Default 8;`).MatchString(out) {
		t.Errorf("the image's default of NUM_OF_VFS is not mlxconfig's:\n%s", out)
	}
	if out := g.ok(Config, "", "-d", "mt4115_pciconf0", "i"); !regexp.MustCompile(`NUM_OF_VFS.*\n.*Default 16;`).MatchString(out) {
		t.Errorf("another device has the image's default:\n%s", out)
	}
}

// A burned base is that of the ports' GUIDs and MACs from the reset on, and outlives the driver; 0 gives it back.
func TestBases(t *testing.T) {
	g := start(t)
	status := func() *api.AdapterStatus {
		t.Helper()
		s, err := api.NewClient(g.cfg.Socket).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return &s.Adapters[0]
	}
	const device = "mt4115_pciconf0"
	own := status()
	out := g.ok(Flint, "y\n", "-d", device, "-guid", "0x0002c90300a0b0c0", "-mac", "00:02:c9:a0:b0:c0", "sg")
	if !strings.Contains(out, "Do you want to continue ?") {
		t.Errorf("sg asks nothing:\n%s", out)
	}
	if a := status(); a.GUID != own.GUID || a.MAC != own.MAC {
		t.Errorf("before the reset the port has GUID %x, MAC %s", a.GUID, a.MAC)
	}
	g.ok(Reset, "y\n", "-d", device, "reset")
	check := func(when string) {
		t.Helper()
		a := status()
		if a.GUID != 0x0002c90300a0b0c0 || a.NodeGUID != a.GUID || a.MAC != "00:02:c9:a0:b0:c0" {
			t.Errorf("%s: GUID %016x, node GUID %016x, MAC %s", when, a.GUID, a.NodeGUID, a.MAC)
		}
	}
	check("after the reset")
	if out := g.ok(Flint, "", "-d", device, "q"); field(t, out, "Base GUID") != "0002c90300a0b0c0 1" ||
		field(t, out, "Base MAC") != "0002c9a0b0c0 1" {
		t.Errorf("query prints:\n%s", out)
	}
	if err := g.driver.Close(); err != nil {
		t.Fatal(err)
	}
	g.run()
	check("after the driver's restart")
	g.ok(Flint, "", "-d", device, "-guid", "0", "-mac", "0", "-y", "sg")
	g.ok(Flint, "", "-d", device, "swreset")
	if a := status(); a.GUID != own.GUID || a.MAC != own.MAC {
		t.Errorf("without bases: GUID %x, MAC %s; want %x, %s", a.GUID, a.MAC, own.GUID, own.MAC)
	}
}

// Two devices that were burned with one GUID do not both run (WinOF 5.50, 10).
func TestSameGUID(t *testing.T) {
	g := start(t)
	for _, device := range []string{"mt4115_pciconf0", "mt4115_pciconf1"} {
		g.ok(Flint, "", "-d", device, "-guid", "0002c90300a0b0c0", "-y", "sg")
	}
	g.ok(Reset, "", "-d", "mt4115_pciconf0", "-y", "r")
	if status, _, errs := g.call(Reset, "", "-d", "mt4115_pciconf1", "-y", "r"); status != tool.Failure ||
		!strings.Contains(errs, "two devices have the same GUID") {
		t.Errorf("the second reset ends with %d, %s", status, errs)
	}
}

// An image for another board is burned only with -allow_psid_change, keeps the device's bases, and asks.
func TestPSID(t *testing.T) {
	g := start(t)
	t.Chdir(t.TempDir())
	const device = "mt4115_pciconf0"
	g.ok(Flint, "", "-d", device, "-mac", "0002c9a0b0c0", "-y", "sg")
	g.ok(Flint, "", "-d", device, "ri", "fw.mlx")
	if err := os.WriteFile("oem.ini", []byte("[ADAPTER]\nPSID = OEM_0000000001\nbase_mac = 020000000001\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.ok(Burn, "", "-fw", "fw.mlx", "-conf", "oem.ini", "-wrimage", "oem.bin")
	status, _, errs := g.call(Flint, "y\n", "-d", device, "-i", "oem.bin", "burn")
	if want := "PSID mismatch. The PSID on flash (SVP_4115000001) differs from the PSID in the given image (OEM_0000000001)"; status != 2 ||
		!strings.Contains(errs, want) {
		t.Errorf("status %d, %s; want 2, %s", status, errs, want)
	}
	if status, _, errs := g.call(Flint, "n\n", "-d", device, "-i", "oem.bin", "-allow_psid_change", "burn"); status != 1 ||
		!strings.Contains(errs, "nothing was changed") {
		t.Errorf("answered no: status %d, %s", status, errs)
	}
	g.ok(Flint, "", "-d", device, "-i", "oem.bin", "-allow_psid_change", "-y", "burn")
	out := g.ok(Flint, "", "-d", device, "q")
	if field(t, out, "PSID") != "OEM_0000000001" || field(t, out, "Base MAC") != "0002c9a0b0c0 1" {
		t.Errorf("burned, want the image's PSID and the device's base of MACs:\n%s", out)
	}
	g.ok(Flint, "", "-d", device, "-i", "oem.bin", "--use_image_guids", "-y", "burn")
	if out := g.ok(Flint, "", "-d", device, "q"); field(t, out, "Base MAC") != "020000000001 1" {
		t.Errorf("burned with the image's bases:\n%s", out)
	}
}

// What image defaults say of LINK_TYPE is what the port has, until mlxconfig sets it.
func TestImageDefaultsAct(t *testing.T) {
	g := start(t)
	t.Chdir(t.TempDir())
	const device = "mt4115_pciconf0"
	g.ok(Flint, "", "-d", device, "ri", "fw.mlx")
	if err := os.WriteFile("ib.ini", []byte("[PORT1]\nlink_type = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.ok(Burn, "", "-d", device, "-fw", "fw.mlx", "-conf", "ib.ini", "-y")
	if status, _, errs := g.call(Reset, "", "-d", device, "-y", "r"); status != tool.Failure ||
		!strings.Contains(errs, "the port cannot have the protocol that it is set to") {
		t.Errorf("InfiniBand without a cable: status %d, %s", status, errs)
	}
	g.ok(Config, "", "-d", device, "-y", "set", "LINK_TYPE_P1=2")
	g.ok(Reset, "", "-d", device, "-y", "r")
}

// A flash that holds something else than an image is told, and the device runs as from the factory.
func TestDamagedFlash(t *testing.T) {
	g := start(t)
	c := api.NewClient(g.cfg.Socket)
	s, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	flash := s.Adapters[0].Identity().Flash()
	if _, err := c.ChangeRegistry(t.Context(), []registry.Change{{Kind: registry.SetValue, Key: flash,
		Value: registry.Value{Name: "Image", Type: registry.Binary, Data: []byte("junk")}}}, false); err != nil {
		t.Fatal(err)
	}
	const device = "mt4115_pciconf0"
	if out := g.ok(Flint, "", "-d", device, "q"); !strings.Contains(out, "-W- The flash holds no image") || field(t, out, "PSID") != "SVP_4115000001" {
		t.Errorf("query prints:\n%s", out)
	}
	if status, _, errs := g.call(Flint, "", "-d", device, "v"); status != tool.Failure || !strings.Contains(errs, "verification failed") {
		t.Errorf("verify: status %d, %s", status, errs)
	}
	g.ok(Reset, "", "-d", device, "-y", "r")
}

func TestFirmwareJSON(t *testing.T) {
	g := start(t)
	var q queried
	if err := json.Unmarshal([]byte(g.ok(Flint, "", "-d", "mt4103_pci_cr0", "q", "full", "--json")), &q); err != nil ||
		q.Device != "mt4103_pciconf0" || q.Version != firmware.Engine.String() || q.Pending {
		t.Errorf("query prints %+v, %v", q, err)
	}
	var l []level
	if err := json.Unmarshal([]byte(g.ok(Reset, "", "-d", "mt4103_pci_cr0", "q", "--json")), &l); err != nil || len(l) != 6 || !l[3].Has {
		t.Errorf("mlxfwreset query prints %+v, %v", l, err)
	}
}

// Both ports of a device have its firmware, each its own GUID and MAC, and are reset together; others go on.
func TestPortsOfADevice(t *testing.T) {
	g := &rig{t: t, cfg: driverbed.Config(t, driverconfig.Adapter{Name: "one", Device: "d"}, driverconfig.Adapter{Name: "two", Device: "d"},
		driverconfig.Adapter{Name: "other"})}
	g.run()
	t.Cleanup(func() { _ = g.driver.Close() })
	g.ok(Flint, "", "-d", "mt4115_pciconf0", "-guid", "0002c90300a0b0ff", "-mac", "0002c9a0b0ff", "-y", "sg")
	before := g.driver.Overview().Adapters[2]
	out := g.ok(Reset, "", "-d", "mt4115_pciconf0", "-y", "r")
	if !strings.Contains(out, "port 1, one") || !strings.Contains(out, "port 2, two") || strings.Contains(out, "other") {
		t.Errorf("the reset prints:\n%s", out)
	}
	list := g.driver.Overview().Adapters
	if list[0].GUID != 0x0002c90300a0b0ff || list[1].GUID != 0x0002c90300a0b100 || list[1].MAC != "00:02:c9:a0:b1:00" {
		t.Errorf("GUIDs %x and %x, MAC %s", list[0].GUID, list[1].GUID, list[1].MAC)
	}
	if list[2].GUID != before.GUID {
		t.Errorf("the other device has GUID %x, and had %x", list[2].GUID, before.GUID)
	}
}

func TestFirmwareRefusals(t *testing.T) {
	g := start(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("text", []byte("no image"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.ok(Flint, "", "-d", "mt4103_pciconf0", "ri", "mlx4.bin")
	newer := firmware.Factory(g.driver.Overview().Adapters[0].Class())
	newer.Version.Major++
	if err := os.WriteFile("newer.bin", newer.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		main   tool.Main
		args   string
		status int
		want   string
	}{
		{Flint, "", 2, "a command is missing; allowed: query, verify, burn, ri, dc, sg, swreset"},
		{Flint, "flash", 2, "flint flash; allowed: query"},
		{Flint, "q", 2, "-d or -i is missing"},
		{Flint, "-i text -d mt4115_pciconf0 q", 2, "exclude each other"},
		{Flint, "-d mt9999_pciconf0 q", 2, "allowed: mt4115_pciconf0, mt4103_pciconf0, mt4115_pciconf1"},
		{Flint, "-d mt4115_pciconf0 b", 2, "-i is missing"},
		{Flint, "-i nothing q", 2, "-i: open nothing"},
		{Flint, "-i text q", 2, "-i text: not an image of SoftVPI"},
		{Flint, "-i mlx4.bin b", 2, "-d is missing"},
		{Flint, "-i mlx4.bin -d mt4115_pciconf0 b", 2, "the image is for device 4103, and mt4115_pciconf0 is a 4115"},
		{Flint, "-i newer.bin -d mt4115_pciconf0 b", 2, "the image is for engine 2.0.1000; this driver's is 1.0.1000"},
		{Flint, "-d mt4115_pciconf0 sg", 2, "sg needs -guid, -mac or both"},
		{Flint, "-d mt4115_pciconf0 -mac 010000000000 sg", 2, "of one station"},
		{Flint, "-d mt4115_pciconf0 -guid xyz sg", 2, "16 hexadecimal digits"},
		{Flint, "-d mt4115_pciconf0 -y -no sg", 2, "exclude each other"},
		{Flint, "-d mt4115_pciconf0 ri", 2, "ri needs the name"},
		{Flint, "-d mt4115_pciconf0 q more", 2, "unexpected argument"},
		{Flint, "-d mt4115_pciconf0 drom", 3, "there is no expansion ROM"},
		{Flint, "-d mt4115_pciconf0 hw query", 3, "there is no flash chip"},
		{Burn, "", 2, "--fw is missing"},
		{Burn, "-fw mlx4.bin", 2, "--wrimage or -d is missing"},
		{Burn, "-fw mlx4.bin -conf text -wrimage x", 2, `--conf text: line 1: "no image" is no NAME = VALUE`},
		{Burn, "-fw text -wrimage x", 2, "--fw text: not an image"},
		{Burn, "-fw mlx4.bin -wrimage x -d mt4115_pciconf0", 2, "exclude each other"},
		{Burn, "-fw mlx4.bin -img_file x -d mt4115_pciconf0", 2, "excludes --fw"},
		{Reset, "", 2, "a command is missing; allowed: query, reset"},
		{Reset, "reset", 2, "-d is missing"},
		{Reset, "-d mt4115_pciconf0 -l 6 r", 2, "allowed: a number from 0 to 5"},
		{Reset, "-d mt4115_pciconf0 -l 4 r", 3, "the machine need not boot"},
		{Reset, "-d mt4115_pciconf0 r now", 2, "unexpected argument"},
	} {
		status, out, errs := g.call(c.main, "y\n", strings.Fields(c.args)...)
		if status != c.status || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 || out != "" {
			t.Errorf("%s: status %d, %q %q, want %d and %q", c.args, status, out, errs, c.status, c.want)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) != 3 {
		t.Errorf("files are left: %v", left)
	}
}
