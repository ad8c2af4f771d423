package driver

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/verbs"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// acting holds the tests of the keys that take effect: each shows that its key changes what the driver does, not only
// what it stores.
var acting = map[string]func(*testing.T){
	"roce_mode":                  TestRoCEMode,
	"roce_udp_dport":             TestKeysSurviveARestartOfTheDriver,
	"RoceMaxFrameSize":           TestPendingUntilRestart,
	"UpdateGIDTimerFrequency":    TestUpdateGIDTimerFrequency,
	"RoceRcE2EFlowControlEnable": TestKeysOfTheConnectionManager,
	"MaxCMRetries":               TestKeysOfTheConnectionManager,
	"LogNumQp":                   TestLogNumQp,
	"LogNumRdmaRc":               TestLogNumRdmaRc,
	"*JumboPacket":               TestJumboPacket,
	"*PacketDirect":              TestPacketDirectKey,
	"*NetworkDirect":             TestNetworkDirectKey,
	"NetworkAddress":             TestNetworkAddress,
	"RecvCompletionMethod":       TestPollingKeys,
	"ThreadPoll":                 TestPollingKeys,
	"AverageFactor":              TestPollingKeys,
	"AveragePollThreshold":       TestPollingKeys,
	"ThisPollThreshold":          TestPollingKeys,
	"*InterruptModeration":       TestModerationOfAdapters,
	"TxIntModerationPacketCount": TestModerationOfAdapters,
	"TxIntModerationPacketTime":  TestModerationOfAdapters,
	"TxIntModerationProfile":     TestModerationKeys,
	"RxIntModeration":            TestModerationKeys,
	"RxIntModerationProfile":     TestModerationKeys,
	"RxIntModerationPacketCount": TestModerationKeys,
	"RxIntModerationPacketTime":  TestModerationKeys,
	"pkt_rate_low":               TestModerationKeys,
	"pkt_rate_high":              TestModerationKeys,
	"DumpEventsNum":              TestDumpEventsNum,
	"EnableDumpOnUnknownLink":    TestStateDumpsOfEvents,
	"DisableDumpOnEqStuck":       TestStateDumpsOfEvents,
	"DisableDumpOnTxCqStuck":     TestStateDumpsOfEvents,
	"DisableDumpOnRxCqStuck":     TestStateDumpsOfEvents,
	"PortType1":                  TestPortSensesItsProtocol,
	"PortType2":                  TestIllegalPorts,
	// The effect of their values is tested in package ipoib, with a scripted clock.
	"SaTimeout":                        TestIPoIBKeys,
	"SaRetries":                        TestIPoIBKeys,
	"EnableQPR":                        TestIPoIBKeys,
	"McastIgmpMldGeneralQueryInterval": TestIPoIBKeys,
	"McastQueryResponseInterval":       TestIPoIBKeys,
	"LocalEndpointMaxAge":              TestIPoIBKeys,
	"LocalEndpointMonitorInterval":     TestIPoIBKeys,
	"*ReceiveBuffers":                  TestIPoIBKeys,
	"*TransmitBuffers":                 TestIPoIBKeys,
	"MaxNumOfMCList":                   TestIPoIBKeys,
	"*LsoV1IPv4":                       TestIPoIBKeys,
	"*LsoV2IPv4":                       TestIPoIBKeys,
	"*LsoV2IPv6":                       TestIPoIBKeys,
	"LSOSize":                          TestIPoIBKeys,
	"*TCPUDPChecksumOffloadIPv4":       TestIPoIBKeys,
	"*TCPUDPChecksumOffloadIPv6":       TestIPoIBKeys,
	"GUIDMask":                         TestIPoIBKeys,
	// The effect of their values is tested in package ethernet, with a scripted clock.
	"LSOMinSegment":            TestEthernetKeys,
	"LSOTcpOptions":            TestEthernetKeys,
	"LSOIpOptions":             TestEthernetKeys,
	"*IPChecksumOffloadIPv4":   TestEthernetKeys,
	"*RscIPv4":                 TestEthernetKeys,
	"*RscIPv6":                 TestEthernetKeys,
	"*PriorityVLANTag":         TestEthernetKeys,
	"PromiscuousVlan":          TestEthernetKeys,
	"VlanId":                   TestEthernetKeys,
	"UseRSSForUDP":             TestEthernetKeys,
	"UseRSSForRawIP":           TestEthernetKeys,
	"*RSS":                     TestEthernetKeys,
	"*NumRSSQueues":            TestEthernetKeys,
	"*MaxRSSProcessors":        TestEthernetKeys,
	"*RSSProfile":              TestEthernetKeys,
	"DefaultRecvRingProcessor": TestEthernetKeys,
	"SendCompletionMethod":     TestEthernetKeys,
	"TxHashDistribution":       TestEthernetKeys,
	"RxSmallPacketBypass":      TestEthernetKeys,
	"*HeaderDataSplit":         TestEthernetKeys,

	"*EncapsulatedPacketTaskOffload":      TestEthernetKeys,
	"*EncapsulatedPacketTaskOffloadVxlan": TestEthernetKeys,
	"*VxlanUDPPortNumber":                 TestEthernetKeys,

	"AsyncReceiveIndicate":        TestEthernetKeys,
	"RfdReservationFactor":        TestEthernetKeys,
	"*WakeOnMagicPacket":          TestWake,
	"*WakeOnPattern":              TestWake,
	"ReturnPacketThreshold":       TestEthernetKeys,
	"NumTcb":                      TestEthernetKeys,
	"IgnoreFCS":                   TestIgnoreFCS,
	"*RssBaseProcNumber":          TestPlacementKeys,
	"RssBaseCpu":                  TestPlacementKeys,
	"MaxNumRssCpus":               TestPlacementKeys,
	"MaximumWorkingThreads":       TestEthernetKeys, // what it limits is tested in package hostside
	"*RssBaseProcGroup":           TestPlacementKeys,
	"*RssMaxProcNumber":           TestPlacementKeys,
	"*NumaNodeID":                 TestPlacementKeys,
	"TxForwardingProcessor":       TestPlacementKeys,
	"TxInterruptProcessor":        TestPlacementKeys,
	"SHCheckForHangTimeInSeconds": TestEthernetStuck,
	"CheckForHangCQMaxNoProgress": TestEthernetStuck,
	"SHMPResetActiveSensorsMask":  TestSensorMasks,
	"SHSensorsDumpMask":           TestSensors,
	"AllowResetOnError":           TestAllowResetOnError,
}

// actingOf holds the files with the tests of keys that a tool's feature uses.
var actingOf = map[string]string{
	"DumpMeNowDirectory":             "../tools/mlxtool/debug_test.go",
	"DumpMeNowTotalCount":            "../tools/mlxtool/debug_test.go",
	"DumpMeNowPreservedCountMin":     "../tools/mlxtool/debug_test.go",
	"DmnIovMode":                     "iovdump_linux_test.go",
	"DumpModeFlags":                  "../tools/mlxtool/debug_test.go",
	"EnableDumpOnPortDown":           "../tools/mlxtool/debug_test.go",
	"MstDumpMode":                    "../tools/mlxtool/debug_test.go",
	"RssMonitoringEnabled":           "../tools/mlxtool/nonrss_test.go",
	"RssCountersActivatedAtStartup":  "ethernet_counters_linux_test.go",
	"*SRIOV":                         "functions_linux_test.go",
	"*NumVFs":                        "functions_linux_test.go",
	"PermitSriov":                    "functions_linux_test.go",
	"SriovPortMode":                  "functions_linux_test.go",
	"MaxVFPort1":                     "functions_linux_test.go",
	"MaxVFPort2":                     "functions_linux_test.go",
	"VFAllowedTxEtherType0":          "functions_linux_test.go",
	"VFAllowedTxEtherType1":          "functions_linux_test.go",
	"VFAllowedTxEtherType2":          "functions_linux_test.go",
	"VFAllowedTxEtherType3":          "functions_linux_test.go",
	"VFAllowedTxEtherType4":          "functions_linux_test.go",
	"VFAllowedTxEtherType5":          "functions_linux_test.go",
	"VFAllowedTxEtherType6":          "functions_linux_test.go",
	"VFAllowedTxEtherType7":          "functions_linux_test.go",
	"VFAllowedTxEtherTypeListEnable": "functions_linux_test.go",
	"RedirectVfDHCPToPF":             "functions_linux_test.go",
	"VfCpuMonEnable":                 "functionwatch_linux_test.go",
	"VfCpuMonBatchPeriodSec":         "functionwatch_linux_test.go",
	"VfCpuMonFwCpuUsageMax":          "functionwatch_linux_test.go",
	"VfCpuMonErrors2FwMax":           "functionwatch_linux_test.go",
	"*RssOnHostVPorts":               "functionqueues_linux_test.go",
	"*VMQ":                           "vmq_linux_test.go",
	"*RssOrVmqPreference":            "vmq_linux_test.go",
	"*VMQLookaheadSplit":             "vmq_linux_test.go",
	"*VMQVlanFiltering":              "vmq_linux_test.go",
	"MaxNumVmqs":                     "vmq_linux_test.go",
	"MaxNumMacAddrFilters":           "vmq_linux_test.go",
	"MaxNumVlanFilters":              "vmq_linux_test.go",
	"MaxFWPagesUsagePerVF":           "functionwatch_linux_test.go",
}

// TestKeysThatAct: every key that the catalogue calls built has a test that shows its effect, and no other key has
// one.
func TestKeysThatAct(t *testing.T) {
	built := map[string]bool{}
	for _, k := range catalogue.Keys() {
		built[k.Name] = built[k.Name] || k.Status == catalogue.Built
	}
	for name, acts := range built {
		file := actingOf[name]
		if tested := acting[name] != nil || file != ""; tested != acts {
			t.Errorf("%s counts as built: %v; a test shows that it acts: %v", name, acts, tested)
		}
		if b, err := os.ReadFile(file); file != "" && (err != nil || !strings.Contains(string(b), strconv.Quote(name))) {
			t.Errorf("%s does not have %s", file, name)
		}
	}
}

// request returns the REQ that an adapter sends to a peer that does not answer.
func request(t *testing.T, d *Driver, adapter int) *mad.REQ {
	t.Helper()
	from := d.cfg.Adapters[adapter].Address
	peer := loopback.Addr()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, 4791)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	side, err := newCheckSide(attach(t, d), from, 4096, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer side.close()
	id, err := side.dev.NewID()
	if err != nil {
		t.Fatal(err)
	}
	defer id.Close()
	if err := id.Bind(netip.AddrPortFrom(from, 0)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- id.Connect(ctx, netip.AddrPortFrom(peer, 7), side.qp, verbs.ConnParam{InitiatorDepth: 1})
	}()
	defer func() { <-ended }()
	defer cancel()
	if err := c.SetReadDeadline(time.Now().Add(await.Limit)); err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, 2048)
	n, err := c.Read(packet)
	if err != nil {
		t.Fatal(err)
	}
	const head, length = ib.BTHLen + ib.DETHLen, 256
	if n < head+length {
		t.Fatalf("received %d bytes, too few for a MAD", n)
	}
	m, err := mad.DecodeCM(packet[head : head+length])
	if err != nil {
		t.Fatal(err)
	}
	req, ok := m.(*mad.REQ)
	if !ok {
		t.Fatalf("received a %T, want a REQ", m)
	}
	return req
}

// TestKeysOfTheConnectionManager: the keys appear in the requests that are sent, from the adapter's next restart on
// (WinOF 5.50, RoCE options).
func TestKeysOfTheConnectionManager(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	if q := request(t, d, 0); q.MaxCMRetries != 15 || !q.FlowControl {
		t.Errorf("by default: %d retries, flow control %v", q.MaxCMRetries, q.FlowControl)
	}
	set(t, d, "left", "MaxCMRetries", "3")
	set(t, d, "left", "RoceRcE2EFlowControlEnable", "0")
	if q := request(t, d, 0); q.MaxCMRetries != 15 || !q.FlowControl {
		t.Errorf("before the restart: %d retries, flow control %v", q.MaxCMRetries, q.FlowControl)
	}
	restart(t, d, "left")
	if q := request(t, d, 0); q.MaxCMRetries != 3 || q.FlowControl {
		t.Errorf("after it: %d retries, flow control %v", q.MaxCMRetries, q.FlowControl)
	}
}

// TestUpdateGIDTimerFrequency: the key sets the interval at once. What the interval does is tested in package device.
func TestUpdateGIDTimerFrequency(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	interval := func() time.Duration {
		d.changes.Lock()
		defer d.changes.Unlock()
		return d.gidInterval()
	}
	for value, want := range map[string]time.Duration{"250": 250 * time.Millisecond, "0": -1} {
		set(t, d, "left", "UpdateGIDTimerFrequency", value)
		restart(t, d, "left")
		restart(t, d, "right")
		if got := interval(); got != want {
			t.Errorf("%s: %v, want %v", value, got, want)
		}
	}
}
