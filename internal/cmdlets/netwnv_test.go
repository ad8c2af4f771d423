package cmdlets

import (
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// TestNetVirtualization: the script of the manual's appendix (WinOF-2 1.21, A.1) ends with the records, the route, the provider address and
// its route as it says, sending NVGRE, and both machines' adapters in the virtual subnet; what it shows can be removed again.
func TestNetVirtualization(t *testing.T) {
	var script strings.Builder
	for _, l := range readLines(t) {
		if l.manual == "WinOF-2 1.21" && strings.HasPrefix(l.section, "Appendix A") && !strings.Contains(l.text, "mtlae15-") &&
			!strings.Contains(script.String(), l.text) && !strings.Contains(l.text, "-ProviderAddress 192.168.20.115 -") {
			script.WriteString(l.text + "\n")
		}
	}
	f := newFake(t, "Port1")
	_, said, failures := play(t, f, script.String())
	if failures != 0 {
		t.Fatalf("%d failed:\n%s\n%s", failures, said, script.String())
	}
	var got []string
	for _, e := range f.subnets.Entries() {
		got = append(got, e.Kind+" "+strings.Join(e.Words(), " "))
	}
	want := []string{
		"record vsid=5001 customer=172.16.14.5 mac=00:15:5d:72:01:00 provider=192.168.20.114",
		"record vsid=5001 customer=172.16.14.6 mac=00:15:5d:72:01:01 provider=192.168.20.114",
		"route domain={11111111-2222-3333-4444-000000005001} vsid=5001 prefix=172.16.0.0/16 via=0.0.0.0 metric=255",
		"address adapter=Port1 address=192.168.20.114/24 encapsulation=nvgre",
		"provider-route adapter=Port1 prefix=0.0.0.0/0 via=192.168.20.1",
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("there is no %s in\n%s", w, strings.Join(got, "\n"))
		}
	}
	in := 0
	for _, a := range f.adapters[0].Functions {
		if a.VSID == 5001 {
			in++
		}
	}
	if in != 2 {
		t.Errorf("%d adapters are in the virtual subnet, want 2", in)
	}
	out, said, failures := play(t, f, `(Get-NetVirtualizationLookupRecord -MACAddress 00-15-5D-72-01-00).CustomerAddress
(Get-NetVirtualizationProviderAddress).PrefixLength
Remove-NetVirtualizationLookupRecord -VirtualSubnetID 5001
Remove-NetVirtualizationCustomerRoute
Remove-NetVirtualizationProviderAddress
Remove-NetVirtualizationProviderRoute
Get-NetVirtualizationLookupRecord`)
	if out != "172.16.14.5\n24\n" || failures != 0 || len(f.subnets.Entries()) != 0 {
		t.Errorf("it shows %q, says %q, and leaves %+v", out, said, []api.OverlayEntry(f.subnets.Entries()))
	}
}
