package cmdlets

import (
	"slices"
	"strings"
	"testing"
)

// TestAddresses: commands work on the network interface of an adapter, and refuse adapters that have none.
func TestAddresses(t *testing.T) {
	f := newFake(t, "Ethernet 4", "Ethernet 5")
	f.adapters[1].Ethernet = nil
	_, said, failures := play(t, f, `New-NetIPAddress 192.168.1.10 -InterfaceAlias "Ethernet 4" -PrefixLength 24 -DefaultGateway 192.168.1.1
New-NetRoute 10.0.0.0/8 -InterfaceAlias "Ethernet 4" -NextHop 192.168.1.2
Remove-NetRoute 10.0.0.0/8
Remove-NetIPAddress 192.168.1.10`)
	want := []string{"nic0: address 192.168.1.10/24", "nic0: route 0.0.0.0/0 by 192.168.1.1", "nic0: route 10.0.0.0/8 by 192.168.1.2",
		"nic0: no route 10.0.0.0/8 by 192.168.1.2", "nic0: no address 192.168.1.10/24"}
	if failures > 0 || !slices.Equal(f.did, want) {
		t.Errorf("%d %s: %q", failures, said, f.did)
	}
	for script, want := range map[string]string{
		`New-NetIPAddress 192.168.1.10 -InterfaceAlias "Ethernet 5"`:                    `"Ethernet 5" has no network interface of the system`,
		`New-NetIPAddress 192.168.1.10`:                                                 "-InterfaceAlias is missing",
		`New-NetIPAddress 192.168.1 -InterfaceAlias "Ethernet 4"`:                       "an IPv4 or IPv6 address",
		`New-NetIPAddress 10.0.0.1 -InterfaceAlias "Ethernet 4" -PrefixLength 40`:       "0 to 32",
		`New-NetRoute 10.0.0.0 -InterfaceAlias "Ethernet 4"`:                            "a prefix such as",
		`New-NetRoute 10.0.0.0/8 -InterfaceAlias "Ethernet 4" -NextHop fd00::1`:         "an address of the same family",
		`New-NetIPAddress 10.0.0.1 -InterfaceIndex 9`:                                   "ifIndex of Get-NetAdapter",
		`Set-NetIPInterface -InterfaceAlias "Ethernet 4" -Dhcp Enabled`:                 "a DHCP client: not in yet",
		`Remove-NetIPAddress 10.9.9.9 -InterfaceAlias "Ethernet 4"`:                     "no address matches",
		`New-NetVirtualizationProviderAddress -ProviderAddress x -InterfaceIndex 1`:     "an IPv4 or IPv6 address",
		`New-NetVirtualizationProviderAddress -ProviderAddress 10.0.0.1 -ifIndex 9`:     "1 (Ethernet 4), 2 (Ethernet 5)",
		`New-NetVirtualizationLookupRecord 1.2.3.4 5001`:                                "no parameter takes",
		`New-NetVirtualizationLookupRecord -CustomerAddress 1.2.3.4 -VirtualSubnetID 9`: "4096 to 16777214",
	} {
		f.did = nil
		if _, said, failures := play(t, f, script); failures != 1 || !strings.Contains(said, want) || len(f.did) > 0 {
			t.Errorf("%s: %d %s %q", script, failures, said, f.did)
		}
	}
}
