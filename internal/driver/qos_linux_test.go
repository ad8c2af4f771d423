package driver

import (
	"errors"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

func init() {
	acting["DcbxMode"], acting["*QOS"] = TestDcbxMode, TestQoSKey
	acting["RxTrustedState"], acting["DefaultUntaggedPriority"] = TestTrustKeys, TestTrustKeys
	acting["RxUntaggedMapToLossless"] = TestTrustKeys
}

// configure sets parameters of an adapter's device, as mlxconfig does, and restarts it.
func configure(t *testing.T, d *Driver, adapter string, values map[string]uint64) {
	t.Helper()
	i, err := d.find(adapter)
	if err != nil {
		t.Fatal(err)
	}
	var changes []registry.Change
	for name, n := range values {
		p, ok := catalogue.LookupParameter(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		c, err := d.running[i].known().Configure(p, &n)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, c)
	}
	if _, err := d.ChangeRegistry(changes, false); err != nil {
		t.Fatal(err)
	}
	restart(t, d, adapter)
}

// all are the parameters with which an adapter speaks DCBX.
var all = map[string]uint64{"LLDP_NB_TX_MODE_P1": 2, "LLDP_NB_RX_MODE_P1": 2, "LLDP_NB_DCBX_P1": 1}

func qosOf(d *Driver) *api.QoSStatus { return d.Overview().Adapters[0].QoS }

// TestDcbxMode: DCBX is spoken with DcbxMode 2 and the device's configuration that allows it, from the next restart on, willing unless
// it is set otherwise, at run time (WinOF-2 Ethernet b, DCBX). What was agreed is shown with its origin, and told.
func TestDcbxMode(t *testing.T) {
	t.Parallel()
	c := overSockets(t)
	a, b := start(t, c[0]), start(t, c[1])
	defer func() { stop(t, b) }()
	down := false
	defer func() {
		if !down {
			stop(t, a)
		}
	}()
	if s := qosOf(b); s.LLDP.Running || s.DCBX.State != "off" || s.DCBX.Off != "DcbxMode is not 2" || s.Refused != "" {
		t.Errorf("by default: %+v", s)
	}
	configure(t, b, "port", map[string]uint64{"LLDP_NB_RX_MODE_P1": 2}) // before the other says something: it does so again after 30 s
	configure(t, a, "port", map[string]uint64{"LLDP_NB_TX_MODE_P1": 1})
	await.Eventually(t, "one hears the other, which sends what it must", func() bool { return len(qosOf(b).Peers) == 1 })
	if s := qosOf(b); s.Peers[0].Name != "" || s.Peers[0].DCBX != "" || s.LLDP.Transmit != "off" {
		t.Errorf("%+v", s)
	}
	set(t, a, "port", "DcbxMode", "2")
	configure(t, a, "port", all)
	await.Eventually(t, "one hears that the other restarts", func() bool { return qosOf(b).Counters["shutdowns"] == 1 })
	if s := qosOf(a); s.DCBX.State != "no peer" || s.DCBX.Protocol != "ieee" {
		t.Errorf("with nobody: %+v", s.DCBX)
	}
	set(t, b, "port", "DcbxMode", "2")
	if s := qosOf(b); s.DCBX.Off == "" {
		t.Error("the key has taken effect before a restart")
	}
	if err := a.SetQoS(api.QoSRequest{Adapter: "port", Settings: strings.Fields("willing=off pfc=3,5 prio-tc=3:1 tc-bw=0:40,1:60 app=port:4791=3")}); err != nil {
		t.Fatal(err)
	}
	configure(t, b, "port", all)
	want := api.OperativeQoS{PFC: "3,5", PFCFrom: "peer", PrioTC: "3:1", TCBandwidth: "0:40,1:60", ETSFrom: "peer", Applications: "port:4791=3",
		ApplicationsFrom: "peer"}
	await.Eventually(t, "what was agreed", func() bool { return qosOf(b).Operative == want })
	if s := qosOf(b); !s.Enforced.ETS || s.DCBX.State != "agreed" || s.DCBX.Peer != qosPeer(a) || s.Peers[0].Description != "SoftVPI test" ||
		s.Counters["dcbx_configurations"] != 1 || s.DCBX.PFC.PeerWilling {
		t.Errorf("%+v", s)
	}
	await.Eventually(t, "an event of what was agreed", func() bool {
		return strings.Contains(strings.Join(raised(t, b), "\n"), "DCBXAgreed: port: priorities were agreed with "+qosPeer(a)+" by IEEE 802.1Q: PFC 3,5 (peer)")
	})
	own := []string{"willing=off"}
	if err := b.SetQoS(api.QoSRequest{Adapter: "port", Settings: own}); err != nil {
		t.Fatal(err)
	}
	if o := qosOf(b).Operative; o.PFC != "none" || o.PFCFrom != "default" { // at once
		t.Errorf("not willing: %+v", o)
	}
	if err := b.SetQoS(api.QoSRequest{Adapter: "port", Settings: []string{"willing=default"}}); err != nil || qosOf(b).Operative != want {
		t.Errorf("willing again: %+v, %v", qosOf(b).Operative, err)
	}
	down = true
	stop(t, a)
	await.Eventually(t, "the peer is gone", func() bool { return len(qosOf(b).Peers) == 0 })
	if s := qosOf(b); s.Operative.PFC != "none" || s.Counters["shutdowns"] != 2 { // a's restart, and its end
		t.Errorf("%+v", s)
	}
	await.Eventually(t, "an event of it", func() bool { return strings.Contains(strings.Join(raised(t, b), "\n"), "DCBXEnded: ") })
}

func qosPeer(d *Driver) string { return d.Overview().Adapters[0].MAC }

// TestSetQoS_Survives: what is set is kept over restarts of the driver, and what is not allowed changes nothing.
func TestSetQoS_Survives(t *testing.T) {
	c := overSockets(t)
	d := start(t, c[0])
	if err := d.SetQoS(api.QoSRequest{Adapter: "port", Settings: []string{"pfc=4", "dcbx=cee", "willing=off"}}); err != nil {
		t.Fatal(err)
	}
	for setting, field := range map[string]string{
		"pfc=8": "priority is", "pfc": "priority is", "colour=red": "setting is", "willing=maybe": "willing is", "dcbx=cisco": "dcbx is",
		"tc-bw=0:50": "bandwidths of all classes is 50", "prio-tc=3:9": "class of a priority is", "app=sctp:1=1": "selector is",
	} {
		err := d.SetQoS(api.QoSRequest{Adapter: "port", Settings: []string{"pfc=5", setting}})
		if err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), "allowed: ") {
			t.Errorf("%s: %v, want one of %q", setting, err, field)
		}
	}
	stop(t, d)
	d = start(t, c[0])
	defer stop(t, d)
	want := api.OwnQoS{Protocol: "cee", PFC: "4", PrioTC: "none", TCBandwidth: "0:100", Applications: "none"}
	if s := qosOf(d); s.Own != want || s.Operative.PFC != "4" && s.LLDP.Running {
		t.Errorf("%+v", s)
	}
}

// TestDcbxMode_Refused: a port of UDP sockets has no LLDP: status and an event say why. It has classes all the same, but nothing that
// needs frames beside its packets.
func TestDcbxMode_Refused(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	if s := qosOf(d); !strings.Contains(s.Refused, "UDP sockets, which carry no LLDP") {
		t.Errorf("%+v", s)
	}
	for _, setting := range []string{"pfc=3", "willing=off", "dcbx=cee"} {
		err := d.SetQoS(api.QoSRequest{Adapter: "left", Settings: []string{setting}})
		if !errors.Is(err, api.ErrUnsupported) || !strings.Contains(err.Error(), "UDP sockets") {
			t.Errorf("%s: %v", setting, err)
		}
	}
	if err := d.SetQoS(api.QoSRequest{Adapter: "left", Settings: strings.Fields("prio-tc=3:1 tc-bw=0:40,1:60 pfc=default")}); err != nil {
		t.Error(err)
	}
	if o := qosOf(d).Operative; o.PrioTC != "3:1" || o.TCBandwidth != "0:40,1:60" || o.ETSFrom != "local" || !qosOf(d).Enforced.ETS {
		t.Errorf("%+v", o)
	}
	set(t, d, "left", "DcbxMode", "2")
	configure(t, d, "left", all)
	wantEvent(t, d, "LLDPRefused", "left", "UDP sockets, which carry no LLDP frames")
}

// TestQoSKey: with *QOS 0 an adapter makes no difference between priorities, whatever is set, and speaks no DCBX, from the next restart
// on (WinOF 5.50, 4.6.3 Basic Registry Keys).
func TestQoSKey(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	if err := d.SetQoS(api.QoSRequest{Adapter: "left", Settings: strings.Fields("prio-tc=3:1 tc-bw=0:40,1:60")}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ value, classes, own, off string }{{"0", "none", "3:1", "*QOS is 0"}, {"1", "3:1", "3:1", ""}} {
		set(t, d, "left", "*QOS", x.value)
		restart(t, d, "left")
		if s := qosOf(d); s.Operative.PrioTC != x.classes || s.Own.PrioTC != x.own || s.Off != x.off {
			t.Errorf("%s: %+v", x.value, s)
		}
		if traffic := d.host.Overview().Adapters[0].Priorities.Traffic; traffic.Class[3] != map[string]uint8{"0": 0, "1": 1}[x.value] {
			t.Errorf("%s: %+v", x.value, traffic)
		}
	}
}

// TestTrustKeys: RxTrustedState says from the next restart on whether received frames have the priority of their tag or DSCP, and
// DefaultUntaggedPriority at once that of frames without one (WinOF-2 Ethernet b, Receive Trust State, RCM with Untagged Traffic).
func TestTrustKeys(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	check := func(when string, want qos.Classifier) {
		t.Helper()
		if got := d.host.Overview().Adapters[0].Priorities.Received; got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	check("by default", qos.Classifier{})
	set(t, d, "left", "DefaultUntaggedPriority", "3")
	check("at once", qos.Classifier{Untagged: 3})
	set(t, d, "left", "RxUntaggedMapToLossless", "1")
	check("at once", qos.Classifier{Untagged: 3, Lossless: true})
	set(t, d, "left", "RxUntaggedMapToLossless", "0")
	set(t, d, "left", "RxTrustedState", "2")
	check("before a restart", qos.Classifier{Untagged: 3})
	restart(t, d, "left")
	check("after a restart", qos.Classifier{ByDSCP: true, Untagged: 3})
	if err := d.SetQoS(api.QoSRequest{Adapter: "left", Settings: []string{"prio-tc=3:1"}}); err != nil {
		t.Fatal(err)
	}
	check("with other settings", qos.Classifier{ByDSCP: true, Untagged: 3})
}
