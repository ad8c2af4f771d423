package cmdlets

import (
	"slices"
	"strings"
	"testing"
)

// lossless is the start-up script of "Configuring Windows Host" for lossless RoCE (WinOF 5.50, 4.1.9.2; WinOF-2 1.21, 3.1.9).
const lossless = `Remove-NetQosTrafficClass
Remove-NetQosPolicy -Confirm:$False
set-NetQosDcbxSetting -Willing 0
New-NetQosPolicy "SMB" -Policystore Activestore -NetDirectPortMatchCondition 445 -PriorityValue8021Action 3
New-NetQosPolicy "DEFAULT" -Policystore Activestore -Default -PriorityValue8021Action 3
New-NetQosPolicy "TCP" -Policystore Activestore -IPProtocolMatchCondition TCP -PriorityValue8021Action 1
New-NetQosPolicy "UDP" -Policystore Activestore -IPProtocolMatchCondition UDP -PriorityValue8021Action 1
Disable-NetQosFlowControl 0,1,2,4,5,6,7
Enable-NetAdapterQos -InterfaceAlias "port1"
Enable-NetAdapterQos -InterfaceAlias "port2"
Enable-NetQosFlowControl -Priority 3
New-NetQosTrafficClass -name "SMB class" -priority 3 -bandwidthPercentage 50 -Algorithm ETS
`

// TestLossless: the script ends in the state that the manual says, on each adapter, and leaves it so when it runs again.
func TestLossless(t *testing.T) {
	f := newFake(t, "port1", "port2")
	for range 2 {
		if _, said, failures := play(t, f, lossless); failures > 0 || said != "" {
			t.Fatalf("%d failed: %s", failures, said)
		}
		for _, a := range []string{"port1", "port2"} {
			q := f.qos(a)
			if q.Own.Willing || q.Own.PFC != "3" || q.Own.PrioTC != "3:1" || q.Own.TCBandwidth != "0:50,1:50" || len(q.Policies) != 4 {
				t.Errorf("%s: %+v, policies %v", a, q.Own, q.Policies)
			}
		}
	}
	out, _, _ := play(t, f, "Get-NetQosTrafficClass; (Get-NetQosFlowControl | ? Enabled).Priority; (Get-NetQosPolicy -PolicyStore ActiveStore).Name")
	for _, want := range []string{"[Default] ETS                        50 0-2,4-7", "SMB class ETS                        50 3", "\n3\n", "DEFAULT\nSMB\nTCP\nUDP\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestWhatIf: nothing is changed, and each change is said.
func TestWhatIf(t *testing.T) {
	f := newFake(t, "port1", "port2")
	script := "$WhatIfPreference = $true\n" + lossless + `Disable-NetAdapter port1
Set-NetAdapterAdvancedProperty port1 -RegistryKeyword VlanID -RegistryValue 55
Disable-NetAdapterRdma port1`
	_, said, failures := play(t, f, script)
	if failures > 0 || len(f.did) > 0 || strings.Count(said, "What if: ") < 12 {
		t.Errorf("%d failed, did %q, said %s", failures, f.did, said)
	}
}

// TestPolicies: a policy is in one store or in both, and one that exists is not made again.
func TestPolicies(t *testing.T) {
	f := newFake(t, "Ethernet 4")
	_, said, failures := play(t, f, `New-NetQosPolicy SMB -NetDirectPort 445 -Priority 3 -PolicyStore ActiveStore
New-NetQosPolicy SMB -NetDirectPort 445 -Priority 4
New-NetQosPolicy smb -NetDirectPort 445 -Priority 4`)
	if failures != 1 || !strings.Contains(said, `policy "smb" exists in store localhost; Set-NetQosPolicy changes it`) {
		t.Errorf("%d failed: %s", failures, said)
	}
	play(t, f, "Remove-NetQosPolicy SMB -PolicyStore ActiveStore -Confirm:$false")
	if q := f.qos("Ethernet 4"); len(q.Policies) != 1 || q.Policies[0].Policy != "netdirect=445,priority=4" {
		t.Errorf("removed from one store: %v", q.Policies)
	}
	play(t, f, "Set-NetQosPolicy SMB -DSCPAction 26; Get-NetQosPolicy | Set-NetQosPolicy -Priority 5")
	if q := f.qos("Ethernet 4"); q.Policies[0].Policy != "netdirect=445,priority=5,dscp=26" {
		t.Errorf("set: %v", q.Policies)
	}
	if _, said, failures := play(t, f, "1 | Remove-NetQosPolicy"); failures != 1 || !strings.Contains(said, "takes nothing of a value of System.Int64") {
		t.Errorf("a number from the pipe: %d %s", failures, said)
	}
	if _, said, failures := play(t, f, "Remove-NetQosPolicy $unset"); failures != 1 || !strings.Contains(said, "-Name is nothing ($null)") {
		t.Errorf("an unset variable: %d %s", failures, said)
	}
	if q := f.qos("Ethernet 4"); len(q.Policies) != 1 {
		t.Errorf("a number from the pipe removed: %v", q.Policies)
	}
	play(t, f, "Get-NetQosPolicy S* | Remove-NetQosPolicy")
	if q := f.qos("Ethernet 4"); len(q.Policies) != 0 {
		t.Errorf("removed: %v", q.Policies)
	}
}

// TestTrafficClasses: classes share what is left by the default one; names, priorities and shares that collide are refused.
func TestTrafficClasses(t *testing.T) {
	f := newFake(t, "Ethernet 4")
	_, said, failures := play(t, f, `New-NetQosTrafficClass TCP1 -Priority 3 -BandwidthPercentage 16 -Algorithm ETS
New-NetQosTrafficClass TCP2 -Priority 5 -BandwidthPercentage 80 -Algorithm ETS
New-NetQosTrafficClass High -Priority 6,7 -Algorithm Strict
Set-NetQosTrafficClass TCP1 -BandwidthPercentage 10`)
	if q := f.qos("Ethernet 4"); failures > 0 || q.Own.PrioTC != "3:1,5:2,6:3,7:3" || q.Own.TCBandwidth != "0:10,1:10,2:80" {
		t.Errorf("%d %s: %+v", failures, said, q.Own)
	}
	for script, want := range map[string]string{
		"New-NetQosTrafficClass X -Priority 3 -Bandwidth 5 -Algorithm ETS":  "priority 3 is in another traffic class",
		"New-NetQosTrafficClass X -Priority 1 -Bandwidth 50 -Algorithm ETS": "the classes would have 140 % of the bandwidth",
		"New-NetQosTrafficClass X -Priority 1 -Algorithm ETS":               "-BandwidthPercentage of class X is missing",
		"New-NetQosTrafficClass TCP1 -Priority 1 -Algorithm Strict":         `traffic class "TCP1" exists`,
		"Set-NetQosTrafficClass Y -Algorithm Strict":                        `parameter -Name is "Y"; allowed: TCP1, TCP2, High`,
		"Remove-NetQosTrafficClass Y":                                       `parameter -Name is "Y"`,
	} {
		before := slices.Clone(f.did)
		if _, said, failures := play(t, f, script); failures != 1 || !strings.Contains(said, want) || !slices.Equal(before, f.did) {
			t.Errorf("%s: %d %s", script, failures, said)
		}
	}
	play(t, f, "Remove-NetQosTrafficClass TCP1")
	if q := f.qos("Ethernet 4"); q.Own.PrioTC != "5:2,6:3,7:3" || q.Own.TCBandwidth != "0:20,2:80" {
		t.Errorf("one removed: %+v", q.Own)
	}
	play(t, f, "Remove-NetQosTrafficClass")
	if q := f.qos("Ethernet 4"); q.Own.PrioTC != "none" || q.Own.TCBandwidth != "0:100" {
		t.Errorf("all removed: %+v", q.Own)
	}
}

// TestProperties: keys are set by name or title, adapters restart if they have to, and what is wrong is refused with what is allowed.
func TestProperties(t *testing.T) {
	f := newFake(t, "Ethernet 4", "Ethernet 5")
	for _, c := range []struct {
		script string
		did    []string
	}{
		{`Set-NetAdapterAdvancedProperty -Name "Ethernet 4" -RegistryKeyword "VlanID" -RegistryValue "55"`, []string{"Ethernet 4: VlanId=55"}},
		{`Set-NetAdapterAdvancedProperty "Ethernet 4" -DisplayName "Receive Side Scaling" -DisplayValue disable -NoRestart`, []string{"Ethernet 4: *RSS=0"}},
		{`Disable-NetAdapterLso * -IPv6`, []string{"Ethernet 4: *LsoV2IPv6=0", "Ethernet 5: *LsoV2IPv6=0"}},
		{`Set-NetAdapterRss "Ethernet 5" -NumberOfReceiveQueues 4 -NoRestart`, []string{"Ethernet 5: *NumRSSQueues=4"}},
		{`Reset-NetAdapterAdvancedProperty "Ethernet 4" -DisplayName "VLAN*" -NoRestart`, []string{"Ethernet 4: VlanId=default"}},
		{`Get-NetAdapter *5 | Disable-NetAdapter`, []string{"Ethernet 5: disable"}},
		{`Restart-NetAdapter "ethernet 4"`, []string{"Ethernet 4: restart"}},
	} {
		f.did = nil
		_, said, failures := play(t, f, c.script)
		did := slices.DeleteFunc(slices.Clone(f.did), func(s string) bool { return strings.HasSuffix(s, "restart") && !slices.Contains(c.did, s) })
		if failures > 0 || !slices.Equal(did, c.did) {
			t.Errorf("%s: did %q, want %q; %s", c.script, f.did, c.did, said)
		}
	}
	for script, want := range map[string]string{
		`Set-NetAdapterAdvancedProperty "Ethernet 4" -RegistryKeyword VlanID -RegistryValue 5000`:             "0 to 4095",
		`Set-NetAdapterAdvancedProperty "Ethernet 4" -RegistryKeyword Nothing -RegistryValue 1`:               `-RegistryKeyword is "Nothing"`,
		`Set-NetAdapterAdvancedProperty "Ethernet 4" -DisplayName "Receive Side Scaling" -DisplayValue maybe`: "allowed: disable, enable",
		`Set-NetAdapterAdvancedProperty "Ethernet 9" -RegistryKeyword VlanID -RegistryValue 5`:                `allowed: "Ethernet 4", "Ethernet 5"`,
		`Rename-NetAdapter "Ethernet 4" -NewName x`:                                                           "names of adapters are in the driver's configuration",
	} {
		if _, said, failures := play(t, f, script); failures != 1 || !strings.Contains(said, want) {
			t.Errorf("%s: %d %s", script, failures, said)
		}
	}
}
