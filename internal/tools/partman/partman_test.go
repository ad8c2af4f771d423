package partman

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

func partMan(t *testing.T, socket string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = Main(t.Context(), tool.Env{Name: "part_man", Args: append([]string{"--socket", socket}, args...), Stdout: &out, Stderr: &errs})
	return status, out.String(), errs.String()
}

// Wrong usage has status 2 and one line that names the argument and what is allowed, before any driver is asked.
func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "a command is missing; allowed: add, rem, remall, show"},
		{"make", `"make" is not a command`},
		{"show|x", `show: unexpected argument "x"`},
		{"remall|x", `remall: unexpected argument "x"`},
		{"add", "add: the network connection name is missing"},
		{"rem", "rem: the network connection name is missing"},
		{"add|Ethernet 5|poib", "4 hexadecimal digits"},
		{"add|Ethernet 5|i:b", "iname is \"i:b\", want printable characters"},
		{"add|Ethernet 5|i b", "iname is \"i b\""},
		{"add|Ethernet 5|7123|ipoib", "iname is \"7123\""},
		{"add|Ethernet 5|ipoib|0000", "pkey is \"0000\""},
		{"add|Ethernet 5|ipoib|F123|F124", "one virtual port at a time"},
		{"-x|show", "-v"},
	} {
		var args []string
		if c.args != "" {
			args = strings.Split(c.args, "|")
		}
		status, out, errs := partMan(t, filepath.Join(t.TempDir(), "none"), args...)
		if status != tool.Usage || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, %q, %q; want %d and %q", c.args, status, out, errs, tool.Usage, c.want)
		}
	}
	for _, help := range []string{"-help", "-h"} {
		if status, out, _ := partMan(t, "none", help); status != tool.Success || !strings.Contains(out,
			"part_man [-v] <add|rem> <network connection name> [iname] [pkey]") {
			t.Errorf("%s: status %d, %q; want 0 and the usage", help, status, out)
		}
	}
}

// The manual's two examples work (WinOF 5.50, 5.2), with the names of this driver's connections.
func TestManualsExamples(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "Ethernet 4", Link: "cable"}, config.Adapter{Name: "Ethernet 5", Link: "cable"})
	partitions := filepath.Join(t.TempDir(), "partitions.conf")
	if err := os.WriteFile(partitions, []byte("Default=0x7fff, ipoib: ALL=full;\nred=0x7123, ipoib, defmember=full: ALL;\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	cfg.SubnetManager = &config.SubnetManager{Partitions: partitions}
	d := driverbed.Start(t, cfg)
	wants := func(want string, args ...string) {
		t.Helper()
		if status, out, errs := partMan(t, cfg.Socket, args...); status != tool.Success || out != want || errs != "" {
			t.Fatalf("%q: status %d, %q, %q; want %q", args, status, out, errs, want)
		}
	}
	refuses := func(want string, args ...string) {
		t.Helper()
		if status, out, errs := partMan(t, cfg.Socket, args...); status != tool.Usage || out != "" || !strings.Contains(errs, want) {
			t.Fatalf("%q: status %d, %q, %q; want %q", args, status, out, errs, want)
		}
	}
	wants("", "show")
	wants("Done...\n", "add", "Ethernet 4", "ipoib_4_1")
	wants("Ethernet 1 ipoib_4_1 FFFF\n", "show")
	refuses(`iname is "ipoib_4_1"; allowed: a name that no virtual port`, "add", "Ethernet 4", "ipoib_4_1")
	refuses("network connection name", "add", "Ethernet 1")
	wants("Done\n", "rem", "Ethernet 1", "ipoib_4_1")

	wants("Done...\n", "add", "Ethernet 5", "ipoib_5_1", "F123")
	wants("Ethernet 1 ipoib_5_1 F123\n", "show")
	refuses(`pkey is "F124"; allowed: F123`, "rem", "Ethernet 1", "ipoib_5_1", "F124")
	refuses(`iname is "iother"; allowed: "ipoib_5_1"`, "rem", "Ethernet 1", "iother")
	state(t, cfg.Socket, "ipoib_5_1", "up", "F123")

	// A P_Key without the bit of full membership takes the full one where the port has it. A port with a P_Key that
	// the subnet does not have stays disconnected.
	wants("Done...\n", "add", "Ethernet 5", "7123")
	wants("Done...\n", "add", "Ethernet 5", "F999")
	state(t, cfg.Socket, "ipoib_5_2", "up", "F123")
	state(t, cfg.Socket, "ipoib_5_3", "disconnected: no partition", "")

	// The virtual ports survive a restart of the driver.
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	driverbed.Start(t, cfg)
	wants("Ethernet 1 ipoib_5_1 F123\nEthernet 2 ipoib_5_2 7123\nEthernet 3 ipoib_5_3 F999\n", "show")
	state(t, cfg.Socket, "ipoib_5_2", "up", "F123")
	wants("Done\n", "rem", "Ethernet 1")
	wants("Done\n", "remall")
	wants("", "show")
	for n := range 32 {
		wants("Done...\n", "add", "Ethernet 5", fmt.Sprintf("i%d", n), "8555")
	}
	refuses("at most 32 a port", "add", "Ethernet 5")
	wants("Done...\n", "add", "Ethernet 4")
}

// state waits until a virtual port has this state and P_Key.
func state(t *testing.T, socket, iname, want, key string) {
	t.Helper()
	var out string
	if !await.Until(func() bool {
		_, out, _ = partMan(t, socket, "show", "--json")
		var list []api.VirtualPort
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(v api.VirtualPort) bool { return v.IName == iname && v.State == want && v.ActivePKey == key })
	}) {
		t.Fatalf("%s is not %q with the P_Key %q: %s", iname, want, key, out)
	}
}

// An Ethernet port has no virtual ports.
func TestEthernetPort(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "Ethernet 1"})
	driverbed.Start(t, cfg)
	status, _, errs := partMan(t, cfg.Socket, "add", "Ethernet 1")
	if status != tool.Usage || !strings.Contains(errs, `"Ethernet 1", an Ethernet port; allowed: an IPoIB port; this driver has none`) {
		t.Errorf("status %d, %q; want %d and that an IPoIB port is allowed", status, errs, tool.Usage)
	}
}
