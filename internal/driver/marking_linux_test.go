package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/qos"
)

func init() {
	for _, key := range []string{"TxUntagPriorityTag", "DscpBasedEtsEnabled", "DscpBasedpfcEnabled", "DscpForGlobalFlowControl"} {
		acting[key] = TestMarkingKeys
	}
	for _, p := range "01234567" {
		acting["PriorityToDscpMappingTable_"+string(p)] = TestMarkingKeys
	}
}

// marked returns how an adapter marks RDMA packets of a priority.
func marked(d *Driver, sl, class uint8) qos.Mark {
	m := d.host.Overview().Adapters[0].Priorities.Marking
	return m.RDMA(qos.RoCE{Port: 4791}, 0, sl, class, false)
}

// TestMarkingKeys: the keys of DSCP act from the next restart on (WinOF-2 Ethernet b, DSCP: Registry Settings). That packets leave so is
// tested in package device.
func TestMarkingKeys(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	check := func(when string, sl, class uint8, want qos.Mark) {
		t.Helper()
		if got := marked(d, sl, class); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	check("by default", 3, 0, qos.Mark{Priority: 3, Tagged: true})
	for p := range "01234567" {
		set(t, d, "left", "PriorityToDscpMappingTable_"+string(rune('0'+p)), []string{"1", "9", "17", "25", "33", "41", "49", "57"}[p])
	}
	set(t, d, "left", "DscpBasedpfcEnabled", "1")
	set(t, d, "left", "TxUntagPriorityTag", "1")
	set(t, d, "left", "DscpBasedEtsEnabled", "1")
	check("before a restart", 3, 0, qos.Mark{Priority: 3, Tagged: true})
	restart(t, d, "left")
	for sl := range uint8(8) {
		check("after it", sl, 1, qos.Mark{Priority: sl, Class: (8*sl+1)<<2 | 1})
	}
	set(t, d, "left", "DscpForGlobalFlowControl", "30")
	set(t, d, "left", "*FlowControl", "3")
	restart(t, d, "left")
	check("with global pause", 3, 0, qos.Mark{Priority: 3, Class: 30 << 2})
	check("a program's DSCP", 0, 46<<2, qos.Mark{Priority: 5, Class: 46 << 2})
}

// TestPolicies: policies are kept over restarts, act at once, and one that makes no sense changes nothing.
func TestPolicies(t *testing.T) {
	c := quiet(t)
	d := start(t, c)
	do := func(settings ...string) error { return d.SetQoS(api.QoSRequest{Adapter: "left", Settings: settings}) }
	if err := do("policy:SMB=netdirect=445,priority=3", "policy:DEFAULT=default,priority=1", "policy:TCP=protocol=tcp,port=80-90,priority=2"); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"policy:X=priority=3", "policy:X=default,priority=8", "policy:=default,priority=1"} {
		var f *api.FieldError
		if err := do(wrong); !errors.As(err, &f) || !strings.Contains(f.Field, "policy") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if got := marked(d, 0, 0); got.Priority != 1 {
		t.Errorf("%+v", got)
	}
	stop(t, d)
	d = start(t, c)
	defer stop(t, d)
	want := []api.QoSPolicy{{Name: "TCP", Policy: "protocol=tcp,port=80-90,priority=2"}, {Name: "SMB", Policy: "netdirect=445,priority=3"},
		{Name: "DEFAULT", Policy: "default,priority=1"}}
	if got := qosOf(d).Policies; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%+v", got)
	}
	if err := do("policy:DEFAULT=default"); err != nil || len(qosOf(d).Policies) != 2 || marked(d, 0, 0).Priority != 0 {
		t.Errorf("%v, %+v", err, qosOf(d).Policies)
	}
}

// TestTrustContradicts: an adapter that trusts DSCPs, and marks what it sends otherwise or not, says so when it starts; one whose both
// directions agree does not (WinOF-2 Ethernet b, Receive Trust State).
func TestTrustContradicts(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	said := func() (n int) {
		for _, e := range raised(t, d) {
			if strings.HasPrefix(e, "TrustContradicts: ") {
				n++
			}
		}
		return n
	}
	restart(t, d, "left")
	if n := said(); n != 0 {
		t.Errorf("%d events although tags are trusted", n)
	}
	set(t, d, "left", "RxTrustedState", "2")
	set(t, d, "left", "DscpBasedpfcEnabled", "1")
	restart(t, d, "left")
	wantEvent(t, d, "TrustContradicts", "left", "PriorityToDscpMappingTable_1 is 1, a DSCP of priority 0")
	for p := range 8 {
		set(t, d, "left", fmt.Sprintf("PriorityToDscpMappingTable_%d", p), fmt.Sprint(8*p+2))
	}
	restart(t, d, "left")
	if n := said(); n != 1 {
		t.Errorf("%d events, want none for the table that agrees", n-1)
	}
	set(t, d, "left", "DscpBasedpfcEnabled", "0")
	restart(t, d, "left")
	wantEvent(t, d, "TrustContradicts", "left", "DscpBasedpfcEnabled 0")
}

// TestMarkingKeys_MLX4: adapters of the mlx4 generation mark RoCE packets with the DSCP of their priority while any is paused on its own,
// and with that of global pause while that was chosen and none is (WinOF 5.50, 4.1.11.7), at once.
func TestMarkingKeys_MLX4(t *testing.T) {
	p := newPausing(t, "mlx4", map[string]string{"RroceDscpMarkPriorityFlowControl_3": "29", "DscpForGlobalFlowControl": "30",
		"TxPause": "1"})
	for _, x := range []struct {
		pfc  string
		dscp uint8
	}{{"none", 30}, {"3", 29}, {"5", 29}, {"none", 30}} {
		if err := p.SetQoS(api.QoSRequest{Adapter: "port", Settings: []string{"pfc=" + x.pfc}}); err != nil {
			t.Fatal(err)
		}
		if got := marked(p.Driver, 3, 0); got.Class != x.dscp<<2 {
			t.Errorf("PFC %s: DSCP %d, want %d", x.pfc, got.Class>>2, x.dscp)
		}
	}
}
