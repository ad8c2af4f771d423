package mlx5cmd

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// TestSetupRoceQosConfig: an adapter is set up for a fabric, restarted, and says what it is set up for; the output of the lossless one is
// what Mellanox' tool prints. On UDP sockets, which carry no pauses, nothing is changed.
func TestSetupRoceQosConfig(t *testing.T) {
	dir := t.TempDir()
	cfg := driverbed.Config(t, config.Adapter{Name: "whole", Link: config.LinkDatagram, Address: netip.MustParseAddr("192.0.2.1"),
		Wire: config.Wire{Datagram: filepath.Join(dir, "a"), Peer: filepath.Join(dir, "b"), Prefix: 24, LinkMTU: 9000}},
		config.Adapter{Name: "sockets"})
	g := &rig{t, cfg, driverbed.Start(t, cfg)}
	configuration := func(adapter string) any {
		t.Helper()
		return g.blocks("-QosConfig -SetupRoceQosConfig -Query -Name " + adapter)[0].Values["Configuration"]
	}
	if x := configuration("whole"); x != "none of -Configure" {
		t.Errorf("at first: %v", x)
	}
	const lossless = "Lossless fabric with Dscp Value 26 with Adapter Specific Flow Control"
	if text := g.ok("-QosConfig -SetupRoceQosConfig -Name whole -Configure 2"); text !=
		"Restarting adapter whole\nRestarting adapter whole finished\n\n\t"+lossless+" configuration configured successfully.\n" {
		t.Errorf("%q", text)
	}
	if x := configuration("whole"); x != lossless {
		t.Errorf("lossless: %v", x)
	}
	s := g.driver.Overview().Adapters[0]
	if q := s.QoS; q.Operative.PFC != "3" || len(q.Policies) != 1 || q.Policies[0].Policy != "default,priority=3" ||
		s.FlowControl.Asks != "PFC 3" {
		t.Errorf("%+v, %+v", q, s.FlowControl)
	}
	g.ok("-qosconfig -setuproceqosconfig -name whole -configure 1")
	if x := configuration("whole"); !strings.HasPrefix(x.(string), "Lossy fabric") || g.driver.Overview().Adapters[0].QoS.Operative.PFC != "none" {
		t.Errorf("lossy: %v", x)
	}
	if status, _, _ := g.call("-QosConfig -SetupRoceQosConfig -Name sockets -Configure 2"); status == 0 {
		t.Error("pauses on UDP sockets")
	}
	if x := configuration("sockets"); x != "none of -Configure" || len(g.driver.Overview().Adapters[1].QoS.Policies) != 0 {
		t.Errorf("what was refused has changed something: %v", x)
	}
}
