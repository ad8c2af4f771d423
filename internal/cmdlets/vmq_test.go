package cmdlets

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// TestVMQ: the queues of adapters are shown with whose they are, their filters, processors and counters, and the virtual ports of an
// adapter with those of virtual functions; enabling says what it does not bring about without a virtual switch (WinOF 5.50, 6.6).
func TestVMQ(t *testing.T) {
	f := newFake(t, "Ethernet 4", "Ethernet 5")
	f.adapters[0].VMQ = &api.VMQStatus{Enabled: true, Offers: "VMQ", Queues: 127, UsedQueues: 2,
		Default: api.QueueCounters{Packets: 9, Dropped: 4}}
	f.adapters[0].Ethernet.Rings = make([]api.RingStatus, 2)
	set := func(name string, q *api.QueueStatus, processor int) {
		for i := range f.adapters[0].Functions {
			if v := &f.adapters[0].Functions[i]; v.Name == name {
				v.MAC, v.VMQ, v.Rings = "02:00:00:00:00:0"+name[:1], q, []api.RingStatus{{Processor: processor}}
			}
		}
	}
	play(t, f, `Enable-NetAdapterVmq "Ethernet 4"`) // so that only what it says the next time counts
	for _, c := range []struct{ script, out, said string }{
		{`Enable-NetAdapterVmq "Ethernet 5"`, "", "no virtual switch without SR-IOV is over"},
		{`Disable-NetAdapterVmq "Ethernet 5"; Get-NetAdapterVmq | % { "$($_.Name) $($_.Enabled) $($_.Offers)" }`,
			"Ethernet 4 True VMQ\nEthernet 5 False \n", ""},
		{"New-VMSwitch s -NetAdapterName 'Ethernet 4' | % Name; Enable-NetAdapterVmq 'Ethernet 4'", "s\n", ""},
		{"'a','b' | % { Add-VMNetworkAdapter -VMName $_ -SwitchName s }; Add-VMNetworkAdapter -ManagementOS -SwitchName s -Name c", "", ""},
		{"Set-VMNetworkAdapter a -VmqWeight 0; Get-VMNetworkAdapter | % { \"$($_.Function) $($_.VmqWeight)\" }", "a 0\nb 100\nc 100\n", ""},
	} {
		out, said, _ := play(t, f, c.script)
		if out != c.out || !strings.Contains(said, c.said) || c.said == "" && said != "" {
			t.Errorf("%s\n  prints %q, want %q\n  says %q", c.script, out, c.out, said)
		}
	}
	set("a", &api.QueueStatus{Why: "VmqWeight is 0"}, 3)
	set("b", &api.QueueStatus{Number: 1, Filters: []api.QueueFilter{{VLAN: 7}}, QueueCounters: api.QueueCounters{Packets: 5, Bytes: 500}}, 0)
	set("c", &api.QueueStatus{Number: 2, Filters: []api.QueueFilter{{AnyVLAN: true}}}, 65)
	for _, c := range []struct{ script, out string }{
		{`Get-NetAdapterVmqQueue | % { "$($_.QueueID) $($_.MacAddress) $($_.VlanID) $($_.Processor) $($_.VmFriendlyName) $($_.Packets) $($_.Dropped)" }`,
			"0 02-00-00-00-00-01  0:3  9 4\n1 02-00-00-00-00-0B 7 0:0 b 5 0\n2 02-00-00-00-00-0C  1:1 c 0 0\n"},
		{`Get-NetAdapterVmqQueue "Ethernet 4" -Id 1 | % Bytes; Get-NetAdapterVmqQueue "Ethernet 5"`, "500\n"},
		{`Get-NetAdapterVPort | % { "$($_.ID) $($_.MacAddress) $($_.FID) $($_.State) $($_.QPairs)" }`,
			"0 02-00-00-00-00-01 PF Activated 2\n1 02-00-00-00-00-0A PF Activated 1\n2 02-00-00-00-00-0B PF Activated 1\n" +
				"3 02-00-00-00-00-0C PF Activated 1\n"},
		{`Get-VMNetworkAdapter | % VmqUsage`, "0\n1\n1\n"},
	} {
		if out, said, failures := play(t, f, c.script); out != c.out || said != "" || failures > 0 {
			t.Errorf("%s\n  prints %q\n  want   %q\n  says %q", c.script, out, c.out, said)
		}
	}
}
