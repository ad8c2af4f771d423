package cmdlets

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/powershell"
)

// line is a command line of a manual.
type line struct{ manual, section, text, outcome string }

// readLines returns the command lines of the manuals' PowerShell, from testdata/manuals.tsv: manual, section, the line as printed (with
// lines joined that the page has broken), and what comes of it here.
func readLines(t testing.TB) (out []line) {
	t.Helper()
	text, err := os.ReadFile("testdata/manuals.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimRight(l, "\n"), "\t")
		if len(f) != 4 {
			t.Fatalf("%q has %d fields", l, len(f))
		}
		out = append(out, line{f[0], f[1], f[2], f[3]})
	}
	return out
}

// placeholders are what somebody writes in place of what the manuals have in angle brackets.
var placeholders = strings.NewReplacer("<interface name>", `"Ethernet 4"`, "<EthInterfaceName>", `"Ethernet 4"`, "<AdapterName>", `"Ethernet 4"`,
	"<Required number of VFs>", "4", "<VM Name>", "vm1", "<VMName>", "vm1", "<VM name>", "vm1", "<vSwitchName>", "switch1", "<number>", "4",
	"<VMInterfaceIPAddress>", "172.16.14.5", "<VMInterfaceIPAddress2>", "172.16.14.6", "<VMInterfaceIPAddress/Mask>", "172.16.0.0/16",
	"<HypervisorInterfaceIPAddress>", "192.168.20.114", "<HypervisorInterfaceIPAddress2>", "192.168.20.115", "<virtualSubnetID>", "5001",
	"<VMmacaddress1>", `"00155D720100"`, "<VMmacaddress2>", `"00155D720101"`, "<VMMacAddress>", `"00155D720100"`,
	"<StaticMAC Address>", `"00155D720100"`, "<0 | 100>", "100", "-Enable/Disable", "-Enable")

// printedNames are the names of adapters in the manuals.
var printedNames = []string{"Port1", "port2", "CX4_P1", "Cx3Pro_ETH_P1", "Network Adapter", "Ethernet"}

// driverFor returns a driver with the adapters of a script: those of its names, or one.
func driverFor(t testing.TB, manual, script string) *fake {
	g := catalogue.MLX5
	if manual == "WinOF 5.50" {
		g = catalogue.MLX4
	}
	var names []string
	for _, n := range printedNames {
		if strings.Contains(strings.ToLower(script), `"`+strings.ToLower(n)+`"`) {
			names = append(names, n)
		}
	}
	if len(names) == 0 || strings.Contains(script, "Ethernet 4") || needsPorts.MatchString(script) {
		names = append(names, "Ethernet 4")
	}
	f := newFakeOf(t, g, names...)
	if strings.Contains(script, "OpenSM") { // the machine has InfiniBand, and the driver's subnet manager is at work
		f.adapters[0].InfiniBand, f.adapters[0].SRIOV = &api.InfiniBandStatus{LID: 2, SMLID: 1}, nil
	}
	return f
}

// takesAway are commands that need something to take away or to show, and filled what there is for them.
var takesAway = regexp.MustCompile(`(?i)^(Disable|Remove|Get)-Net(Qos|Virtualization|AdapterQos)|Willing 1`)

// needsSwitch are commands that need a virtual switch, and needsPorts those that need adapters of virtual machines, too.
var (
	needsSwitch = regexp.MustCompile(`(?i)VMNetworkAdapter|VMSwitchExtension`)
	needsPorts  = regexp.MustCompile(`(?i)(Get|Set)-VMNetworkAdapter`)
)

const switched = `New-VMSwitch switch1 -NetAdapterName "Ethernet 4" -EnableIov $true`

const ported = `
Add-VMNetworkAdapter -SwitchName switch1 -VMName vm1 -StaticMacAddress 00155D720100
Add-VMNetworkAdapter -SwitchName switch1 -VMName VMName -Name "Virtual Adapter Name"
Add-VMNetworkAdapter -SwitchName switch1 -VMName "VM Name" -Name "Virtual Adapter Name"
Add-VMNetworkAdapter -SwitchName switch1 -VMName mtlae14-005 -StaticMacAddress 00155D720100
Add-VMNetworkAdapter -SwitchName switch1 -VMName mtlae14-006 -StaticMacAddress 00155D720101
Add-VMNetworkAdapter -SwitchName switch1 -VMName mtlae15-005 -StaticMacAddress 00155D730100
Add-VMNetworkAdapter -SwitchName switch1 -VMName mtlae15-006 -StaticMacAddress 00155D730101`

const filled = `Enable-NetQosFlowControl 0,3,5
Set-NetQosDcbxSetting -Willing 0
New-NetQosPolicy SMB -NetDirectPort 445 -Priority 3
New-NetQosTrafficClass Storage -Priority 3 -Bandwidth 60 -Algorithm ETS
New-NetVirtualizationLookupRecord -CustomerAddress 172.16.14.5 -VirtualSubnetID 5001 -MACAddress 00155D720100 -ProviderAddress 192.168.20.114
New-NetVirtualizationCustomerRoute -RoutingDomainID "{11111111-2222-3333-4444-000000005001}" -VirtualSubnetID 5001 -DestinationPrefix 172.16.0.0/16
New-NetVirtualizationProviderAddress -ProviderAddress 192.168.20.114 -InterfaceIndex 1
New-NetVirtualizationProviderRoute -DestinationPrefix 0.0.0.0/0 -NextHop 192.168.20.1 -InterfaceIndex 1`

// outcome runs a script, and says in a line what came of it: what changed, what was refused or said, what was shown.
func outcome(t testing.TB, manual, script string) string {
	t.Helper()
	f := driverFor(t, manual, script)
	if takesAway.MatchString(script) {
		play(t, f, filled)
	}
	if needsSwitch.MatchString(script) {
		named := switched
		if strings.Contains(script, "VSwMLNX") {
			named = strings.Replace(switched, "switch1", "VSwMLNX", 1)
		}
		play(t, f, named)
	}
	if needsPorts.MatchString(script) {
		play(t, f, ported)
	}
	f.did = nil
	out, said, failures := play(t, f, script)
	var parts []string
	if len(f.did) > 0 {
		parts = append(parts, strings.Join(f.did, "; "))
	}
	for l := range strings.Lines(said) {
		parts = append(parts, strings.TrimSpace(l))
	}
	if failures > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failures))
	}
	if n := strings.Count(out, "\n"); n > 0 && len(f.did) == 0 {
		parts = append(parts, fmt.Sprintf("%d lines shown", n))
	}
	if len(parts) == 0 {
		return "nothing to change, nothing to show"
	}
	return strings.Join(parts, " | ")
}

// TestManuals: each PowerShell line of the manuals runs alone, and does what the table says.
func TestManuals(t *testing.T) {
	lines := readLines(t)
	var b strings.Builder
	for i := range lines {
		l := &lines[i]
		script := placeholders.Replace(l.text)
		if strings.Contains(script, "$NIC.") { // it stands behind a line that sets it
			script = `$NIC = Get-NetAdapter` + "\n" + script
		}
		if _, err := powershell.Parse(script); err != nil {
			t.Errorf("%s, %s: %s: %v", l.manual, l.section, l.text, err)
			continue
		}
		got := outcome(t, l.manual, script)
		if got != l.outcome && !*update {
			t.Errorf("%s, %s: %s\n  got  %s\n  want %s", l.manual, l.section, l.text, got, l.outcome)
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", l.manual, l.section, l.text, got)
	}
	if *update {
		if err := os.WriteFile("testdata/manuals.tsv", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManuals_WhatIf: with -WhatIf in force no line changes anything.
func TestManuals_WhatIf(t *testing.T) {
	for _, l := range readLines(t) {
		script := placeholders.Replace(l.text)
		if strings.Contains(strings.ToLower(script), "mlx5cmd") {
			continue // a program has no -WhatIf
		}
		f := driverFor(t, l.manual, script)
		play(t, f, "$WhatIfPreference = $true; $NIC = Get-NetAdapter | select -First 1\n"+script)
		if len(f.did) > 0 {
			t.Errorf("%s: did %q", script, f.did)
		}
	}
}

// TestManuals_Scripts: the lines of a section run one after the other as a script, and only such commands fail as the table says of
// them alone, or for what an earlier line of the section has done.
func TestManuals_Scripts(t *testing.T) {
	lines := readLines(t)
	for len(lines) > 0 {
		first := lines[0]
		n := slices.IndexFunc(lines, func(l line) bool { return l.section != first.section || l.manual != first.manual })
		if n < 0 {
			n = len(lines)
		}
		var script strings.Builder
		refused := 0
		for _, l := range lines[:n] {
			script.WriteString(placeholders.Replace(l.text) + "\n")
			if strings.Contains(l.outcome, " failed") {
				refused++
			}
		}
		lines = lines[n:]
		f := driverFor(t, first.manual, script.String())
		_, said, failures := play(t, f, script.String())
		again := strings.Count(said, " exists in store ") + strings.Count(said, "there is a record of ") + strings.Count(said, "there is a switch ") +
			strings.Count(said, "there is no switch ") + strings.Count(said, "there is no such adapter") + strings.Count(said, "no adapter here is of a virtual machine")
		if failures-again > refused {
			t.Errorf("%s, %s: %d failed, alone %d\n%s", first.manual, first.section, failures, refused, said)
		}
	}
}
