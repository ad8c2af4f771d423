package mlxtool

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// raised returns the symbols of an adapter's events, the oldest first, without those of its link.
func (g *rig) raised(adapter string) []string {
	g.t.Helper()
	var page events.Page
	if err := api.NewClient(g.socket).Get(g.t.Context(), "/events", nil, &page); err != nil {
		g.t.Fatal(err)
	}
	var out []string
	for _, e := range page.Events {
		if name := e.Fields["Device"]; (e.Adapter == adapter || name == adapter) && !strings.HasPrefix(e.Symbol, "Link") {
			out = append(out, e.Symbol)
		}
	}
	return out
}

func TestReset(t *testing.T) {
	g := start(t)
	_, client := g.connect() // from right
	if rows := g.tables(append([]string{"dbg", "sw-reset"}, g.where("right")...)...)[0].Rows; rows[0]["state"] != "Operational" ||
		rows[0]["action"] != "reset" {
		t.Errorf("sw-reset prints %v, want the action reset and the state Operational", rows)
	}
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("the connection survives the reset of its adapter")
	}
	g.ok(append([]string{"dbg", "sw-reset"}, g.where("left")...)...)
	for adapter, want := range map[string]string{
		"right": "AdapterStopped AdapterStarted RoCEMode ResetFinished",
		"left":  "ResetByDriver AdapterStopped AdapterStarted RoCEMode ResetFinished",
	} {
		all := strings.Join(g.raised(adapter), " ")
		if !regexp.MustCompile(strings.ReplaceAll(want, " ", " .*")).MatchString(all) {
			t.Errorf("events of %s: %s, want %s", adapter, all, want)
		}
	}
}

// A state dump consists of six files named after the manual's scheme; each further dump has the next number.
func TestStateDump(t *testing.T) {
	g := start(t)
	_, client := g.connect()
	for adapter, scheme := range map[string]string{"left": "o%03d_oid", "right": "u%03d_ioctl"} {
		at := g.where(adapter)
		for number := range 2 {
			out := g.tables(append([]string{"dbg", "mstdump"}, at...)...)[0]
			if out.Device != adapter || len(out.Rows) != 6 || out.Rows[0]["index"] != float64(number) || out.Rows[0]["files"] != 6.0 {
				t.Fatalf("%s: %+v; want the six files of dump %d", adapter, out, number)
			}
			for i, kind := range []string{"crspace_0", "crspace_1", "crspace_2", "eq_dump_0", "eq_print_0", "fwtrace_0"} {
				path := filepath.Join(fmt.Sprint(out.Rows[0]["directory"]), "SingleFunc_"+strings.Join(at, "_")+"_"+
					fmt.Sprintf(scheme, number)+"_"+kind+".log")
				if out.Rows[i]["file"] != path {
					t.Errorf("file %v, want %s", out.Rows[i]["file"], path)
				}
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if want := map[string]string{"crspace_0": "0x00000000 0x53565052\n", "eq_dump_0": "cq 0",
					"fwtrace_0": "CREATE_QP"}[kind]; !strings.Contains(string(b), want) {
					t.Errorf("%s does not have %q:\n%s", path, want, b)
				}
			}
		}
	}
	g.decodes(filepath.Join(g.state, "temp"))
	if all := strings.Join(g.raised("left"), " "); !strings.Contains(all, "DumpOnRequest") {
		t.Errorf("events of left: %s, want a DumpOnRequest", all)
	}
	_ = client
}

// A state dump fails where the registry forbids dumps.
func TestStateDumpOff(t *testing.T) {
	g := start(t)
	if _, err := api.NewClient(g.socket).Set(t.Context(), "left", "MstDumpMode", "0"); err != nil {
		t.Fatal(err)
	}
	g.ok("dbg", "restart", "left")
	if status, _, stderr := g.call(append([]string{"dbg", "mstdump"}, g.where("left")...)...); status != tool.Failure ||
		!strings.Contains(stderr, "MstDumpMode is 0") {
		t.Errorf("status %d, %s; want %d and \"MstDumpMode is 0\"", status, stderr, tool.Failure)
	}
}

func TestDumpMeNow(t *testing.T) {
	g := start(t)
	root := filepath.Join(t.TempDir(), "dumps")
	client := api.NewClient(g.socket)
	for key, value := range map[string]string{"DumpMeNowDirectory": root, "DumpMeNowTotalCount": "3", "DumpMeNowPreservedCountMin": "1"} {
		if _, err := client.Set(t.Context(), "right", key, value); err != nil {
			t.Fatal(err)
		}
	}
	g.ok("dbg", "restart", "right")
	var folders []string
	for range 5 {
		out := g.tables(append([]string{"dbg", "dump-me-now"}, g.where("right")...)...)[0]
		folder := fmt.Sprint(out.Rows[0]["folder"])
		if !regexp.MustCompile(`^dmn-right-GENERAL-USER-NA--\d+\.\d+\.\d{4}-\d\d\.\d\d\.\d\d\.\d{3}$`).MatchString(filepath.Base(folder)) ||
			filepath.Dir(folder) != root {
			t.Errorf("folder %s, want one in %s that is named after the adapter, the cause and the time", folder, root)
		}
		for _, row := range out.Rows {
			if info, err := os.Stat(fmt.Sprint(row["file"])); err != nil || info.Size() == 0 {
				t.Errorf("%v: %v, want a file with contents", row, err)
			}
		}
		folders = append(folders, folder)
	}
	for i, there := range []bool{true, false, false, true, true} {
		if _, err := os.Stat(folders[i]); (err == nil) != there {
			t.Errorf("folder %d: %v, want that it is there: %v", i, err, there)
		}
	}
	// The folders of mlx5 are in a directory of their own below the driver's.
	out := g.tables(append([]string{"dbg", "dump-me-now"}, g.where("left")...)...)[0]
	if folder := fmt.Sprint(out.Rows[0]["folder"]); !strings.HasPrefix(folder, filepath.Join(g.state, "temp", "Mlx5_Dump_Me_Now")) {
		t.Errorf("folder %s, want one in temp/Mlx5_Dump_Me_Now", folder)
	}
	if all := strings.Join(g.raised("right"), " "); strings.Count(all, "DumpMeNow") != 5 {
		t.Errorf("events of right: %s, want 5 DumpMeNow", all)
	}
	// A dump that cannot be made raises an event too.
	if _, err := client.Set(t.Context(), "right", "DumpMeNowTotalCount", "0"); err != nil {
		t.Fatal(err)
	}
	g.ok("dbg", "restart", "right")
	if status, _, stderr := g.call(append([]string{"dbg", "dump-me-now"}, g.where("right")...)...); status != tool.Failure ||
		!strings.Contains(stderr, "DumpMeNowTotalCount is 0") {
		t.Errorf("status %d, %s; want %d and \"DumpMeNowTotalCount is 0\"", status, stderr, tool.Failure)
	}
	if all := strings.Join(g.raised("right"), " "); !strings.HasSuffix(all, "DumpMeNowFailed") {
		t.Errorf("events of right: %s, want DumpMeNowFailed as the last", all)
	}
}

func TestStatistics(t *testing.T) {
	g := start(t)
	left := g.where("left")
	if text := g.ok(append([]string{"dbg", "cmd-stats"}, left...)...); !strings.Contains(text, "no commands") {
		t.Error("before any command, want \"no commands\":\n", text)
	}
	g.connect()
	found := false
	for _, row := range g.tables(append([]string{"dbg", "cmd-stats"}, left...)...)[0].Rows {
		if row["command"] == "CREATE_QP" {
			found = row["count"] == 1.0 && row["failed"] == 0.0 && row["total_ms"].(float64) > 0 && row["longest_ms"].(float64) > 0
		}
	}
	if !found {
		t.Error("one CREATE_QP with its times is missing in\n", g.ok(append([]string{"dbg", "cmd-stats"}, left...)...))
	}
	g.ok("show", "regkeys", "info", "left")
	out := g.tables("dbg", "oid-stats", "left")
	if len(out) != 1 || out[0].Interface != "left" {
		t.Fatalf("oid-stats prints %v, want one table, of left", out)
	}
	found = false
	for _, row := range out[0].Rows {
		if row["oid"] == "GET /adapters/{name}/settings" {
			found = row["count"] == 1.0 && row["total_us"].(float64) > 0
		}
	}
	if !found || len(g.tables("dbg", "oid-stats")) != 2 {
		t.Errorf("no request for the settings in %+v, or not two tables without a name", out)
	}
}

func TestResources(t *testing.T) {
	g := start(t)
	used := func() float64 {
		t.Helper()
		return g.tables(append([]string{"dbg", "resources"}, g.where("left")...)...)[0].Rows[0]["allocated"].(float64)
	}
	before := used()
	g.connect()
	if now := used(); now != before+1 {
		t.Errorf("%v queue pairs in use, want one more than %v", now, before)
	}
	if out := g.tables("dbg", "pkeys", "left"); len(out) != 1 || out[0].Rows[0]["pkey"] != "ffff" || out[0].Rows[0]["pkey_index"] != 0.0 {
		t.Errorf("P_Keys of left: %v, want one table with ffff at index 0", out)
	}
	if text := g.ok("dbg", "pkeys"); strings.Count(text, "NIC: ") != 2 {
		t.Error("P_Keys without a name, want two adapters:\n", text)
	}
}

func TestPortDiagnostics(t *testing.T) {
	g := start(t)
	at := append([]string{"dbg", "pddrinfo"}, append(g.where("left"), "1")...)
	if row := g.tables(at...)[0].Rows[0]; row["link"] != "Up" || row["status"] != "No issue was found" {
		t.Errorf("%v, want an up link without an issue", row)
	}
	if err := g.driver.SetAdapter(driver.AdapterRequest{Adapter: "left"}); err != nil {
		t.Fatal(err)
	}
	if row := g.tables(at...)[0].Rows[0]; row["link"] != "Down" || row["status"] != "The adapter is disabled" || row["times_down"] == 0.0 {
		t.Errorf("%v, want a link that is down because the adapter is disabled", row)
	}
	if out := g.tables("dbg", "pddrinfo"); len(out) != 2 || out[1].Rows[0]["link"] != "Up" {
		t.Errorf("%v, want two adapters, and the second one's link up", out)
	}
}

// A port that goes down causes a dump: on mlx4 unless DumpModeFlags excludes it, on mlx5 where EnableDumpOnPortDown
// asks for it.
func TestPortDump(t *testing.T) {
	g := start(t)
	client := api.NewClient(g.socket)
	sets := func(adapter, event string) int {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(g.state, "temp", "SingleFunc_"+strings.Join(g.where(adapter), "_")+"_p*_"+event+
			"_fwtrace_0.log"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	cycle := func(adapter, event string, more int) {
		t.Helper()
		before := sets(adapter, event)
		g.ok("dbg", "restart", adapter)
		await.Until(func() bool { return sets(adapter, event) >= before+more })
		if n := sets(adapter, event); n != before+more {
			t.Errorf("%s of %s: %d sets, want %d more than %d", event, adapter, n, more, before)
		}
	}
	cycle("left", "eth-down-1", 0)
	cycle("right", "eth-down-1", 1)
	for adapter, key := range map[string][2]string{"left": {"EnableDumpOnPortDown", "1"}, "right": {"DumpModeFlags", "0x4"}} {
		if _, err := client.Set(t.Context(), adapter, key[0], key[1]); err != nil {
			t.Fatal(err)
		}
		g.ok("dbg", "restart", adapter) // the adapter takes its settings from the registry
	}
	cycle("left", "eth-down-1", 1)
	cycle("right", "eth-up-1", 1)
}
