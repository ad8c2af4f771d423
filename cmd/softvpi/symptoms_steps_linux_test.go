package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/firmware"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// onPage reports symptoms that docs/troubleshooting.md has not.
func onPage(t *testing.T, names ...string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "| "+name) && !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("the page has no symptom %q", name)
		}
	}
}

// does runs a command that has to end with a status, and returns what it prints.
func (p place) does(t *testing.T, status int, args ...string) string {
	t.Helper()
	code, out, errs := p.run(t, args...)
	if code != status {
		t.Errorf("%q: status %d, want %d: %s%s", args, code, status, out, errs)
	}
	return out + errs
}

// TestSymptoms_PortStates: a port of a fabric without a subnet manager stays in Initialize, and in Armed if somebody goes half of the way;
// the page's commands tell them apart, and a subnet manager ends both.
func TestSymptoms_PortStates(t *testing.T) {
	systemtest.Mark(t)
	onPage(t, "InfiniBand: PORT_INITIALIZED |", "InfiniBand: PORT_ARMED |")
	p := newPlace(t)
	net, name := filepath.Join(p.dir, "net"), filepath.Base(p.dir) // names of fabrics are those of the whole machine
	if err := os.WriteFile(net, []byte(p.does(t, 0, "fabric", "generate", "star", "--hosts", "2")), 0o600); err != nil {
		t.Fatal(err)
	}
	p.spawn(t, "fabric", "run", net, "--name", name).until(t, "cables")
	p.spawn(t, "up", "--fabric", name, "--skip-self-check", "--adapter", "ib0=cable,address=10.9.0.1").until(t, "listening")
	if out := p.does(t, 0, "vstat"); !strings.Contains(out, "port_state=PORT_INIT (2)") || !strings.Contains(out, "sm_lid=0x0000") {
		t.Errorf("without a subnet manager vstat shows\n%s", out)
	}
	beside := p // a management program at the other node
	beside.env = append(slices.Clone(p.env), "SOFTVPI_FABRIC="+filepath.Join(p.dir, "softvpi", "fabric-"+name+".sock"), "SOFTVPI_NODE=node00001")
	if code, out, errs := beside.run(t, "sminfo"); code == 0 || !strings.Contains(out+errs, "No SM/SA found") {
		t.Errorf("sminfo: status %d, %s%s", code, out, errs)
	}
	for _, port := range []string{"0,1", "0,1,1"} { // the switch's, and its neighbour's: the driver's
		beside.does(t, 0, "ibportstate", "-D", port, "1", "arm")
	}
	await.Eventually(t, "a port that is armed", func() bool { return strings.Contains(p.does(t, 0, "vstat"), "port_state=PORT_ARMED (3)") })
	manager := beside.spawn(t, "opensm")
	await.Eventually(t, "a port that a subnet manager has activated", func() bool {
		return strings.Contains(p.does(t, 0, "vstat"), "port_state=PORT_ACTIVE (4)")
	})
	if out := beside.does(t, 0, "sminfo"); !strings.Contains(out, "SMINFO_MASTER") {
		t.Errorf("sminfo shows %s", out)
	}
	_ = manager.cmd.Process.Signal(syscall.SIGTERM)
}

// TestSymptoms_NoReceive: a send to a program that posts no receives ends after its retries, and the counter that the page names says why.
func TestSymptoms_NoReceive(t *testing.T) {
	systemtest.Mark(t)
	onPage(t, `ND_IO_TIMEOUT`)
	p := newPlace(t)
	p.up(t, "--skip-self-check")
	for _, name := range []string{"Ethernet 1", "Ethernet 2"} {
		p.does(t, 0, "link", "set", name, "path=wire")
	}
	server := p.spawn(t, "nd_send_bw", "-S", p.first)
	server.until(t, "serving")
	client := p.spawn(t, "nd_send_bw", "-C", p.first, "-L", p.second, "-D", "600")
	client.until(t, "#qp")
	arrived := func() bool { // data, after which the server has to post receives
		out := p.does(t, 0, "counters", "get", "-json", "adapter_traffic(Ethernet 1).*received*")
		return regexp.MustCompile(`[1-9]\d{6}`).MatchString(out)
	}
	await.Eventually(t, "data", arrived)
	if err := server.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.cmd.Process.Signal(syscall.SIGCONT) }()
	if code, _, errs := client.wait(t); code != tool.Failure || !strings.Contains(errs, "ND_IO_TIMEOUT") {
		t.Errorf("the client ends with status %d, %s", code, errs)
	}
	out := p.does(t, 0, "counters", "get", "adapter_diagnostics(Ethernet 2).requester_rnr_retries_exceeded_errors")
	if !regexp.MustCompile(` [1-9]\d* errors`).MatchString(out) {
		t.Errorf("the counter of exceeded retries shows %s", out)
	}
}

// TestSymptoms_Refused: what the system refuses the driver: a low UDP port, and a directory that others may write to.
func TestSymptoms_Refused(t *testing.T) {
	systemtest.Mark(t)
	onPage(t, "permission denied; low UDP ports take the right to bind them", "... is not a directory of this user alone")
	p := newPlace(t)
	own := filepath.Join(p.dir, "softvpi-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(own, 0o777); err != nil {
		t.Fatal(err)
	}
	open := p
	open.env = append(slices.Clone(p.env), "TMPDIR="+p.dir, "XDG_RUNTIME_DIR=", paths.SocketVariable+"=")
	for _, args := range [][]string{{"status"}, {"up", "--adapter", "a=" + p.first}} {
		if out := open.does(t, tool.Failure, args...); !strings.Contains(out, own+" is not a directory of this user alone") {
			t.Errorf("%q says %s", args, out)
		}
	}
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if n, e := strconv.Atoi(strings.TrimSpace(string(b))); err != nil || e != nil || n <= 100 {
		t.Skip("port 100 is everybody's here")
	}
	systemtest.Programs(t, "setpriv")
	p.start = func(c *exec.Cmd) error {
		if os.Getuid() == 0 {
			c.Args = append([]string{"setpriv", "--bounding-set=-net_bind_service", "--inh-caps=-all", c.Path}, c.Args[1:]...)
			c.Path, c.Err = exec.LookPath("setpriv")
		}
		return c.Start()
	}
	if out := p.does(t, tool.Failure, "up", "--adapter", "a="+p.first+",port=100"); !strings.Contains(out,
		"permission denied; low UDP ports take the right to bind them") {
		t.Errorf("the driver says %s", out)
	}
}

// TestSymptoms_Images: the page's commands find what 1005 to 1008 are about: no image for the device, several, an older one, and one that
// is burned and does not run.
func TestSymptoms_Images(t *testing.T) {
	systemtest.Mark(t)
	onPage(t, "1005, no image for the device |", "1006, several images for one device |", "1007, an update must be forced |",
		"1008, versions are mixed |")
	p := newPlace(t)
	p.up(t, "--skip-self-check")
	const device = "mt4115_pciconf0"
	image := func(name, psid string, v firmware.Version) string {
		m := firmware.Factory(catalogue.MLX5)
		if m.Version = v; psid != "" {
			m.PSID = psid
		}
		file := filepath.Join(p.dir, name)
		if err := os.WriteFile(file, m.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	shows := func(what string, of ...string) string {
		t.Helper()
		out := p.does(t, 0, append([]string{"flint"}, of...)...)
		m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(what) + `: +(\S+)`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("%q shows no %s:\n%s", of, what, out)
		}
		return m[1]
	}
	older := firmware.Version{Minor: 9, Sub: 1}
	foreign, first, second := image("foreign", "ACME_1", firmware.Engine), image("first", "", older), image("second", "", firmware.Version{Minor: 9, Sub: 2})
	own := shows("PSID", "-d", device, "q")
	if got := shows("PSID", "-i", foreign, "q"); got == own {
		t.Errorf("1005: both have the PSID %s", got)
	}
	if out := p.does(t, tool.Usage, "flint", "-d", device, "-i", foreign, "-y", "b"); !strings.Contains(out, "PSID mismatch") {
		t.Errorf("1005: flint says %s", out)
	}
	if a, b := shows("PSID", "-i", first, "q"), shows("PSID", "-i", second, "q"); a != own || b != own ||
		shows("FW Version", "-i", first, "q") == shows("FW Version", "-i", second, "q") {
		t.Errorf("1006: the PSIDs are %s and %s, the device's %s", a, b, own)
	}
	running := shows("FW Version", "-d", device, "q")
	if out := p.does(t, tool.Failure, "flint", "-d", device, "-i", first, "b"); !strings.Contains(out, "older than the current FW version") {
		t.Errorf("1007: flint says %s", out)
	}
	p.does(t, 0, "flint", "-d", device, "-i", first, "-y", "b")
	if now, runs := shows("FW Version", "-d", device, "q"), shows("FW Version(Running)", "-d", device, "q"); now != older.String() || runs != running {
		t.Errorf("1008: %s is burned and %s runs, want %v and %s", now, runs, older, running)
	}
	p.does(t, 0, "mlxfwreset", "-d", device, "-y", "reset")
	if out := p.does(t, 0, "flint", "-d", device, "q"); strings.Contains(out, "FW Version(Running)") || !strings.Contains(out, older.String()) {
		t.Errorf("after the reset flint shows\n%s", out)
	}
}
