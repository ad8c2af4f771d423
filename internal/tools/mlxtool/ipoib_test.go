package mlxtool

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// The flags of ipoib-ep select tables in any order; without a flag all are shown, and without a name those of every
// interface (WinOF 5.50, 5.5.2.8). show ports lists the ports as IPoIB's, the virtual ones too, and dbg pkeys lists
// their partitions.
func TestIPoIBEndpoints(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "left", Link: "cable"}, config.Adapter{Name: "right", Link: "cable",
		Address: netip.MustParseAddr("10.98.0.2")})
	g := &rig{t, cfg.Socket, cfg.State, cfg.Adapters, driverbed.Start(t, cfg)}
	v, err := api.NewClient(g.socket).AddVirtualPort(t.Context(), api.VirtualPortRequest{Connection: "right"})
	if err != nil {
		t.Fatal(err)
	}
	up := func() bool {
		n := 0
		for _, row := range g.tables("show", "ports")[0].Rows {
			if row["type"] == "IPoIB" && row["state"] == "Up" {
				n++
			}
		}
		return n == 3
	}
	if !await.Until(up) {
		t.Fatal("three IPoIB ports are not up:\n", g.ok("show", "ports"))
	}
	titles := func(args ...string) string {
		t.Helper()
		var found []string
		for _, line := range strings.Split(g.ok(append([]string{"dbg", "ipoib-ep"}, args...)...), "\n") {
			if strings.Contains(line, " end points: ") {
				found = append(found, line)
			}
		}
		return strings.Join(found, "\n")
	}
	for args, want := range map[string]string{
		"right":       "Local end points: right\nMulticast end points: right\nRemote end points: right",
		"-m -r right": "Multicast end points: right\nRemote end points: right",
		"-r -m right": "Multicast end points: right\nRemote end points: right",
		"-l":          "Local end points: left\nLocal end points: right\nLocal end points: " + v.Connection,
	} {
		if got := titles(strings.Fields(args)...); got != want {
			t.Errorf("ipoib-ep %s shows\n%s\nwant\n%s", args, got, want)
		}
	}
	if out := g.ok("dbg", "ipoib-ep", "right"); !strings.Contains(out, "10.98.0.2") || !strings.Contains(out, "ff12:401b:ffff::ffff:ffff") {
		t.Error("the port's address or the broadcast group is missing in\n", out)
	}
	if out := g.ok("dbg", "pkeys", "left"); !strings.Contains(out, "SoftVPI IPoIB NIC: left") || !strings.Contains(out, "ffff") {
		t.Error("the P_Key of left is missing in\n", out)
	}
	for _, row := range g.tables("dbg", "pkeys", "left")[0].Rows {
		if row["pkey"] == "0000" {
			t.Errorf("dbg pkeys lists index %v, which is not set", row["pkey_index"])
		}
	}
	for args, want := range map[string]string{"-x": "allowed: -l, -m, -r", "left right": "unexpected argument",
		"nobody": "interface name is \"nobody\""} {
		if status, _, errs := g.call(append([]string{"dbg", "ipoib-ep"}, strings.Fields(args)...)...); status != tool.Usage ||
			!strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s; want %d and %q", args, status, errs, tool.Usage, want)
		}
	}
}
