package cmdlets

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// TestHyperV: a switch of an adapter is the one in its port, adapters of machines are virtual functions there, and commands find them
// by machine, name and the pipe.
func TestHyperV(t *testing.T) {
	f := newFake(t, "Ethernet 4", "Ethernet 5")
	for _, c := range []struct{ script, did, out, said string }{
		{"New-VMSwitch s -NetAdapterName 'Ethernet 4' -EnableIov $true | % Name", `record VMSwitch\s (NetAdapterName=Ethernet 4)`, "s\n", ""},
		{"New-VMSwitch other -NetAdapterName 'Ethernet 4' -WarningAction Ignore", "", "", `has a name, "s"`},
		{"New-VMSwitch S -NetAdapterName 'Ethernet 5' -WarningAction Ignore", "", "", `there is a switch "S"`},
		{"New-VMSwitch t -NetAdapterName 'Ethernet 5' -WhatIf", "", "", "What if"},
		{"New-VMSwitch t -SwitchType Private", "", "", "virtual switches without an adapter, by command: not in yet"},
		{"New-VMSwitch t -NetAdapterName 'Ethernet 4', 'Ethernet 5'", "", "", "teams of adapters below a virtual switch (SET): not in yet"},
		{"New-VMSwitch t", "", "", "-NetAdapterName is missing"},
		{"Add-VMNetworkAdapter -VMName red -SwitchName s", `Ethernet 4: virtual function red; record VMNetworkAdapter\red (Name=Network Adapter, VMName=red)`, "", ""},
		{"Add-VMNetworkAdapter -VMName red -SwitchName s -Name second -StaticMacAddress 00-15-5D-00-00-01 -Passthru | % { \"$($_.Function) $($_.MacAddress)\" }",
			`Ethernet 4: virtual function red-2 mac=00:15:5d:00:00:01; record VMNetworkAdapter\red-2 (Name=second, VMName=red)`, "red-2 00155D000001\n", ""},
		{"Add-VMNetworkAdapter -ManagementOS -SwitchName s -Name 'a host''s own'", `Ethernet 4: virtual function a-host-s-own; record VMNetworkAdapter\a-host-s-own (Name=a host's own, VMName=)`, "", ""},
		{"Add-VMNetworkAdapter -VMName blue -SwitchName none", "", "", `there is no switch "none" in an adapter's port; allowed: s`},
		{"Add-VMNetworkAdapter -SwitchName s", "", "", "allowed: either -VMName NAME or -ManagementOS"},
		{"Add-VMNetworkAdapter -VMName blue -SwitchName s -StaticMacAddress 12", "", "", `-StaticMacAddress is "12"; allowed: 12 hexadecimal digits`},
		{"Get-VMNetworkAdapter red | % Name", "", "Network Adapter\nsecond\n", ""},
		{"Get-VMNetworkAdapter -ManagementOS | % { \"$($_.Name) at $($_.SwitchName)\" }", "", "a host's own at s\n", ""},
		{"Get-VMNetworkAdapter blue", "", "", `no adapter here is of a virtual machine "blue"`},
		{"Get-VMNetworkAdapter red | ? MacAddress -eq 00155D000001 | Set-VMNetworkAdapter -MaximumBandwidth 1500000001 -MacAddressSpoofing $true", "", "", "are checked always"},
		{"Get-VMNetworkAdapter red | ? MacAddress -eq 00155D000001 | Set-VMNetworkAdapter -MaximumBandwidth 1500000001 -MacAddressSpoofing $false",
			"virtual function red-2: max=1501", "", ""},
		{"Set-VMNetworkAdapter -Function red-2 -MaximumBandwidth 0; 'red' | Set-VMNetworkAdapter -MaximumBandwidth 1000000",
			"virtual function red-2: max=0; virtual function red: max=1", "", ""},
		{"Set-VMNetworkAdapter -VMNetworkAdapter red -MaximumBandwidth 0", "", "", "allowed: what Get-VMNetworkAdapter returns"},
		{"$a = Get-VMNetworkAdapter red -Name second; Set-VMNetworkAdapter -VMNetworkAdapter $a -MaximumBandwidth 2000000", "virtual function red-2: max=2", "", ""},
		{"Set-VMNetworkAdapter red -StaticMacAddress 00155D000009 -Name second", "virtual function red-2: mac=00:15:5d:00:00:09", "", ""},
		{"Set-VMNetworkAdapter red -VmqWeight 100 -MaximumBandwidth 1000000", "", "", "virtual machine queues (VMQ): not in yet; nothing is changed"},
		{"Set-VMNetworkAdapter red", "", "", "what to set is missing"},
		{"Set-VMNetworkAdapter -MaximumBandwidth 0", "", "", "which adapters is missing"},
		{"Set-VMNetworkAdapterVlan red -Access -VlanId 100", "virtual function red: vlan=100 vlans=none; virtual function red-2: vlan=100 vlans=none", "", ""},
		{"Set-VMNetworkAdapterVlan red -Name second -Trunk -AllowedVlanIdList '1-100,200' -NativeVlanId 0", "virtual function red-2: vlan=0 vlans=1-100+200", "", ""},
		{"Set-VMNetworkAdapterVlan red -Untagged -WhatIf", "", "", "What if"},
		{"Set-VMNetworkAdapterVlan red -Access", "", "", "parameter -VlanId; allowed: with -Access"},
		{"Set-VMNetworkAdapterVlan red -Access -Trunk -VlanId 5", "", "", "allowed: one of -Untagged, -Access, -Trunk"},
		{"Set-VMNetworkAdapterRdma red -RdmaWeight 0", "", "", "virtual functions without RDMA (RdmaWeight): not in yet"},
		{"Connect-VMNetworkAdapter red -SwitchName s", "", "", ""},
		{"Connect-VMNetworkAdapter red -SwitchName t", "", "", "virtual functions that move to another switch: not in yet"},
		{"Get-VMSwitch | % { \"$($_.Name) $($_.NetAdapterInterfaceDescription) $($_.Ports)\" }", "", "s Ethernet 4 4\n", ""},
		{"Remove-VMNetworkAdapter red -Name second", `no virtual function red-2; no record VMNetworkAdapter\red-2`, "", ""},
		{"Remove-VMSwitch s", `no virtual function red; no record VMNetworkAdapter\red; no virtual function a-host-s-own; no record VMNetworkAdapter\a-host-s-own; no record VMSwitch\s`, "", ""},
		{"Remove-VMSwitch s", "", "", `there is no switch "s"`},
	} {
		f.did = nil
		out, said, failures := play(t, f, c.script)
		if strings.Join(f.did, "; ") != c.did || out != c.out || !strings.Contains(said, c.said) || c.said == "" && (said != "" || failures > 0) {
			t.Errorf("%s\n  did  %q\n  want %q\n  prints %q, want %q\n  says %q, want %q", c.script, f.did, c.did, out, c.out, said, c.said)
		}
	}
}

// TestVMHost: virtual functions are granted if an adapter's configuration grants them, and otherwise each says why not.
func TestVMHost(t *testing.T) {
	f := newFake(t, "a", "b")
	const script = "(Get-VMHost).IovSupport; (Get-VMHost).IovSupportReasons"
	if out, _, _ := play(t, f, script); out != "False\na: SRIOV_EN is 0\nb: SRIOV_EN is 0\n" {
		t.Errorf("none is granted: %q", out)
	}
	f.adapters[0].SRIOV = &api.SRIOVStatus{Support: "Supported", Granted: 2}
	if out, _, _ := play(t, f, script); out != "True\nOK\n" {
		t.Errorf("some are granted: %q", out)
	}
}

// TestSubnetManagerService: the service OpenSM is answered for if a subnet manager is at work, and refused otherwise; others are refused.
func TestSubnetManagerService(t *testing.T) {
	f := newFake(t, "a")
	if _, said, n := play(t, f, "Start-Service OpenSM"); n != 1 || !strings.Contains(said, `there is no service "OpenSM"`) {
		t.Errorf("no InfiniBand: %d failed, %s", n, said)
	}
	f.adapters[0].InfiniBand = &api.InfiniBandStatus{LID: 2, SMLID: 3}
	if _, said, n := play(t, f, "Start-Service OpenSM"); n != 0 || !strings.Contains(said, "at work already, at LID 3") {
		t.Errorf("one is at work: %d failed, %s", n, said)
	}
	if _, _, n := play(t, f, "Start-Service Spooler"); n != 1 {
		t.Error("any service is answered for")
	}
}
