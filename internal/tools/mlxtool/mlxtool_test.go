package mlxtool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
	"github.com/softvpi/softvpi/verbs"
)

// rig is a driver with an adapter of each generation: left is mlx5, right is mlx4.
type rig struct {
	t        *testing.T
	socket   string
	state    string
	adapters []config.Adapter
	driver   *driver.Driver
}

func start(t *testing.T) *rig {
	t.Helper()
	cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right", Generation: "mlx4"})
	return &rig{t, cfg.Socket, cfg.State, cfg.Adapters, driverbed.Start(t, cfg)}
}

// call runs the tool and returns its exit status and what it printed.
func (g *rig) call(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Main(g.t.Context(), tool.Env{Name: name, Args: append([]string{"--socket", g.socket}, args...), Stdout: &out, Stderr: &errs})
	return status, out.String(), errs.String()
}

// ok runs the tool, which must succeed without an error message, and returns its output.
func (g *rig) ok(args ...string) string {
	g.t.Helper()
	status, stdout, stderr := g.call(args...)
	if status != tool.Success || stderr != "" {
		g.t.Fatalf("%v: status %d, %s", args, status, stderr)
	}
	return stdout
}

// tables runs the tool with --json and returns its tables.
func (g *rig) tables(args ...string) []jsonTable {
	g.t.Helper()
	var out []jsonTable
	if err := json.Unmarshal([]byte(g.ok(append(args, "--json")...)), &out); err != nil {
		g.t.Fatal(err)
	}
	return out
}

type jsonTable struct {
	Interface string           `json:"interface"`
	Device    string           `json:"device"`
	Rows      []map[string]any `json:"rows"`
}

// where returns the location of an adapter as arguments: bus, device and function.
func (g *rig) where(name string) []string {
	g.t.Helper()
	for _, row := range g.tables("show", "devices")[0].Rows {
		if row["device"] == name {
			return []string{fmt.Sprint(row["bus"]), fmt.Sprint(row["device_number"]), fmt.Sprint(row["function"])}
		}
	}
	g.t.Fatalf("no device %q", name)
	return nil
}

// attached returns the adapter of that index as a program attached to the driver sees it.
func (g *rig) attached(index int) *nd.Adapter {
	g.t.Helper()
	host, err := verbs.Attach(g.t.Context(), g.socket)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = host.Close() })
	a, err := nd.NewProvider(host).OpenAdapterAt(g.adapters[index].Address)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = a.Close() })
	return a
}

// connect makes a connection from right to left between two attached programs.
func (g *rig) connect() (server, client net.Conn) {
	g.t.Helper()
	if why := g.driver.NoAttach(); why != "" {
		g.t.Skip(why)
	}
	l, err := (&rdmanet.ListenConfig{Adapter: g.attached(0)}).Listen(g.t.Context(), netip.AddrPortFrom(g.adapters[0].Address,
		7000).String())
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = l.Close() })
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	if client, err = (&rdmanet.Dialer{Adapter: g.attached(1)}).Dial(g.t.Context(), l.Addr().String()); err != nil {
		g.t.Fatal(err)
	}
	server = <-accepted
	g.t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	return server, client
}

// A sub-command does something exactly if the catalogue's status of it is built.
func TestBuilt(t *testing.T) {
	commands := catalogue.CommandsOf(name)
	for _, c := range commands {
		_, does := works[c.Name]
		if leaf := len(children(commands, &c)) == 0; does != (leaf && c.Status == catalogue.Built) {
			t.Errorf("%s: does something %v, status %v", c.Name, does, c.Status)
		}
		if c.Parent() != "" && !slices.ContainsFunc(commands, func(p catalogue.Command) bool { return p.Name == c.Parent() }) {
			t.Errorf("%s belongs to no sub-command of the catalogue", c.Name)
		}
	}
	for name := range works {
		if !slices.ContainsFunc(commands, func(c catalogue.Command) bool { return c.Name == name }) {
			t.Errorf("the catalogue has no %s", name)
		}
	}
}

// Sub-commands that these adapters do not support have an exit status of their own, with a driver and without.
func TestUnsupported(t *testing.T) {
	g := start(t)
	for _, c := range catalogue.CommandsOf(name) {
		if c.Status == catalogue.Built {
			continue
		}
		status, stdout, stderr := g.call(strings.Fields(c.Name)...)
		if status != tool.Unsupported || stdout != "" || stderr != "mlxtool: "+c.Name+": not supported by this adapter\n" {
			t.Errorf("%s: status %d, %q, %q; want that it is not supported", c.Name, status, stdout, stderr)
		}
	}
	for _, of := range []string{"driverparams", "perfstats"} {
		if status, _, stderr := g.call("show", of, "left"); status != tool.Unsupported {
			t.Errorf("%s of mlx5: status %d, %s; want %d", of, status, stderr, tool.Unsupported)
		}
	}
}

// Wrong arguments are refused in one line that says what is allowed.
func TestUsage(t *testing.T) {
	g := start(t)
	for line, want := range map[string]string{
		"shew":                             `"shew" is not a sub-command; allowed: show dbg modify help`,
		"show":                             "allowed: ports devices nd",
		"show nd":                          "allowed: connections help",
		"show nothing":                     `of show; allowed: ports`,
		"show help nothing":                `of show; allowed: ports`,
		"show ports left":                  `show ports: unexpected argument "left"`,
		"show nd connections -n 10001":     "1 to 10000",
		"show nd connections -n 0":         "1 to 10000",
		"show nd connections -t 1":         "-t goes only with -e",
		"show nd connections -e -t x":      "seconds",
		"show nd connections -a 127.0.0.0": "an address of an adapter, " + g.adapters[0].Address.String(),
		"show nd connections -p self":      "1 to 2147483647",
		"show nd connections now":          `unexpected argument "now"`,
		"show nd connections -z":           "--address",
		"show regkeys config nowhere":      `interface name is "nowhere"; allowed: "left", "right"`,
		"show regkeys info left right":     `unexpected argument "right"`,
		"show driverparams":                "an interface name is missing; allowed: show driverparams <interface name>",
		"dbg restart":                      "an interface name is missing",
		"dbg restart left now":             `unexpected argument "now"`,
		"dbg get-state 1 0":                "2 numbers are given",
		"dbg get-state 1 0 x":              `"x" is not a number`,
		"dbg get-state 1 0 0 1":            `unexpected argument "1"`,
		"dbg get-state 200 0 0":            "PCI location is 200 0 0; allowed: ",
		"show perfstats":                   "an interface name is missing",
		"show perfstats right SX":          `"SX" is not a form of it; allowed: show perfstats <interface name> [RX`,
		"show perfstats right RXD":         "RXD needs a number of seconds",
		"show perfstats right TXD 0":       "from 1 to 3600",
		"show perfstats right RX 5":        `unexpected argument "5"`,
		"dbg pddrinfo 1 0 0 2":             "port is",
		"dbg mstdump":                      "0 numbers are given of the 3",
		"dbg dump-me-now 1 0":              "2 numbers are given of the 3",
		"--socket":                         "", // the second --socket, which has no argument
	} {
		status, stdout, stderr := g.call(strings.Fields(line)...)
		if status != tool.Usage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "mlxtool: ") ||
			!strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, %q, want %q", line, status, stderr, want)
		}
	}
}

func TestNoDriver(t *testing.T) {
	g := &rig{t: t, socket: filepath.Join(t.TempDir(), "none")}
	for _, line := range []string{"show ports", "show nd connections", "show regkeys diff", "dbg restart left", "dbg get-state 1 0 0"} {
		if status, stdout, stderr := g.call(strings.Fields(line)...); status != tool.Failure || stdout != "" ||
			!strings.Contains(stderr, "softvpi up") {
			t.Errorf("%s: status %d, %q; want a failure and \"softvpi up\"", line, status, stderr)
		}
	}
}

// There is help for the tool, for a sub-tool and for an argument.
func TestHelp(t *testing.T) {
	g := &rig{t: t}
	for line, want := range map[string][]string{
		"":                         {"usage: mlxtool <tool-name>", "show", "dbg", "modify", "--json", "3 for what"},
		"help":                     {"usage: mlxtool <tool-name>"},
		"-h":                       {"usage: mlxtool <tool-name>"},
		"HELP Show":                {"usage: mlxtool show <tool-name>", "ports", "packet-filter", "vxlan", "perfstats"},
		"help dbg":                 {"mstdump", "nonrss-capture", "dump-me-now"},
		"help modify":              {"tc-bw"},
		"show help nd":             {"connections"},
		"show help nd connections": {"usage: mlxtool show nd connections [-a", "--error", "default 1000, at most 10000", "Example:"},
		"show nd help connections": {"--time"},
		"show nd connections help": {"--time"},
		"show help regkey":         {"config", "diff", "info"},
		"dbg help mstdump":         {"<pci-bus#> <pci-device#> <pci-function#>", "Example:\n  mlxtool dbg mstdump"},
		"modify help tc-bw":        {"<max BW in Mbps>", "0 is no limit"},
		"show help selfhealing":    {"port"},
	} {
		status, stdout, stderr := g.call(strings.Fields(line)...)
		if status != tool.Success || stderr != "" {
			t.Errorf("%q: status %d, %s", line, status, stderr)
		}
		for _, w := range want {
			if !strings.Contains(stdout, w) {
				t.Errorf("%q does not say %q:\n%s", line, w, stdout)
			}
		}
	}
	commands := catalogue.CommandsOf(name)
	for i := range commands {
		c := &commands[i]
		words := strings.Fields(c.Name)
		if _, stdout, _ := g.call(slices.Insert(slices.Clone(words), len(words)-1, "help")...); stdout != page(commands, c) ||
			len(children(commands, c)) == 0 && !strings.Contains(stdout, name+" "+c.Example) {
			t.Errorf("help of %s:\n%s", c.Name, stdout)
		}
	}
}

func TestPorts(t *testing.T) {
	g := start(t)
	rows := g.tables("show", "ports")[0].Rows
	for i, name := range []string{"left", "right"} {
		if r := rows[i]; r["interface_name"] != name || r["state"] != "Up" || r["address"] != g.adapters[i].Address.String() ||
			r["roce"] != "v2" || r["type"] != "Ethernet" {
			t.Errorf("port %v, want one that is up, with the adapter's address and RoCE v2", r)
		}
	}
	if text := g.ok("show", "ports"); !strings.Contains(text, "| Interface Name |") || !strings.Contains(text, "PCI bus ") {
		t.Error("the table's title or the adapter's location is missing in\n", text)
	}
	devices := g.tables("SHOW", "Devices")[0].Rows
	if len(devices) != 2 || devices[0]["generation"] != "mlx5" || devices[1]["generation"] != "mlx4" ||
		devices[0]["bus"] == devices[1]["bus"] {
		t.Errorf("devices %v, want mlx5 and mlx4 on buses of their own", devices)
	}
}

func TestStateAndRestart(t *testing.T) {
	g := start(t)
	state := func(name string) string {
		t.Helper()
		return fmt.Sprint(g.tables(append([]string{"dbg", "get-state"}, g.where(name)...)...)[0].Rows[0]["state"])
	}
	if state("left") != "Operational" || len(g.tables("dbg", "get-state")[0].Rows) != 2 {
		t.Error("left is not operational, or get-state without a name does not show both devices")
	}
	if err := g.driver.SetAdapter(driver.AdapterRequest{Adapter: "left"}); err != nil {
		t.Fatal(err)
	}
	if s := state("left"); s != "Disabled" {
		t.Errorf("the state of a disabled adapter is %s", s)
	}
	if rows := g.tables("dbg", "restart", "left")[0].Rows; rows[0]["state"] != "Operational" || state("left") != "Operational" {
		t.Errorf("after the restart: %v, want Operational", rows)
	}
}

func TestConnections(t *testing.T) {
	g := start(t)
	if text := g.ok("show", "nd", "connections"); !strings.Contains(text, "no connections") {
		t.Error("want \"no connections\":\n", text)
	}
	server, client := g.connect()
	rows := g.tables("show", "nd", "connections")[0].Rows
	if len(rows) != 2 {
		t.Fatalf("%d connections, want both ends: %v", len(rows), rows)
	}
	for _, r := range rows {
		if r["process_id"] != float64(os.Getpid()) || r["type"] != "RC" || r["state"] != "RTS" || r["remote_address"] == nil ||
			r["local_address"] == nil {
			t.Errorf("connection %v, want an RC connection of this process in RTS with both addresses", r)
		}
	}
	if rows[0]["qpn"] != rows[1]["remote_qpn"] || rows[0]["remote_qpn"] != rows[1]["qpn"] {
		t.Errorf("the ends do not name each other: %v", rows)
	}
	left := g.adapters[0].Address.String()
	for line, want := range map[string]int{
		"-a " + left: 1, "--address " + left: 1, "-n 1": 2, "--count 1 -a " + left: 1,
		"-p " + fmt.Sprint(os.Getpid()): 2, "-p 1": 0, "-e -t 0.001": 0,
	} {
		if rows := g.tables(append([]string{"show", "nd", "connections"}, strings.Fields(line)...)...)[0].Rows; len(rows) < want ||
			line != "-a "+left && len(rows) != want {
			t.Errorf("%s: %d rows, want %d: %v", line, len(rows), want, rows)
		}
	}
	_ = server.Close()
	_, _ = client.Read(make([]byte, 1))
	inError := func() []map[string]any {
		return g.tables("show", "nd", "connections", "-e", "-n", "1", "-t", "0.001")[0].Rows
	}
	await.Until(func() bool { rows = inError(); return len(rows) > 0 })
	if len(rows) != 1 || rows[0]["state"] != "ERR" || rows[0]["process_id"] != float64(os.Getpid()) {
		t.Errorf("connections in error: %v, want one of this process", rows)
	}
}

func TestKeys(t *testing.T) {
	g := start(t)
	row := func(sub, adapter, key string) map[string]any {
		t.Helper()
		tables := g.tables("show", "regkeys", sub, adapter)
		if len(tables) != 1 || tables[0].Interface != adapter {
			t.Fatalf("%s of %s: %v, want one table", sub, adapter, tables)
		}
		for _, r := range tables[0].Rows {
			if r["registry_key"] == key {
				return r
			}
		}
		return nil
	}
	if r := row("config", "left", "MaxCMRetries"); r != nil && (r["source"] != "Default" || r["status"] != "built") {
		t.Errorf("MaxCMRetries: %v, want a default that is built", r)
	}
	if tables := g.tables("show", "regkey", "diff"); len(tables) != 2 || len(tables[0].Rows) != 0 {
		t.Errorf("diff where nothing is set: %v, want two adapters without differences", tables)
	}
	client := api.NewClient(g.socket)
	if _, err := client.Set(t.Context(), "left", "LogNumQp", "15"); err != nil {
		t.Fatal(err)
	}
	if r := row("diff", "left", "LogNumQp"); r == nil || r["registry"] != "15" || r["driver"] == "15" || r["differ"] != true ||
		!strings.Contains(fmt.Sprint(r["reason"]), "restart") {
		t.Errorf("LogNumQp before the restart: %v, want that it differs until a restart", r)
	}
	g.ok("dbg", "restart", "left")
	if r := row("diff", "left", "LogNumQp"); r == nil || r["driver"] != "15" || r["differ"] != false {
		t.Errorf("LogNumQp after the restart: %v, want 15 and no difference", r)
	}
	if r := row("config", "left", "LogNumQp"); r == nil || r["current"] != "15" || r["source"] != "Registry" {
		t.Errorf("LogNumQp: %v, want 15 from the registry", r)
	}
	if r := row("info", "right", "DumpMeNowTotalCount"); r == nil || r["default"] != "128" || r["min"] != 0.0 || r["max"] != 65535.0 {
		t.Errorf("DumpMeNowTotalCount: %v, want the default 128 and the limits 0 to 65535", r)
	}
}

// The field names that the manuals print appear in their order: those of tables in the title, those of lists in the
// first column.
func TestFields(t *testing.T) {
	g := start(t)
	for name, args := range printed {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", name+".fields"))
			if err != nil {
				t.Fatal(err)
			}
			rest := g.ok(args...)
			for want := range strings.Lines(string(raw)) {
				want = strings.TrimSpace(want)
				_, after, ok := strings.Cut(rest, "| "+want+" ")
				if !ok {
					t.Fatalf("%q is missing, or not in its place:\n%s", want, g.ok(args...))
				}
				rest = after
			}
		})
	}
}

// printed holds the sub-commands of which the manuals print field names.
var printed = map[string][]string{
	"driverparams": {"show", "driverparams", "right"},
	"perfstats":    {"show", "perfstats", "right", "RX"},
	"pkeys":        {"dbg", "pkeys", "right"},
	"resources":    {"dbg", "resources"},
}

func TestText(t *testing.T) {
	tab := table{Label: "Interface", Name: "a|b\n", Fields: []string{"PKEY index", "PKEY"}}
	tab.add(0, "ffff")
	tab.add(1, nil)
	var text, object bytes.Buffer
	if err := (report{tab}).text(&text); err != nil {
		t.Fatal(err)
	}
	want := "Interface: a?b?\n   ------------ ------\n  | PKEY index | PKEY |\n   ------------ ------\n  | 0          | ffff |\n  | 1          | -    |\n   ------------ ------\n"
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	if err := (report{tab}).json(&object); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, object.Bytes()); err != nil {
		t.Fatal(err)
	}
	if want := `[{"interface":"a|b\n","rows":[{"pkey_index":0,"pkey":"ffff"},{"pkey_index":1,"pkey":null}]}]`; compact.String() != want {
		t.Errorf("got %s, want %s", compact.String(), want)
	}
}
