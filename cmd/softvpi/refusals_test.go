package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// beside starts a driver that the test's tools find.
func beside(t *testing.T) {
	t.Helper()
	cfg := driverbed.Config(t, config.Adapter{Name: "Ethernet 1"}, config.Adapter{Name: "Ethernet 2", Generation: "mlx4"})
	driverbed.Start(t, cfg)
	t.Setenv(paths.SocketVariable, cfg.Socket)
	t.Setenv(paths.StateVariable, cfg.State)
}

// words splits a command line, in which "..." is one word.
func words(line string) (out []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

func TestWrongCommandLinesOfTools(t *testing.T) {
	beside(t)
	t.Chdir(t.TempDir())
	table, err := os.ReadFile(filepath.Join(here, "testdata", "refusals.txt"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(table)) {
		typed, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		if !ok {
			continue
		}
		n++
		w := words(typed)
		status, stdout, stderr := call(t, "softvpi", w...)
		if status != tool.Usage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, w[0]+": "+want) {
			t.Errorf("%s: status %d, %q, %q; want %q", typed, status, stdout, stderr, want)
		}
	}
	if n < 100 {
		t.Errorf("%d lines", n)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// here is the directory of the tests.
var here = func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir
}()

// With --json every tool prints JSON and nothing else.
func TestEveryToolPrintsJSON(t *testing.T) {
	beside(t)
	t.Chdir(t.TempDir())
	lines := []string{
		"vlan_config showlist", "vstat", "vstat -v", "ibstat", "ibstat -l", "ibstat -p", "ibstat -s", "MlxStat", "mst status",
		"mst status -v", "mlxconfig query", "mlxconfig show_confs",
		"mlxconfig -d mt4115_pciconf0 -y set SRIOV_EN=1", "mlxconfig -d mt4115_pciconf0 -y reset", `perf_tuning -s -c1 "Ethernet 1"`,
		`perf_tuning --undo -c1 "Ethernet 1"`,
		"MLNX_System_Snapshot", "ibdump --duration 0.05 --silent", "mlx5cmd -Stat", "mlx5cmd -DriverVersion",
		"mlx5cmd -RegKeys -DynamicKeys", "mlx5cmd -Features",
		`mlx5cmd -QosConfig -Dcqcn -Name "Ethernet 1" -Get`, `mlx5cmd -QosConfig -Dcqcn -Name "Ethernet 1" -Set -DcqcnCnpDscp 3`,
		`mlx5cmd -QosConfig -Dcqcn -Name "Ethernet 1" -Enable`,
		`mlx5cmd -QosConfig -Dcqcn -Name "Ethernet 1" -Defaults`, `mlx5cmd -Dcqcn -Name "Ethernet 1" -Restore`,
		`mlx5cmd -QosConfig -DefaultUntaggedPriority -Name "Ethernet 1" -Set 3`,
		`mlx5cmd -Dbg -SwReset -Name "Ethernet 1"`, `mlx5cmd -Dbg -StateDump -Name "Ethernet 1"`, "mlx5cmd -Dbg -Resources",
		"mlx5cmd -Dbg -CmdStats", "mlx5cmd -Dbg -OidStats",
		`mlx5cmd -Dmn -Name "Ethernet 1"`, `mlx5cmd -Sniffer -Name "Ethernet 1" -Start -FileName x.pcapng`,
		`mlx5cmd -Sniffer -Name "Ethernet 1" -Status`, `mlx5cmd -Sniffer -Name "Ethernet 1" -Stop`, "mlx5cmd -NdStat", "mlx5cmd -NdStat -Error",
		`mlx5cmd -LinkSpeed -Name "Ethernet 1" -Query`, "flint -d mt4115_pciconf0 q", "mlxburn -d mt4115_pciconf0 -query",
		"mlxfwreset -d mt4115_pciconf0 q", "vfpctrl /list-vmswitch-port",
	}
	for _, c := range catalogue.CommandsOf("mlxtool") { // as listed in its help
		if c.Example == "" || c.Status != catalogue.Built || strings.HasPrefix(c.Name, "dbg nonrss") || c.Name == "show packet-filter" { // the last needs a host
			continue
		}
		line := "mlxtool " + strings.ReplaceAll(c.Example, `"Ethernet 1"`, map[bool]string{true: `"Ethernet 2"`,
			false: `"Ethernet 1"`}[c.Generations == catalogue.MLX4])
		if c.Name == "show nd connections" {
			line = "mlxtool show nd connections -e -t 0.01"
		}
		if c.Name == "dbg decode" { // of what dbg mstdump has written
			line = "mlxtool dbg decode " + filepath.Join(os.Getenv(paths.StateVariable), "temp") + " QP COUNTER"
		}
		lines = append(lines, strings.Replace(line, "RXD 5", "RX", 1))
	}
	lines = append(lines, `mlxtool dbg nonrss-capture "Ethernet 2" query`)
	for _, line := range lines {
		status, stdout, stderr := call(t, "softvpi", append(words(line), "--json")...)
		if status != tool.Success || !json.Valid([]byte(stdout)) || stderr != "" {
			t.Errorf("%s: status %d, %q, %.200q", line, status, stderr, stdout)
		}
	}
}
