package diags

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stages reads the table at the end of a report.
func stages(t *testing.T, out string) map[string][2]string {
	t.Helper()
	table := map[string][2]string{}
	for _, m := range regexp.MustCompile(`(?m)^    (\S.*?) {2,}(\d+) +(\d+) *$`).FindAllStringSubmatch(out, -1) {
		table[m[1]] = [2]string{m[2], m[3]}
	}
	return table
}

// The rules that ibdiagnet's report keeps. The ibdiagnet of ibutils cannot run with ibsim's stock preload library;
// test/fabric compares with it.
func TestIbdiagnet(t *testing.T) {
	f := newFabric(t, "testdata/small.net", true)
	run := func(want int, args ...string) string {
		t.Helper()
		r := f.ours("host-b", "ibdiagnet", append([]string{"-o", "out"}, args...)...)
		if r.status != want || r.errs != "" {
			t.Errorf("ibdiagnet %v: status %d, %s\n%s", args, r.status, r.errs, r.out)
		}
		return r.out
	}
	says := func(out string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(out, w) {
				t.Errorf("the report lacks %q:\n%s", w, out)
			}
		}
	}
	out := run(0, "-r")
	says(out, "-W- Topology file is not specified.\n", "-I- Using port 1 as the local port.\n", "6 nodes (2 Switches & 4 CA-s) discovered.",
		"-I- No bad Guids were found\n",
		"-I-    PKey:0x7fff Hosts:5 full:5 limited:0\n", "-I- No bad link were found\n",
		"  SM - master\n    host-a/P1 lid=0x0001 guid=0x0002c90300001001 dev=23108 priority:0\n",
		"-I- Followed 14 routes", "-I- Subnet: IPv4 PKey:0x7fff QKey:0x00000b1b MTU:2048Byte rate:10Gbps SL:0x00\n-W- Suboptimal rate for group. Lowest member rate:40Gbps > group-rate:10Gbps\n")
	if got := stages(t, out)["IPoIB Subnets Check"]; got != [2]string{"0", "1"} {
		t.Errorf("the IPoIB stage is %v", got)
	}
	for _, name := range []string{"lst", "fdbs", "pkey", "sm", "pm", "log"} {
		if _, err := os.Stat(filepath.Join(f.dir, "out", "ibdiagnet."+name)); err != nil {
			t.Error(err)
		}
	}
	list, _ := os.ReadFile(filepath.Join(f.dir, "out", "ibdiagnet.lst"))
	if n := strings.Count(string(list), "\n"); n != 7 || !strings.Contains(string(list), "} PHY=4x LOG=ACT SPD=10\n") {
		t.Errorf("%d links in\n%s", n, list)
	}
	says(run(0, "-lw", "12x", "-skip", "all"), "link with PHY=4x, and not 12x")

	f.say(`PerformanceSet "leaf-1"[8] PortCounters.SymbolErrorCounter=17`)
	says(run(0), "dev=47396 Port=8\n      Performance Monitor counter     : Value\n      symbol_error_counter            : 0x11\n")
	if out := run(0, "-P", "symbol_error_counter=20"); !strings.Contains(out, "No illegal PM counters") {
		t.Errorf("the limit does not count:\n%s", out)
	}
	run(0, "-pc")
	says(run(0), "-I- No illegal PM counters values were found\n")

	f.ours("host-b", "ibnetdiscover", "topology")
	says(run(0, "-t", "topology", "-s", "host-b"), "-I- The fabric is that of the topology file\n")
	f.say(`Unlink "leaf-1"[8]`)
	says(run(0, "-t", "topology"), "-W- Port 8 of leaf-1 switch is linked to nothing, and should be to leaf-2 switch port 8\n")
	t.Setenv("IBDIAG_TOPO_FILE", "topology")
	t.Setenv("IBDIAG_SYS_NAME", "nobody")
	if r := f.ours("host-b", "ibdiagnet"); r.status != 2 || !strings.Contains(r.errs, `"nobody" is not in the topology file`) {
		t.Errorf("%d %s", r.status, r.errs)
	}
	t.Setenv("IBDIAG_SYS_NAME", "host-b")
	says(run(0), "Port 8 of leaf-1 switch is linked to nothing")
	for _, v := range []string{"IBDIAG_PORT_NUM", "IBDIAG_DEV_IDX"} {
		t.Setenv(v, "7")
		if r := f.ours("host-b", "ibdiagnet"); r.status != 2 || !strings.Contains(r.errs, `"7"; allowed: 1`) {
			t.Errorf("%s: %d %s", v, r.status, r.errs)
		}
		t.Setenv(v, "1")
	}
}

// A fabric that no subnet manager has touched has links in INIT, no LIDs, and no master.
func TestIbdiagnetWithoutAManager(t *testing.T) {
	f := newFabric(t, "testdata/small.net", false)
	r := f.ours("host-b", "ibdiagnet", "-o", "out", "-r")
	for _, w := range []string{"-W- link with LOG=INI found\n", "-E- 0 master subnet managers were found\n"} {
		if !strings.Contains(r.out, w) || r.status != 1 {
			t.Errorf("%d, no %q in\n%s", r.status, w, r.out)
		}
	}
}

// ibdiagpath takes the same route as ibtracert, for every form of address.
func TestIbdiagpath(t *testing.T) {
	f := newFabric(t, "testdata/small.net", true)
	hops := func(line string) string {
		t.Helper()
		w := strings.Fields(line)
		r := f.ours("host-b", w[0], w[1:]...)
		if r.status != 0 {
			t.Errorf("%s: %d %s %s", line, r.status, r.out, r.errs)
		}
		var list []string
		for _, m := range regexp.MustCompile(`(?:To: +lid=\S+ guid=0x|-> (?:ca|switch) port \{0x)([0-9a-f]{16})`).FindAllStringSubmatch(r.out, -1) {
			list = append(list, m[1])
		}
		return strings.Join(list, " ")
	}
	if err := os.WriteFile(filepath.Join(f.dir, "topology"),
		[]byte("Ca\t1 \"x\"\t# \"host-c HCA-1\"\n[1]\t\"y\"[1]\n\nSwitch\t1 \"y\"\t# \"z\"\n[1]\t\"x\"[1]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := hops("ibtracert 4 5")
	for _, line := range []string{"ibdiagpath -l 5", "ibdiagpath -l 4,5", "ibdiagpath -n host-c", "ibdiagpath -n host-b,host-c/P1",
		"ibdiagpath -t topology -n x"} {
		if got := hops(line); got != want || want == "" {
			t.Errorf("%s goes by %q, want %q", line, got, want)
		}
	}
	if got, want := hops("ibdiagpath -l 1,7"), hops("ibtracert 4 1")+" "+hops("ibtracert 1 7"); got != want {
		t.Errorf("from 1 to 7 by %q, want %q", got, want)
	}
	if got := hops("ibdiagpath -d 1,7,1"); len(strings.Fields(got)) != 3 {
		t.Errorf("a directed route goes by %q", got)
	}
	for line, want := range map[string]int{"ibdiagpath -d 1,5": 1, "ibdiagpath -d 9": 1, "ibdiagpath -l 99": 255,
		"ibdiagpath -n nobody": 255, "ibdiagpath -t topology -n nobody": 2} {
		w := strings.Fields(line)
		if r := f.ours("host-b", w[0], w[1:]...); r.status != want {
			t.Errorf("%s: status %d, want %d: %s %s", line, r.status, want, r.out, r.errs)
		}
	}
}
