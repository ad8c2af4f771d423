package ibstat

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sample() []device {
	s := []api.AdapterStatus{
		{
			Name: "Ethernet 1", Generation: "mlx5", Enabled: true, Up: true, RoCE: "v2", ActiveMTU: 4096, LinkMTU: 65536, UDPPort: 4791,
			Path: "auto",
			GUID: 0x0200c0fffe010203, GIDs: []api.GIDStatus{{GID: netip.MustParseAddr("::ffff:127.0.0.2")}}, Impairment: "rate=10G", Speed: 10e9,
		},
		{
			Name: "Ethernet 2", Generation: "mlx4", Enabled: true, RoCE: "v1.25", ActiveMTU: 1024, LinkMTU: 1500, UDPPort: 4791, Number: 1,
			DeviceNumber: 1, Path: "wire",
			GUID: 0x0200c0fffe010204, GIDs: []api.GIDStatus{{GID: netip.MustParseAddr("2001:db8::1")}},
		},
		{
			Name: "ib0", Generation: "mlx5", Enabled: true, Up: true, RoCE: "InfiniBand", ActiveMTU: 2048, LinkMTU: 4096, Path: "auto",
			GUID: 0x100001,
			GIDs: []api.GIDStatus{{GID: netip.MustParseAddr("fe80::10:1")}},
			InfiniBand: &api.InfiniBandStatus{State: "Active", Physical: "LinkUp", LID: 5, LMC: 1, SMLID: 3, PortGUID: 0x100001,
				NodeGUID: 0x100000,
				Rate:     "4xEDR", Mbps: 100000, MTU: 2048, MaxMTU: 4096},
		},
		{
			Name: "ib1", Generation: "mlx5", Enabled: true, RoCE: "InfiniBand", ActiveMTU: 4096, LinkMTU: 4096, Path: "auto",
			GUID:       0x100002,
			InfiniBand: &api.InfiniBandStatus{State: "Down", Physical: "Polling", PortGUID: 0x100002, NodeGUID: 0x100000, MaxMTU: 4096},
		},
	}
	for i := range s {
		s[i].Firmware.Version = "1.2.3"
		s[i].Device, s[i].DeviceName, s[i].Port, s[i].Ports = s[i].Name, s[i].Name, 1, 1
		if s[i].NodeGUID == 0 {
			s[i].NodeGUID = s[i].GUID
		}
	}
	for n, name := range []string{"ib0", "ib1"} { // the ports of one device
		a := &s[slices.IndexFunc(s, func(a api.AdapterStatus) bool { return a.Name == name })]
		a.Device, a.DeviceName, a.NodeGUID, a.DeviceNumber, a.Port, a.Ports = "ib0", "card", 0x100000, 2, n+1, 2
	}
	var list []device
	for _, x := range (&api.Status{Adapters: s}).Devices() {
		list = append(list, describe(x))
	}
	return list
}

// Field names, their order and the codes in parentheses are as in the original tools' output, so that scripts for
// those can read it.
func TestForms(t *testing.T) {
	var b bytes.Buffer
	for _, d := range sample() {
		vstat(&b, d, d.Index == 1)
	}
	golden(t, "vstat", b.Bytes())
	b.Reset()
	for _, d := range sample() {
		ibstat(&b, d, false, false)
	}
	ibstat(&b, sample()[0], true, false)
	ibstat(&b, sample()[0], false, true)
	golden(t, "ibstat", b.Bytes())
	b.Reset()
	for _, d := range sample() {
		mlxStat(&b, d)
	}
	golden(t, "mlxstat", b.Bytes())
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s:\n%s", file, d)
	}
}

// ibstatFields are the field names that ibstat of infiniband-diags prints, in their order.
var ibstatFields = []string{
	"CA type", "Number of ports", "Firmware version", "Hardware version", "Node GUID", "System image GUID",
	"State", "Physical state", "Rate", "Base lid", "LMC", "SM lid", "Capability mask", "Port GUID", "Link layer",
}

func TestIbstatHasTheFieldsOfInfinibandDiags(t *testing.T) {
	var b bytes.Buffer
	ibstat(&b, sample()[0], false, false)
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\t+([A-Z][^:\n]*): `).FindAllStringSubmatch(b.String(), -1) {
		got = append(got, m[1])
	}
	if d := cmp.Diff(ibstatFields, got); d != "" {
		t.Error("field names differ (-want +got):\n", d)
	}
}

func TestAgainstARunningDriver(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right"})
	driverbed.Start(t, cfg)
	for _, c := range []struct {
		main   tool.Main
		args   []string
		status int
		want   []string
	}{
		{Vstat, nil, 0, []string{"interface=left", "interface=right", "port_state=PORT_ACTIVE (4)", "transport=RoCE v2.0", "fw_ver=1.0.1000"}},
		{Vstat, []string{"-hca", "1"}, 0, []string{"interface=right"}},
		{Vstat, []string{"-hca", "middle"}, 2, []string{`"left", "right"`}},
		{Vstat, []string{"more"}, 2, []string{"more"}},
		{Ibstat, nil, 0, []string{"CA 'left'", "State: Active"}},
		{Ibstat, []string{"-l"}, 0, []string{"left\nright\n"}},
		{Ibstat, []string{"-p"}, 0, []string{"0x"}},
		{Ibstat, []string{"left", "1"}, 0, []string{"CA: 'left'\nPort 1:\nState: Active"}},
		{Ibstat, []string{"left", "2"}, 2, []string{"port is 2; allowed: 1, of adapter left"}},
		{Ibstat, []string{"-z", "/none/such"}, 2, []string{"file of options"}},
		{Ibstat, []string{"-V"}, 0, []string{"BUILD VERSION"}},
		{Ibstat, []string{"left", "x"}, 2, []string{"allowed: the number"}},
		{Ibstat, []string{"middle"}, 2, []string{`"left", "right"`}},
		{Ibstat, []string{"a", "1", "b"}, 2, []string{`"b"`}},
		{MlxStat, []string{"right"}, 0, []string{"right\n-----", "State:             Up"}},
		{MlxStat, []string{"a", "b"}, 2, []string{`"b"`}},
	} {
		var out bytes.Buffer
		env := tool.Env{Name: "tool", Args: append([]string{"-socket", cfg.Socket}, c.args...), Stdout: &out, Stderr: &out}
		if status := c.main(context.Background(), env); status != c.status {
			t.Errorf("%v: status %d, want %d: %s", c.args, status, c.status, out.String())
		}
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%v lacks %q:\n%s", c.args, w, out.String())
			}
		}
	}
	for _, main := range []tool.Main{Vstat, Ibstat, MlxStat} {
		var out bytes.Buffer
		main(context.Background(), tool.Env{Name: "tool", Args: []string{"-socket", cfg.Socket, "-json"}, Stdout: &out, Stderr: &out})
		var list []device
		if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list) != 2 || len(list[0].Ports) != 1 ||
			len(list[0].Ports[0].GIDs) == 0 {
			t.Errorf("JSON: %v: %s", err, out.String())
		}
	}
}
