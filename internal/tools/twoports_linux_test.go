// Package tools_test tests what holds for several tools alike.
package tools_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/ibnetdiscover"
	"github.com/softvpi/softvpi/internal/tools/ibstat"
	"github.com/softvpi/softvpi/internal/tools/mft"
	"github.com/softvpi/softvpi/internal/tools/mlx5cmd"
	"github.com/softvpi/softvpi/internal/tools/mlxtool"
	"github.com/softvpi/softvpi/internal/tools/snapshot"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/tools/vlanconfig"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/verbs"
)

// twoPorts starts a driver with two devices of two ports, one of each generation and link layer, and one of one.
func twoPorts(t *testing.T) (*driver.Driver, config.Config) {
	t.Helper()
	cable := func(name, addr string) config.Adapter {
		return config.Adapter{Name: name, Device: "hca", Link: config.LinkCable, Address: netip.MustParseAddr(addr)}
	}
	cfg := driverbed.Config(t,
		config.Adapter{Name: "east", Device: "card", Generation: "mlx4"}, config.Adapter{Name: "west", Device: "card", Generation: "mlx4"},
		cable("ib-a", "10.97.0.1"), cable("ib-b", "10.97.0.2"), config.Adapter{Name: "solo"})
	cfg.Fabric = &config.Fabric{Name: filepath.Base(filepath.Dir(cfg.Socket))}
	t.Setenv("SOFTVPI_FABRIC", "")
	t.Setenv(paths.SocketVariable, cfg.Socket)
	return driverbed.Start(t, cfg), cfg
}

// TestPortsOfADevice: two ports of one device are one device with two ports in every tool: one number, GUID, location
// and name, port numbers 1 and 2, and a name and GUID for each port.
func TestPortsOfADevice(t *testing.T) {
	d, cfg := twoPorts(t)
	s := d.Status()
	guid := func(g uint64) string {
		return fmt.Sprintf("%04x:%04x:%04x:%04x", g>>48, g>>32&0xffff, g>>16&0xffff, g&0xffff)
	}
	card, west, ibHCA := s.Adapters[0], s.Adapters[1], s.Adapters[2]
	if west.NodeGUID != card.GUID || west.GUID == card.GUID || west.Location() != card.Location() || west.Port != 2 || west.Ports != 2 ||
		west.Device != "east" {
		t.Errorf("the second port is %+v, want port 2 of 2 of the first one's device", west)
	}
	for _, c := range []struct {
		main tool.Main
		args string
		want []string // regular expressions, in this order
	}{
		{ibstat.Vstat, "", []string{
			`hca_idx=0\n\s+interface=card\n`, `node_guid=` + guid(card.GUID), `num_phys_ports=2`,
			`port=1\n\s+interface=east\n\s+port_guid=` + guid(card.GUID),
			`port=2\n\s+interface=west\n\s+port_guid=` + guid(west.GUID), `hca_idx=1\n\s+interface=hca\n`,
			`node_guid=` + guid(ibHCA.NodeGUID), `num_phys_ports=2`,
			`port=1\n\s+interface=ib-a`, `port_lid=0x0001`, `port=2\n\s+interface=ib-b`, `port_lid=0x0002`, `hca_idx=2\n\s+interface=solo`,
			`num_phys_ports=1`,
		}},
		{ibstat.Vstat, "-hca west", []string{`hca_idx=0\n\s+interface=card`, `port=2`}},
		{ibstat.Ibstat, "", []string{`CA 'card'`, `Number of ports: 2`, `Port 1:`, `Port 2:`, `Link layer: Ethernet`, `CA 'hca'`,
			`Number of ports: 2`, `Port 2:`, `Link layer: InfiniBand`, `CA 'solo'`, `Number of ports: 1`}},
		{ibstat.Ibstat, "hca 2", []string{`CA: 'hca'\nPort 2:\n`}},
		{ibstat.Ibstat, "-l", []string{`^card\nhca\nsolo\n$`}},
		{ibstat.MlxStat, "card", []string{`^card\n`, `Location: +PCI bus 1, device 0, function 0`, `Port: +1\n +Interface: +east`,
			`Port: +2\n +Interface: +west`}},
		{mft.MST, "status -v", []string{`mt4103_pci_cr0 +bus:dev\.fn=01:00\.0 +net-east, net-west\n`, `mt4103_pciconf0`,
			`mt4115_pciconf0 +bus:dev\.fn=03:00\.0 +net-ib-a, net-ib-b\n`, `mt4115_pciconf1 +bus:dev\.fn=05:00\.0 +net-solo\n`}},
		{mft.Config, "-d mt4115_pciconf0 -y set LINK_TYPE_P1=1 LINK_TYPE_P2=1", []string{`LINK_TYPE_P1 +N/A +1`, `LINK_TYPE_P2 +N/A +1`}},
		{mlxtool.Main, "show ports", []string{`east +\| 1 `, `bus 1,`, `west +\| 2 `, `bus 1,`, `ib-a +\| 1 `, `bus 3,`, `ib-b +\| 2 `,
			`bus 3,`, `solo +\| 1 `}},
		{mlxtool.Main, "show devices", []string{`card +\| mlx4 +\| 1 +\| 0 +\| 0 +\| 2 `, `hca +\| mlx5 +\| 3 +\| 0 +\| 0 +\| 2 `,
			`solo +\| mlx5 +\| 5 +\| 0 +\| 0 +\| 1 `}},
		{mlxtool.Main, "dbg get-state 1 0 0", []string{`card +\| PCI bus 1`}},
		{mlxtool.Main, "dbg pddrinfo 1 0 0", []string{`Device: card`, `\| 1 +\| Up`, `\| 2 +\| Up`}},
		{mlxtool.Main, "dbg pddrinfo 1 0 0 2", []string{`\| 2 +\| Up`}},
		{mlxtool.Main, "dbg resources", []string{`Device: card`, `Device: hca`, `Device: solo`}},
		{mlxtool.Main, "dbg mstdump 1 0 0", []string{`Device: card`, `SingleFunc_1_0_0_u000_ioctl_crspace_0\.log`}},
		{mlxtool.Main, "dbg dump-me-now 1 0 0", []string{`Device: card`, `dmn-card-GENERAL-USER-NA--`}},
		{mlx5cmd.Main, "-stat", []string{`Adapter "ib-a":`, `hca_idx: 1`, `num_phys_ports: 2\n\s+port: 1\n`, `Adapter "ib-b":`,
			`hca_idx: 1`, `num_phys_ports: 2\n\s+port: 2\n`, `hca_idx: 2`, `num_phys_ports: 1\n\s+port: 1\n`}},
		{vlanconfig.Main, "showlist", []string{`Adapter\n`, `Adapter #2\n`}},
		{snapshot.Main, "--json", []string{`"Device",\s*"card"`, `"1 of 2"`, `"2 of 2"`}},
	} {
		out := run(t, c.main, c.args)
		rest := out
		for _, want := range c.want {
			at := regexp.MustCompile(want).FindStringIndex(rest)
			if at == nil {
				t.Errorf("%s: no %s (in this order) in\n%s", c.args, want, out)
				break
			}
			rest = rest[at[1]:]
		}
	}
	for name, row := range map[string]string{"dbg pddrinfo 1 0 0 2": `\| 1 +\| Up`, "dbg resources": `Device: west`} {
		if out := run(t, mlxtool.Main, name); regexp.MustCompile(row).MatchString(out) {
			t.Errorf("%s shows %s:\n%s", name, row, out)
		}
	}

	t.Setenv("SOFTVPI_FABRIC", socket.Path(cfg.Fabric.Name))
	var out bytes.Buffer
	env := tool.Env{Name: "ibnetdiscover", Stdout: &out, Stderr: &out}
	if status := ibnetdiscover.Main(t.Context(), env); status != 0 {
		t.Fatalf("ibnetdiscover: status %d: %s", status, out.String())
	}
	if cas := regexp.MustCompile(`(?m)^Ca\t2 "H-0000000000100000"\t+# "hca"\n\[1\]\(100001\).*\n\[2\]\(100002\)`).FindAllString(out.String(), -1); len(cas) != 1 || strings.Count(out.String(), "\nCa\t") != 1 {
		t.Errorf("want one channel adapter with two ports from ibnetdiscover:\n%s", out.String())
	}
}

// TestEventsOfAPort: events, and the names of dumps, say which port of the device they are about.
func TestEventsOfAPort(t *testing.T) {
	d, cfg := twoPorts(t)
	if err := d.SetAdapter(driver.AdapterRequest{Adapter: "west"}); err != nil {
		t.Fatal(err)
	}
	out := run(t, mlxtool.Main, "dbg get-state 1 0 0")
	if !strings.Contains(out, "port 1 Operational, port 2 Disabled") {
		t.Errorf("get-state shows\n%s\nwant the states of both ports", out)
	}
	var page struct {
		Events []struct{ Symbol, Message string }
	}
	if err := api.NewClient(cfg.Socket).Get(t.Context(), "/events", nil, &page); err != nil {
		t.Fatal(err)
	}
	told := false
	for _, e := range page.Events {
		told = told || e.Symbol == "LinkDown" && strings.HasPrefix(e.Message, "west: the link of port 2 is down")
	}
	if !told {
		t.Errorf("no event says that port 2 is down: %+v", page.Events)
	}
	on := "1"
	if _, err := d.Set("ib-b", "EnableDumpOnPortDown", &on); err != nil {
		t.Fatal(err)
	}
	if err := d.RestartAdapter("ib-b"); err != nil {
		t.Fatal(err)
	}
	if err := d.SetAdapter(driver.AdapterRequest{Adapter: "ib-b"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"SingleFunc_1_0_0_p*_eth-down-2_crspace_0.log", "SingleFunc_3_0_0_p*_ib-down-2_crspace_0.log"} {
		await.Eventually(t, "there is a file "+name, func() bool {
			found, _ := filepath.Glob(filepath.Join(cfg.State, "temp", name))
			return len(found) > 0
		})
	}
}

// TestCountersOfADevice: sets of the device have one instance for it, and those of ports the ports' numbers.
func TestCountersOfADevice(t *testing.T) {
	_, cfg := twoPorts(t)
	var s counters.Snapshot
	if err := api.NewClient(cfg.Socket).Get(t.Context(), "/counters", nil, &s); err != nil {
		t.Fatal(err)
	}
	devices, ports := []string{}, map[string]string{}
	for _, in := range s.Instances {
		switch in.Set {
		case "winof_bus":
			devices = append(devices, in.Name+" "+in.Labels["device"])
		case "link":
			ports[in.Labels["adapter"]] = in.Labels["port"]
		}
	}
	if len(devices) != 1 || devices[0] != "card card" {
		t.Errorf("instances of the device's set: %q, want one of card", devices)
	}
	got, _ := json.Marshal(ports)
	if want := `{"east":"1","ib-a":"1","ib-b":"2","solo":"1","west":"2"}`; string(got) != want {
		t.Errorf("the ports are %s, want %s", got, want)
	}
}

// TestDeviceIDs: tools and events show the part numbers of the manuals' cards, one for each generation, by which mst
// names devices too; programs see ids that differ by generation and that no card has.
func TestDeviceIDs(t *testing.T) {
	_, cfg := twoPorts(t)
	for args, want := range map[string][]string{"-hca card": {"vendor_part_id=4103"}, "-hca hca": {"vendor_part_id=4115"}} {
		if out := run(t, ibstat.Vstat, args); !strings.Contains(out, want[0]) {
			t.Errorf("vstat %s: no %s in\n%s", args, want[0], out)
		}
	}
	if out := run(t, ibstat.Ibstat, ""); strings.Count(out, "CA type: MT4103\n") != 1 || strings.Count(out, "CA type: MT4115\n") != 2 {
		t.Errorf("ibstat shows\n%s", out)
	}
	if out := run(t, mlx5cmd.Main, "-stat"); strings.Count(out, "vendor_part_id: 4115\n") != 3 {
		t.Errorf("mlx5cmd shows\n%s", out)
	}
	var page struct {
		Events []struct{ Symbol, Message string }
	}
	if err := api.NewClient(cfg.Socket).Get(t.Context(), "/events", nil, &page); err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Events {
		if e.Symbol == "Identification" && !strings.Contains(e.Message, "device 0x1013,") {
			t.Errorf("the event says: %s", e.Message)
		}
	}
	h, err := verbs.Open(t.Context(), verbs.Options{Mode: verbs.Attached, Socket: cfg.Socket})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	list, err := h.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{0x5f02, 0x5f02, 0x5f01, 0x5f01, 0x5f01} {
		if got := list[i].Limits().DeviceID; got != want {
			t.Errorf("programs see device %#x of %s, want %#x", got, list[i].Name(), want)
		}
	}
}

// TestPortWithoutRoCE: a port whose RoCE is off is up, has no RoCE GID, and says "No RoCE"; one that is down has the
// speed 0.
func TestPortWithoutRoCE(t *testing.T) {
	d, _ := twoPorts(t)
	off := "4"
	if _, err := d.Set("solo", "roce_mode", &off); err != nil {
		t.Fatal(err)
	}
	if err := d.RestartAdapter("solo"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"west", "ib-b"} {
		if err := d.SetAdapter(driver.AdapterRequest{Adapter: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		main   tool.Main
		args   string
		want   string // regular expression
		absent string
	}{
		{ibstat.Vstat, "-hca solo", `port_state=PORT_ACTIVE \(4\)(?s:.*)transport=No RoCE`, "GID["},
		{ibstat.MlxStat, "solo", `State: +Up\n(?s:.*)Transport: +No RoCE`, "GID["},
		{ibstat.Ibstat, "solo", `State: Active\n\s+Physical state: LinkUp\n\s+Rate: 2\.5\n`, ""},
		{mlx5cmd.Main, "-stat -Name solo", `port_state: PORT_ACTIVE \(4\)\n(?s:.*)RoceMode: No RoCE\n`, "GID["},
		{mlxtool.Main, "dbg pddrinfo 5 0 0", `\| 1 +\| Up +\| RDMA is off`, ""},
		{mlxtool.Main, "dbg get-state 5 0 0", `Operational +\| No `, ""},
		{ibstat.Vstat, "-hca card", `port=2\n(?s:.*)port_state=PORT_DOWN \(1\)\n\s+link_speed=0 Gbps\n(?s:.*)rate=0 Gbps`, ""},
		{ibstat.Vstat, "-hca hca", `port=2\n(?s:.*)port_state=PORT_DOWN \(1\)\n\s+link_speed=0 Gbps\n(?s:.*)rate=0 Gbps`, ""},
		{ibstat.Ibstat, "card 2", `State: Down\nPhysical state: Disabled\nRate: 0\n`, ""},
		{ibstat.MlxStat, "hca", `Port: +2\n +Interface: +ib-b\n +State: +Down\n +Rate: +0 Gbps\n`, ""},
		{mlx5cmd.Main, "-stat -Name ib-b", `uplink: InfiniBand\n(?s:.*)link_speed: 0\.00 Gbps\n`, ""},
	} {
		out := run(t, c.main, c.args)
		if !regexp.MustCompile(c.want).MatchString(out) || c.absent != "" && strings.Contains(out, c.absent) {
			t.Errorf("%s: want %s and no %q in\n%s", c.args, c.want, c.absent, out)
		}
	}
	for line, want := range map[string]string{"showlist ipoib": "IPoIB Adapter", "showlist": "Ethernet Adapter"} {
		for out := range strings.Lines(run(t, vlanconfig.Main, line)) {
			if !strings.Contains(out, want) {
				t.Errorf("%s shows %s", line, out)
			}
		}
	}
}

// run runs a tool and returns its output.
func run(t *testing.T, main tool.Main, args string) string {
	t.Helper()
	var out, errs bytes.Buffer
	env := tool.Env{Name: "tool", Args: strings.Fields(args), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	if status := main(t.Context(), env); status != tool.Success {
		t.Errorf("%s: status %d: %s", args, status, errs.String())
	}
	return out.String()
}
