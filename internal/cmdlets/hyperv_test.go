package cmdlets

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// TestHyperV: switches are over adapters, adapters of machines and the host are functions there, and commands find them by machine, name
// and the pipe.
func TestHyperV(t *testing.T) {
	f := newFake(t, "Ethernet 4", "Ethernet 5")
	for _, c := range []struct{ script, did, out, said string }{
		{"New-VMSwitch s -NetAdapterName 'Ethernet 4' -EnableIov $true | % Name", "Ethernet 4: virtual switch s with SR-IOV", "s\n", ""},
		{"New-VMSwitch other -NetAdapterName 'Ethernet 4' -WarningAction Ignore", "", "", `there is a switch over "Ethernet 4", "s"`},
		{"New-VMSwitch S -NetAdapterName 'Ethernet 5' -WarningAction Ignore", "", "", `there is a switch "S"`},
		{"New-VMSwitch t -NetAdapterName 'Ethernet 5' -WhatIf", "", "", "What if"},
		{"New-VMSwitch t -SwitchType Private", "", "", "virtual switches without an adapter, by command: not in yet"},
		{"New-VMSwitch t -NetAdapterName 'Ethernet 4', 'Ethernet 5'", "", "", "teams of adapters below a virtual switch (SET): not in yet"},
		{"New-VMSwitch t", "", "", "-NetAdapterName is missing"},
		{"Add-VMNetworkAdapter -VMName red -SwitchName s", "s: adapter red (name=Network Adapter, machine=red)", "", ""},
		{"Add-VMNetworkAdapter -VMName red -SwitchName s -Name second -StaticMacAddress 00-15-5D-00-00-01 -Passthru | % { \"$($_.Function) $($_.MacAddress)\" }",
			"s: adapter red-2 (name=second, machine=red, mac=00:15:5d:00:00:01)", "red-2 00155D000001\n", ""},
		{"Add-VMNetworkAdapter -ManagementOS -SwitchName s -Name 'a host''s own'", "s: adapter a-host-s-own (name=a host's own, rdma=off)", "", ""},
		{"Add-VMNetworkAdapter -VMName blue -SwitchName none", "", "", `there is no switch "none" over an adapter; allowed: s`},
		{"Add-VMNetworkAdapter -SwitchName s", "", "", "allowed: either -VMName NAME or -ManagementOS"},
		{"Add-VMNetworkAdapter -VMName blue -SwitchName s -StaticMacAddress 12", "", "", `-StaticMacAddress is "12"; allowed: 12 hexadecimal digits`},
		{"Get-VMNetworkAdapter red | % Name", "", "Network Adapter\nsecond\n", ""},
		{"Get-VMNetworkAdapter -ManagementOS | % { \"$($_.Name) at $($_.SwitchName)\" }", "", "a host's own at s\n", ""},
		{"Get-VMNetworkAdapter blue", "", "", `no adapter here is of a virtual machine "blue"`},
		{"Get-VMNetworkAdapter red | ? MacAddress -eq 00155D000001 | Set-VMNetworkAdapter -MaximumBandwidth 1500000001 -MacAddressSpoofing $true", "", "", "are checked always"},
		{"Get-VMNetworkAdapter red | ? MacAddress -eq 00155D000001 | Set-VMNetworkAdapter -MaximumBandwidth 1500000001 -MacAddressSpoofing $false",
			"s: adapter red-2: max=1501", "", ""},
		{"Set-VMNetworkAdapter -Function red-2 -MaximumBandwidth 0; 'red' | Set-VMNetworkAdapter -MaximumBandwidth 1000000",
			"s: adapter red-2: max=0; s: adapter red: max=1", "", ""},
		{"Set-VMNetworkAdapter -VMNetworkAdapter red -MaximumBandwidth 0", "", "", "allowed: what Get-VMNetworkAdapter returns"},
		{"$a = Get-VMNetworkAdapter red -Name second; Set-VMNetworkAdapter -VMNetworkAdapter $a -MaximumBandwidth 2000000", "s: adapter red-2: max=2", "", ""},
		{"Set-VMNetworkAdapter red -StaticMacAddress 00155D000009 -Name second", "s: adapter red-2: mac=00:15:5d:00:00:09", "", ""},
		{"Set-VMNetworkAdapter red -Name second -VmqWeight 0 -MaximumBandwidth 1000000; Get-VMNetworkAdapter red | % VmqWeight",
			"s: adapter red-2: vmq=0 max=1", "100\n0\n", ""},
		{"Set-VMNetworkAdapter red -VmqWeight 101", "", "", "0 to 100"},
		{"Set-VMNetworkAdapter red -Name second -VmmqEnabled $false -VmmqQueuePairs 4", "s: adapter red-2: vmmq=off queues=4", "", ""},
		{"Set-VMNetworkAdapter red -Name second -IovQueuePairsRequested 8; Get-VMNetworkAdapter red | % VmmqEnabled", "s: adapter red-2: queues=8", "True\nFalse\n", ""},
		{"Set-VMNetworkAdapter red -IovQueuePairsRequested 8 -VmmqQueuePairs 4", "", "", "both are the queues"},
		{"Set-VMNetworkAdapter red -IovQueuePairsRequested 65", "", "", "1 to 64"},
		{"Set-VMNetworkAdapter red", "", "", "what to set is missing"},
		{"Set-VMNetworkAdapter -MaximumBandwidth 0", "", "", "which adapters is missing"},
		{"Set-VMNetworkAdapterVlan red -Access -VlanId 100", "s: adapter red: vlan=100 vlans=none; s: adapter red-2: vlan=100 vlans=none", "", ""},
		{"Set-VMNetworkAdapterVlan red -Name second -Trunk -AllowedVlanIdList '1-100,200' -NativeVlanId 0", "s: adapter red-2: vlan=0 vlans=1-100+200", "", ""},
		{"Set-VMNetworkAdapterVlan red -Untagged -WhatIf", "", "", "What if"},
		{"Set-VMNetworkAdapterVlan red -Access", "", "", "parameter -VlanId; allowed: with -Access"},
		{"Set-VMNetworkAdapterVlan red -Access -Trunk -VlanId 5", "", "", "allowed: one of -Untagged, -Access, -Trunk"},
		{"Set-VMNetworkAdapterRdma red -Name second -RdmaWeight 0", "s: adapter red-2: rdma=off", "", ""},
		{"Get-VMNetworkAdapterRdma red | % RdmaWeight", "", "100\n0\n", ""},
		{"Set-VMNetworkAdapter red -Name second -IovWeight 0", "s: adapter red-2: iov=0", "", ""},
		{"Set-VMNetworkAdapterRdma red -Name second -RdmaWeight 100", "s: adapter red-2: rdma=on", "", ""},
		{"Get-VMNetworkAdapterRdma red | % RdmaWeight", "", "100\n0\n", ""},
		{"Set-VMNetworkAdapter red -Name second -IovWeight 50; Get-VMNetworkAdapter red | % IovWeight", "s: adapter red-2: iov=50", "100\n50\n", ""},
		{"Get-VMNetworkAdapterRdma red | % RdmaWeight", "", "100\n100\n", ""},
		{"Get-NetAdapterRdma 'vEthernet*' | % { \"$($_.Name) $($_.Enabled)\" }", "", "vEthernet (a host's own) False\n", ""},
		{"Enable-NetAdapterRdma \"vEthernet (a host's own)\"", "s: adapter a-host-s-own: rdma=on", "", ""},
		{"Disable-NetAdapterRdma \"a host's own\" -WhatIf", "", "", "What if"},
		{"Get-NetAdapterRdma | % { \"$($_.Name) $($_.Enabled)\" }", "", "vEthernet (a host's own) True\nEthernet 4 True\nEthernet 5 True\n", ""},
		{"Enable-NetAdapterRdma none", "", "", "none"},
		{"Connect-VMNetworkAdapter red -SwitchName s", "", "", ""},
		{"Connect-VMNetworkAdapter red -SwitchName t", "", "", "network adapters that move to another switch: not in yet"},
		{"Get-VMSwitch | % { \"$($_.Name) $($_.NetAdapterInterfaceDescription) $($_.Ports)\" }", "", "s Ethernet 4 4\n", ""},
		{"Get-VM | % { \"$($_.Name) $($_.State) $($_.NetworkAdapters)\" }", "", "red Running 2\n", ""},
		{"Stop-VM -Name red -Force -WhatIf", "", "", "What if"},
		{"Stop-VM -Name RED -Force -Confirm -Passthru | % State", "s: adapter red: link=down; s: adapter red-2: link=down", "Off\n",
			`virtual machine "red" is not SoftVPI's to stop`},
		{"Get-VM r* | % State; Stop-VM red -WarningAction Ignore", "", "Off\n", ""},
		{"Set-VMNetworkAdapter red -Name second -MaximumBandwidth 3000000; Start-VM red -Passthru | % State",
			"s: adapter red-2: max=3; s: adapter red: link=auto; s: adapter red-2: link=auto", "Running\n", ""},
		{"Start-VM red; Get-VM red | Start-VM", "", "", ""},
		{"Stop-VM blue -Force", "", "", `no network adapter here is of a virtual machine "blue", so that nothing changes`},
		{"Stop-VM", "", "", "-Name"},
		{"Remove-VMNetworkAdapter red -Name second", "s: no adapter red-2", "", ""},
		{"Remove-VMSwitch s", "no virtual switch s", "", ""},
		{"Remove-VMSwitch s", "", "", `there is no switch "s"`},
	} {
		f.did = nil
		out, said, failures := play(t, f, c.script)
		if strings.Join(f.did, "; ") != c.did || out != c.out || !strings.Contains(said, c.said) || c.said == "" && (said != "" || failures > 0) {
			t.Errorf("%s\n  did  %q\n  want %q\n  prints %q, want %q\n  says %q, want %q", c.script, f.did, c.did, out, c.out, said, c.said)
		}
	}
}

// TestFilterPlatform: a switch has PacketDirect and the filter platform as it is told, by either name of that, and shows both (WinOF-2
// 24.4, Using PacketDirect for VM).
func TestFilterPlatform(t *testing.T) {
	f := newFake(t, "Ethernet 4", "Ethernet 5")
	for _, c := range []struct{ script, did, out, said string }{
		{"New-VMSwitch s -NetAdapterName 'Ethernet 4' -EnablePacketDirect $true -AllowManagementOS $true | % PacketDirectEnabled",
			"Ethernet 4: virtual switch s with PacketDirect", "True\n", ""},
		{"Get-VMSwitchExtension s | % { \"$($_.Name) $($_.Enabled)\" }", "", "Microsoft Azure VFP Switch Extension False\n", ""},
		{"Enable-VMSwitchExtension -VmSwitchName S -Name 'Windows Azure VFP Switch Extension' -WhatIf", "", "", "What if"},
		{"Enable-VMSwitchExtension -VmSwitchName S -Name 'Windows Azure VFP Switch Extension'", "virtual switch s: vfp=on", "", ""},
		{"Enable-VMSwitchExtension -VmSwitchName s -Name 'microsoft azure vfp switch extension'", "", "", ""},
		{"Get-VMSwitchExtension s | % { \"$($_.SwitchName) $($_.Enabled)\" }", "", "s True\n", ""},
		{"Enable-VMSwitchExtension -VmSwitchName s -Name other", "", "", `-Name is "other"; allowed: Microsoft Azure VFP Switch Extension, Windows`},
		{"Enable-VMSwitchExtension -VmSwitchName t -Name other", "", "", `there is no switch "t" over an adapter; allowed: s`},
		{"Disable-VMSwitchExtension -VmSwitchName s -Name 'Microsoft Azure VFP Switch Extension'", "virtual switch s: vfp=off", "", ""},
		{"Set-VMSwitch s -EnablePacketDirect $false; Get-VMSwitch s | % PacketDirectEnabled", "virtual switch s: packetdirect=off", "False\n", ""},
		{"Set-VMSwitch s -EnablePacketDirect $false", "", "", ""},
		{"Set-VMSwitch s", "", "", "allowed: -EnablePacketDirect"},
		{"Disable-NetAdapterPacketDirect 'Ethernet 4' -NoRestart; Get-NetAdapterPacketDirect 'Ethernet 4' | % Enabled", "Ethernet 4: *PacketDirect=0", "False\n", "takes effect"},
		{"Set-VMSwitch s -EnablePacketDirect $true", "", "", "packetdirect is on over Ethernet 4"},
		{"Set-NetAdapterPacketDirect 'Ethernet 4' -Enabled $true -NoRestart; Set-VMSwitch s -EnablePacketDirect $true",
			"Ethernet 4: *PacketDirect=1; virtual switch s: packetdirect=on", "", "takes effect"},
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
