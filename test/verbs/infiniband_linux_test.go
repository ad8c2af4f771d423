package verbs

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/wire/mad"
)

// newFabricBench starts a driver with two adapters that have InfiniBand ports, on a fabric of its own. path is the
// adapters' path; with wire every packet goes through the fabric.
func newFabricBench(t *testing.T, path string) *bench {
	t.Helper()
	needLibraries(t)
	cfg := driverbed.Config(t, config.Adapter{Name: "left", Link: "cable", Path: path}, config.Adapter{Name: "right", Link: "cable",
		Path: path})
	if d := driverbed.Start(t, cfg); d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	return benchOf(t, cfg)
}

// byLID leaves out the options that name a GID, so that programs address each other by LID.
func byLID(pairs []pair) (out []pair) {
	gid := regexp.MustCompile(` -(g|x) 0`)
	for _, p := range pairs {
		p.server, p.client = gid.ReplaceAllString(p.server, ""), gid.ReplaceAllString(p.client, "")
		out = append(out, p)
	}
	return out
}

// A port on a fabric is shown as such: its LID, its subnet manager, its partition, no RoCE.
func TestFabricDevices(t *testing.T) {
	b := newFabricBench(t, "")
	b.need("ibv_devinfo")
	out := b.run(nil, "ibv_devinfo", "-v", "-d", "softvpi1")
	for _, want := range []string{`hca_id:\s+softvpi1`, `state:\s+PORT_ACTIVE`, `link_layer:\s+InfiniBand`, `port_lid:\s+[1-9]`,
		`sm_lid:\s+[1-9]`,
		`phys_state:\s+LINK_UP`, `active_width:\s+4X`, `active_speed:\s+25.0 Gbps`, `pkey_tbl_len:\s+[1-9]`, `GID\[ *0\]:\s+fe80:`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("ibv_devinfo does not print %s:\n%s", want, out)
		}
	}
	if strings.Contains(out, "RoCE") {
		t.Errorf("ibv_devinfo takes it for Ethernet:\n%s", out)
	}
}

// Debian's ibstat shows the ports of the driver's own adapters, through libibumad and what the preloaded library shows in
// /sys, where no fabric is named.
func TestIBStat(t *testing.T) {
	b := newFabricBench(t, "")
	b.need("ibstat")
	env := []string{"XDG_RUNTIME_DIR=" + t.TempDir()}
	out := b.run(env, "ibstat")
	for _, want := range []string{`(?s)CA 'softvpi0'.*CA 'softvpi1'`, `CA type: SoftVPI`, `Number of ports: 1`,
		`Hardware version: [0-9a-f]`, `Node GUID: 0x0*[1-9a-f]`,
		`State: Active`, `Physical state: LinkUp`, `Rate: 100`, `Base lid: [1-9]`, `SM lid: [1-9]`, `Capability mask: 0x[0-9a-f]*[1-9a-f]`,
		`Port GUID: 0x0*[1-9a-f]`, `Link layer: InfiniBand`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("ibstat does not print %s:\n%s", want, out)
		}
	}
	if out := b.run(env, "ibstat", "-l"); out != "softvpi0\nsoftvpi1\n" {
		t.Errorf("ibstat -l prints %q, want both devices", out)
	}
	if out := b.run(env, "ibstat", "-d", "softvpi1", "1"); !strings.Contains(out, "State: Active") {
		t.Errorf("of one port ibstat prints:\n%s", out)
	}
}

// Programs address a peer by its LID alone, or by LID and GID with a GRH in every packet; bypassing the fabric and
// through it.
func TestFabricPingPong(t *testing.T) {
	for _, path := range []string{"", "wire"} {
		b := newFabricBench(t, path)
		t.Run("by LID "+path, func(t *testing.T) { b.under(t).talkAll(t, byLID(pingPongs())) })
		t.Run("by GID "+path, func(t *testing.T) { b.under(t).talkAll(t, pingPongs()) })
	}
}

// The programs of librdmacm: addresses are resolved, paths requested and groups joined through subnet administration.
func TestFabricConnectionManager(t *testing.T) {
	for _, path := range []string{"", "wire"} {
		newFabricBench(t, path).talkAll(t, managed())
	}
}

// perftest uses such ports without being given the index of a GID.
func TestFabricPerftest(t *testing.T) { newFabricBench(t, "wire").talkAll(t, byLID(perftests())) }

// newFabricHosts starts two drivers with one adapter each on one fabric, which the first driver runs: every packet
// goes through it.
func newFabricHosts(t *testing.T, sm config.SubnetManager) (left, right *bench) {
	t.Helper()
	needLibraries(t)
	top, err := topology.Star(2, topology.Rate{Width: mad.Width4x, Speed: mad.SpeedEDR})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "net")
	var text strings.Builder
	if err := top.WriteNetlist(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("verbs-%d", os.Getpid())
	cfg := driverbed.Config(t, config.Adapter{Name: "left", Link: "cable"}, config.Adapter{Name: "right", Link: "cable"})
	other := driverbed.Config(t, cfg.Adapters[1])
	cfg.Adapters = cfg.Adapters[:1]
	cfg.Fabric, cfg.SubnetManager = &config.Fabric{Netlist: file, Name: name}, &sm
	other.Fabric = &config.Fabric{Connect: name}
	if d := driverbed.Start(t, cfg); d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	d := driverbed.Start(t, other)
	await.Eventually(t, "the second driver's port comes up", func() bool { return d.Status().Adapters[0].Up })
	left, right = benchOf(t, cfg), benchOf(t, other)
	both := [2]netip.Addr{left.addrs[0], right.addrs[0]}
	left.addrs, right.addrs = both, both
	return left, right
}

// Programs of two drivers on one fabric: all that run over two adapters of one driver.
func TestFabricTwoDrivers(t *testing.T) {
	left, right := newFabricHosts(t, config.SubnetManager{})
	for _, group := range []struct {
		name  string
		pairs []pair
	}{
		{"by LID", byLID(pingPongs())}, {"by GID", pingPongs()}, {"librdmacm", managed()}, {"perftest", byLID(perftests())},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, p := range group.pairs {
				t.Run(p.name, func(t *testing.T) { left.under(t).talkTo(right.under(t), p.apart()) })
			}
		})
	}
}

// Programs use the service level that they are given, even if a port has several LIDs.
func TestFabricServiceLevels(t *testing.T) {
	left, right := newFabricHosts(t, config.SubnetManager{LMC: 2})
	for _, p := range []pair{
		measured("ib_send_lat -n 200 -S 3", 2, 200), measured("ib_write_bw -n 200 -S 5", 65536, 200),
		measured("ib_send_bw -n 200 -c UD -s 1024 -S 1", 1024, 200),
	} {
		t.Run(p.name, func(t *testing.T) { left.under(t).talkTo(right.under(t), p.apart()) })
	}
}
