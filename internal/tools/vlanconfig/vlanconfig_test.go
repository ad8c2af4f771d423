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
	var l list
	_, out, _ = call(t, cfg.Socket, "showlist --json")
	err = json.Unmarshal([]byte(out), &l)
	if a := l.Adapters; err != nil || len(a) != 2 || a[1].Name != "right" || a[0].GUID == a[1].GUID || len(l.Teams) != 0 {
		t.Errorf("%v, %+v; want two adapters with GUIDs of their own", err, l)
	}
}

// showlist ipoib lists the adapters of InfiniBand ports, and showlist the others (WinOF 5.50, 4.1.6.1).
func TestShowListIPoIB(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "ib", Link: "cable"}, config.Adapter{Name: "eth"})
	driverbed.Start(t, cfg)
	for line, want := range map[string]string{"showlist IPoIB --json": "ib", "showlist --json": "eth"} {
		var l list
		_, out, errs := call(t, cfg.Socket, line)
		if err := json.Unmarshal([]byte(out), &l); err != nil || len(l.Adapters) != 1 || l.Adapters[0].Name != want {
			t.Errorf("%s: %v, %+v %s; want %s alone", line, err, l, errs, want)
		}
	}
}

func TestCommands(t *testing.T) {
	socket := t.TempDir() + "/none"
	for _, c := range catalogue.CommandsOf(name) {
		words := strings.NewReplacer("<NewVlanId>", "1", "<VlanId>", "1", "<NewPriority>", "1", "<Priority>", "1", "[address=]", "address=a",
			"[tap=]", "TAP=b", "[", "", "]", "", "<", "", ">", "", "{", "", "}", "").Replace(c.Arguments)
		status, out, errs := call(t, socket, c.Name+" "+words)
		if built := c.Status == catalogue.Built; out != "" || built != (status == tool.Failure) || !built &&
			(status != tool.Unsupported || errs != "vlan_config: "+c.Name+": not supported by this adapter\n") {
			t.Errorf("%s: status %d, %q; want a failure without a driver if it is built, and otherwise that it is not supported", c.Name,
				status, errs)
		}
		if c.Status == catalogue.Built && commands[c.Name] == nil {
			t.Errorf("%s is built, but not there", c.Name)
		}
		if _, out, _ := call(t, socket, "--help"); !strings.Contains(out, "  "+c.Name+" "+c.Arguments+"\n") {
			t.Errorf("help does not name %s", c.Name)
		}
	}
	for line, want := range map[string]string{
		"": "a command is missing; allowed: showlist, create team", "show": `"show" is not a command`,
		"create vlan x": `"create vlan" is not a command`,
		"showlist x":    "allowed: showlist [IPoIB]", "showlist IPoIB x": `unexpected argument "x"`,
		"showlist IPoIB ipoib":       `unexpected argument "ipoib"`,
		"create team":                "<Type> is missing; allowed: create team <Type> <Name>",
		"create team AFT":            "<Name> is missing",
		"create team AFT x first":    `unexpected argument "first"`,
		"attach team x":              "{<Adapter-GUID>} is missing",
		"attach team x y primary zz": `unexpected argument "zz"`,
		"removeteam":                 "<TeamName> is missing",
		"modifyteam a b":             "<TeamType> is missing",
		"queryteam a b":              `unexpected argument "b"; allowed: queryteam <TeamName>`,
	} {
		if status, _, errs := call(t, socket, line); status != tool.Usage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s; want %d and %q", line, status, errs, tool.Usage, want)
		}
	}
}
