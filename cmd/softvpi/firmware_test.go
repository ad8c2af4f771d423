package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/firmware"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Every command line of the manuals for the firmware tools and vfpctrl, with the names that they leave open put in, in the
// order of the procedures in which they stand.
func TestManualsFirmwareLines(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "Ethernet 1", Generation: "mlx4"}, config.Adapter{Name: "Ethernet 2"},
		config.Adapter{Name: "vm", Link: config.LinkSwitch, Wire: config.Wire{Switch: "MlnxSwitch", Prefix: 24}})
	driverbed.Start(t, cfg)
	t.Setenv(paths.SocketVariable, cfg.Socket)
	t.Chdir(t.TempDir())
	named := strings.NewReplacer("<device>", "mt4103_pciconf0", "<PCI device>", "mt4103_pciconf0", "<device name>", "mt4115_pciconf0",
		"<Device name>", "mt4115_pciconf0", "<fw name>", "fw", "<ini device file>", "card", "<file name>", "image", "<Count>", "4")
	var port string
	for _, c := range []struct{ source, line, typed, want string }{
		{"WinOF 5.50, 4.5.3.4.1.1", "mst status", "", "mt4103_pciconf0\n"},
		{"", "mlxconfig -d mt4103_pciconf0 q", "", "SRIOV_EN"},
		{"", "mlxconfig -d mt4103_pciconf0 s SRIOV_EN=1 NUM_OF_VFS=16", "y\n", "Applying... Done!"},
		{"WinOF 5.50, 4.5.3.4.1.2", "flint -d <device> dc > <ini device file>.ini", "", ""},
		{"ours: what a vendor's site has", "flint -d <device> ri <fw name>.mlx", "", ""},
		{"", "mlxburn -fw <fw name>.mlx -conf <ini device file>.ini -wrimage <file name>.bin", "", "image.bin"},
		{"", "flint -dev <PCI device> -image <file name>.bin b", "y\n", "-I- To load new FW run mlxfwreset"},
		{"WinOF-2 24.4 virtualization, Firmware Configuration", "mlxconfig -d <device name> set SRIOV_EN=1", "y\n", "Done!"},
		{"", "mlxconfig -d <device name> set NUM_OF_VFS=<Count>", "y\n", "Done!"},
		{"", "mlxconfig -d <Device name> set SRIOV_IB_ROUTING_MODE_P1=1", "y\n", "Done!"},
		{"", "mlxconfig -d <Device name> set SRIOV_IB_ROUTING_MODE_P2=1", "y\n", "Done!"},
		{"", "mlxfwreset -d <Device name> r --yes", "", "-I- FW was loaded successfully."},
		{"WinOF 5.50, 4.5.5", "vfpctrl /list-vmswitch-port", "", "Command list-vmswitch-port succeeded!"},
		{"", "vfpctrl /disable-port /port <PortName>", "", "Command disable-port succeeded!"},
	} {
		line, to, redirected := strings.Cut(strings.ReplaceAll(named.Replace(c.line), "<PortName>", port), " > ")
		status, stdout, stderr := callTyping(t, c.typed, words(line)...)
		if status != tool.Success || stderr != "" || !strings.Contains(stdout, c.want) {
			t.Errorf("%s: status %d, %q\n%s\nwant %q", line, status, stderr, stdout, c.want)
		}
		if redirected {
			if err := os.WriteFile(to, []byte(stdout), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if m := regexp.MustCompile(`(?m)^Port name +: (\S+)$`).FindStringSubmatch(stdout); m != nil {
			port = m[1]
		}
	}
}

// TestBurnedVersion: tools, programs, metrics and the device manager show the version and the board of a burned image from the
// device's reset on, and for its ports alone.
func TestBurnedVersion(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "Ethernet 1"}, config.Adapter{Name: "Ethernet 2"})
	driverbed.Start(t, cfg)
	t.Setenv(paths.SocketVariable, cfg.Socket)
	t.Chdir(t.TempDir())
	older := firmware.Factory(catalogue.MLX5)
	older.Version, older.PSID = firmware.Version{Minor: 9, Sub: 7}, "ACME_7"
	if err := os.WriteFile("older.bin", older.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := func() string {
		t.Helper()
		var all []string
		for _, line := range [][]string{{"vstat"}, {"mlx5cmd", "-Stat"}, {"MlxStat"},
			{"ndadapterinfo"}} {
			status, out, stderr := call(t, "softvpi", line...)
			if status != tool.Success {
				t.Fatalf("%v: status %d, %s", line, status, stderr)
			}
			for _, m := range regexp.MustCompile(`(?m)^\s*(?:fw_ver[=:]|Firmware version:|FirmwareVersion|board_id:|BoardId)\s*(\S+)$`).FindAllStringSubmatch(out, -1) {
				all = append(all, m[1])
			}
		}
		return strings.Join(all, " ")
	}
	burned := func() (boards []string) {
		t.Helper()
		s, err := api.NewClient(cfg.Socket).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Adapters {
			boards = append(boards, s.Adapters[i].Firmware.Version+" "+s.Adapters[i].Firmware.PSID)
		}
		return boards
	}
	now, factory := firmware.Engine.String(), firmware.Factory(catalogue.MLX5).PSID
	// vstat, mlx5cmd, MlxStat and ndadapterinfo, of both devices
	want := strings.Repeat(now+" ", 2) + strings.Repeat(now+" "+factory+" ", 2) + strings.Repeat(now+" ", 2) +
		strings.Repeat(now+" "+factory+" ", 2)
	if status, _, stderr := call(t, "softvpi", "flint", "-d", "mt4115_pciconf0", "-i", "older.bin", "-y", "-allow_psid_change",
		"b"); status != tool.Success {
		t.Fatalf("burn: status %d, %s", status, stderr)
	}
	if got := shown() + " "; got != want {
		t.Errorf("before the reset the tools show %s, want %s", got, want)
	}
	if got, want := burned(), []string{now + " " + factory, now + " " + factory}; !slices.Equal(got, want) {
		t.Errorf("before the reset the status has %q, want %q", got, want)
	}
	if status, _, stderr := call(t, "softvpi", "mlxfwreset", "-d", "mt4115_pciconf0", "-y", "r"); status != tool.Success {
		t.Fatalf("reset: status %d, %s", status, stderr)
	}
	want = "0.9.0007 " + now + " 0.9.0007 ACME_7 " + now + " " + factory + " 0.9.0007 " + now + " 0.9.0007 ACME_7 " + now + " " + factory + " "
	if got := shown() + " "; got != want {
		t.Errorf("after the reset the tools show %s, want %s", got, want)
	}
	if got, want := burned(), []string{"0.9.0007 ACME_7", now + " " + factory}; !slices.Equal(got, want) {
		t.Errorf("after the reset the status has %q, want %q", got, want)
	}
	metrics := metricsOf(t, cfg.Socket)
	for _, labels := range []string{`board_id="ACME_7",driver_version="`, `firmware_version="0.9.0007",`, `board_id="` + factory + `",`} {
		if !regexp.MustCompile(`(?m)^softvpi_adapter_info\{.*` + regexp.QuoteMeta(labels) + `.*\} 1$`).Match(metrics) {
			t.Errorf("the metrics have no adapter with %s", labels)
		}
	}
}

// metricsOf reads what the driver serves for Prometheus.
func metricsOf(t *testing.T, socket string) []byte {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", paths.Management(socket))
	}}}
	defer c.CloseIdleConnections()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://driver/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A port is listed with the fields of the manual, in their order.
func TestSwitchPorts(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "vm", Link: config.LinkSwitch, Wire: config.Wire{Switch: "MlnxSwitch", Prefix: 24}})
	driverbed.Start(t, cfg)
	t.Setenv(paths.SocketVariable, cfg.Socket)
	status, out, _ := call(t, "softvpi", "vfpctrl", "/list-vmswitch-port")
	want := `(?s)^Port name            : [0-9A-F-]{36}
Port Friendly name   :
Switch name          : [0-9A-F-]{36}
Switch Friendly name : MlnxSwitch
PortId               : 1
VMQ Usage            : 0
SR-IOV Usage         : 0
Port type            : Synthetic
Port is Initialized.
MAC Learning is Enabled.
NIC name             : [0-9A-F-]{36}
NIC Friendly name    : vm
MTU                  : \d+
MAC address          : ([0-9A-F]{2}-){5}[0-9A-F]{2}
VM name              :

Command list-vmswitch-port succeeded!
$`
	if status != tool.Success || !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("status %d:\n%s", status, out)
	}
	name := regexp.MustCompile(`[0-9A-F-]{36}`).FindString(out)
	for line, says := range map[string]string{"/enable-port": "not at port " + name, "/add-rule": "do not have rules"} {
		if status, _, errs := call(t, "softvpi", "vfpctrl", line, "/port", name); status != tool.Unsupported || !strings.Contains(errs, says) {
			t.Errorf("%s: status %d, %s", line, status, errs)
		}
	}
	if status, _, errs := call(t, "softvpi", "vfpctrl", "/disable-port", "/port", "nothing"); status != tool.Usage ||
		!strings.Contains(errs, `/port is "nothing"; allowed: `) {
		t.Errorf("status %d, %s", status, errs)
	}
}

// TestFirmwareOfFailedRestart: a device that cannot start with the image that was burned, because another one has its GUID, goes on with
// the one before, and everybody is shown that one.
func TestFirmwareOfFailedRestart(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "Ethernet 1"}, config.Adapter{Name: "Ethernet 2"})
	driverbed.Start(t, cfg)
	t.Setenv(paths.SocketVariable, cfg.Socket)
	t.Chdir(t.TempDir())
	image := firmware.Factory(catalogue.MLX5)
	image.GUID, image.PSID = 0x0002c90300aabbcc, "SAME_1"
	if err := os.WriteFile("same.bin", image.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	client := api.NewClient(cfg.Socket)
	for i, want := range []int{tool.Success, tool.Failure} {
		device := []string{"mt4115_pciconf0", "mt4115_pciconf1"}[i]
		if status, _, stderr := call(t, "softvpi", "flint", "-d", device, "-i", "same.bin", "-y",
			"-allow_psid_change", "-use_image_guids", "b"); status != tool.Success {
			t.Fatalf("burn %s: status %d, %s", device, status, stderr)
		}
		if status, stdout, stderr := call(t, "softvpi", "mlxfwreset", "-d", device, "-y", "r"); status != want {
			t.Errorf("reset of %s: status %d, want %d\n%s%s", device, status, want, stdout, stderr)
		}
	}
	s, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	factory := firmware.Factory(catalogue.MLX5).PSID
	for i, want := range []string{image.PSID, factory} {
		if a := &s.Adapters[i]; a.Firmware.PSID != want || !a.Enabled || !a.Up {
			t.Errorf("%s has the firmware %s, enabled %v, up %v; want %s, enabled and up", a.Name, a.Firmware.PSID, a.Enabled, a.Up, want)
		}
	}
	if _, out, _ := call(t, "softvpi", "vstat"); strings.Count(out, image.PSID) > 1 {
		t.Errorf("vstat shows both devices with the burned image:\n%s", out)
	}
	if _, out, _ := call(t, "softvpi", "ndadapterinfo"); strings.Count(out, image.PSID) != 1 || strings.Count(out, factory) != 1 {
		t.Errorf("ndadapterinfo, which asks as programs do, shows:\n%s\nwant %s and %s, once each", out, image.PSID, factory)
	}
}
