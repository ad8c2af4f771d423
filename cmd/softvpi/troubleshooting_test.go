package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// checks are the commands of docs/troubleshooting.md that are run against a driver with two adapters and no fabric, in this order, with
// what they end with and say there.
var checks = []struct {
	command string
	status  int
	says    string
}{
	{"softvpi status", 0, "Ethernet 1"},
	{"softvpi status --json", 0, `"adapters"`},
	{"softvpi health", 0, "live and ready"},
	{"softvpi link show", 0, "path auto"},
	{"softvpi events list", 0, "has started as process"},
	{"softvpi qos show", 0, "PFC"},
	{"softvpi ps -c Get-NetAdapterQos", 0, "Ethernet 1"},
	{"softvpi ps -c 'Disable-NetAdapterQos *'", 0, ""},
	{"softvpi ps -c Get-NetVirtualizationLookupRecord", 0, ""},
	{"softvpi up -v", 1, "another driver is running"},
	{"softvpi fabric do clients", 1, "no fabric is served"},
	{"softvpi fabric do port PORT", 1, "no fabric is served"},
	{"sminfo", 255, "no InfiniBand fabric"},
	{"ndinstall -l", 0, "Ethernet 1"},
	{"mst status", 0, "_pciconf0"},
	{"vstat", 0, "interface=Ethernet 1"},
	{"mlxtool show selfhealing port NAME", 0, "Internal error"},
	{"perf_tuning -s -c1 NAME --dry-run", 0, "Ethernet 1"},
	{"flint -d DEVICE q", 0, "PSID"},
	{"flint -d DEVICE verify", 0, "OK"},
	{"mlxconfig -d DEVICE q", 0, "Configurations"},
	{"softvpi link set NAME path=wire", 0, ""},
	{"softvpi adapter restart NAME", 0, ""},
	{"softvpi adapter disable NAME", 0, ""},
	{"softvpi adapter enable NAME", 0, ""},
}

// checkedElsewhere are those that need more: a file, another side, a fabric, or the rest of the command. They have tests beside their
// tools; here they have to be there, and to have help.
var checkedElsewhere = []string{
	"softvpi up", "softvpi report", "softvpi reg delete", "softvpi fabric run", "ibdump", "nd_rping", "nd_write_bw", "opensm",
	"perf_tuning",
	"flint -i FILE q", "flint -d DEVICE -i FILE b", "flint -d DEVICE -i FILE -y b", "mlxfwreset -d DEVICE reset",
	"mlxconfig -d DEVICE set LINK_TYPE_P1=1", "ibportstate LID PORT", "nd_send_bw -S ADDRESS", "nd_send_bw -C ADDRESS",
	"nd_send_bw -S ADDRESS1", "nd_send_bw -C ADDRESS1",
}

// documented returns a command's words, with the driver's own in place of what stands for them.
func documented(command, device string) (list []string) {
	for _, w := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(command, -1) {
		switch w {
		case "NAME":
			w = "Ethernet 1"
		case "DEVICE":
			w = device
		}
		list = append(list, strings.Trim(w, "'"))
	}
	if list[0] == "softvpi" {
		return list[1:]
	}
	return list
}

// TestTroubleshooting: each command that docs/troubleshooting.md names is one that there is, and those that need nothing but a driver
// end and say what is expected of them.
func TestTroubleshooting(t *testing.T) {
	systemtest.Mark(t)
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range checks {
		known[c.command] = true
	}
	for _, c := range checkedElsewhere {
		known[c] = true
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(text), -1) {
		first, _, _ := strings.Cut(m[1], " ")
		if named[m[1]] = true; (first == "softvpi" || tools[first] != nil) && !known[m[1]] {
			t.Errorf("the document names %q, which is in no table of this test", m[1])
		}
	}
	for c := range known {
		if !named[c] {
			t.Errorf("the document does not name %q any more", c)
		}
	}
	p := newPlace(t)
	for _, c := range checkedElsewhere {
		args := documented(c, "")
		if args[0] != "up" && tools[args[0]] != nil {
			args = args[:1]
		}
		if code, _, errs := p.run(t, append(args, "--help")...); code != 0 {
			t.Errorf("%s --help: status %d, %s", c, code, errs)
		}
	}
	p.up(t)
	_, out, _ := p.run(t, "mst", "status")
	device := regexp.MustCompile(`mt\d+_pciconf0`).FindString(out)
	for _, c := range checks {
		code, out, errs := p.run(t, documented(c.command, device)...)
		if code != c.status || !strings.Contains(out+errs, c.says) {
			t.Errorf("%s: status %d, %s%s; want %d and %q", c.command, code, out, errs, c.status, c.says)
		}
	}
}
