package vlanconfig

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

func call(t *testing.T, socket, line string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	args := append([]string{"--socket", socket}, strings.Fields(line)...)
	status = Main(t.Context(), tool.Env{Name: name, Args: args, Stdout: &out, Stderr: &errs})
	return status, out.String(), errs.String()
}

// form returns a listing without its values.
func form(text string) string {
	text = regexp.MustCompile(`\{[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}\}`).ReplaceAllString(text, "{GUID}")
	return regexp.MustCompile(`(?m)(  )(\S+) (.*) Ethernet`).ReplaceAllString(text, "${1}VENDOR DEVICE Ethernet")
}

// The list has the form of the manual's sample (WinOF 5.50, 4.1.6.2), apart from its values.
func TestShowList(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "left", Generation: "mlx4"}, config.Adapter{Name: "right", Generation: "mlx4"})
	driverbed.Start(t, cfg)
	sample, err := os.ReadFile("testdata/showlist.txt")
	if err != nil {
		t.Fatal(err)
	}
	status, out, errs := call(t, cfg.Socket, "showlist")
	if d := cmp.Diff(form(string(sample)), form(out)); d != "" || status != tool.Success || errs != "" {
		t.Errorf("status %d, %s\n%s\n%s", status, errs, d, out)
	}
	if _, out, _ := call(t, cfg.Socket, "ShowList ipoib"); out != "" {
		t.Errorf("IPoIB interfaces: %s, want none", out)
	}
	var list []adapter
	_, out, _ = call(t, cfg.Socket, "showlist --json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 2 || list[1].Name != "right" || list[0].GUID == list[1].GUID {
		t.Errorf("%v, %+v; want two adapters with GUIDs of their own", err, list)
	}
}

// showlist ipoib lists the adapters of InfiniBand ports, and showlist the others (WinOF 5.50, 4.1.6.1).
func TestShowListIPoIB(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "ib", Link: "cable"}, config.Adapter{Name: "eth"})
	driverbed.Start(t, cfg)
	for line, want := range map[string]string{"showlist IPoIB --json": "ib", "showlist --json": "eth"} {
		var list []adapter
		_, out, errs := call(t, cfg.Socket, line)
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].Name != want {
			t.Errorf("%s: %v, %+v %s; want %s alone", line, err, list, errs, want)
		}
	}
}

func TestCommands(t *testing.T) {
	socket := t.TempDir() + "/none"
	for _, c := range catalogue.CommandsOf(name) {
		status, out, errs := call(t, socket, c.Name)
		if built := c.Status == catalogue.Built; out != "" || built != (status == tool.Failure) || !built &&
			(status != tool.Unsupported || errs != "vlan_config: "+c.Name+": not supported by this adapter\n") {
			t.Errorf("%s: status %d, %q; want a failure without a driver if it is built, and otherwise that it is not supported", c.Name,
				status, errs)
		}
		if _, out, _ := call(t, socket, "--help"); !strings.Contains(out, "  "+c.Name+" "+c.Arguments+"\n") {
			t.Errorf("help does not name %s", c.Name)
		}
	}
	for line, want := range map[string]string{
		"": "a command is missing; allowed: showlist, create team", "show": `"show" is not a command`,
		"create vlan x": `"create vlan" is not a command`,
		"showlist x":    "allowed: showlist [IPoIB]", "showlist IPoIB x": `unexpected argument "x"`,
	} {
		if status, _, errs := call(t, socket, line); status != tool.Usage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s; want %d and %q", line, status, errs, tool.Usage, want)
		}
	}
}
