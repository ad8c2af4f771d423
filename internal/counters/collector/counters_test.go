package collector

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/internal/port"
)

// TestWordsAreThoseOfTheCatalogue: every counter that the catalogue calls counted is read from somewhere, and no
// other is.
func TestWordsAreThoseOfTheCatalogue(t *testing.T) {
	read := map[string]map[string]bool{}
	for i := range catalogue.CounterSets() {
		set := &catalogue.CounterSets()[i]
		for j := range set.Counters {
			c := &set.Counters[j]
			for _, short := range totals(c) {
				has := words[set.Short][short] != nil
				if partWords()[set.Short] != nil {
					has = partWords()[set.Short][short] != nil
				}
				if set.Instances == "priority" {
					has = priorityWords[short] != nil
				}
				if slices.Contains([]string{"function", "team", "member", "vlan", "queues", "overlay"}, set.Instances) {
					has = slices.Contains(namedWords[set.Short], short)
				}
				if set.Instances == "interface" {
					has = interfaceWords[set.Short][short] != nil || set.Short == "ethernet" && ethernetWords[set.Short][short] != nil
				}
				if has != c.Counted() {
					t.Errorf("%s.%s: counted %v, read from a word %v", set.Short, short, c.Counted(), has)
				}
				if read[set.Short] == nil {
					read[set.Short] = map[string]bool{}
				}
				read[set.Short][short] = true
			}
		}
	}
	for set, of := range words {
		for short := range of {
			if !read[set][short] {
				t.Errorf("%s.%s is no counter", set, short)
			}
		}
	}
	for set, of := range namedWords {
		for _, short := range of {
			if !read[set][short] {
				t.Errorf("%s.%s is no counter of virtual functions", set, short)
			}
		}
	}
	for short := range priorityWords {
		if !read["adapter_qos"][short] {
			t.Errorf("%s is no counter of priorities", short)
		}
	}
	for set, of := range partWords() {
		for short := range of {
			if !read[set][short] {
				t.Errorf("%s.%s is no counter", set, short)
			}
		}
	}
	for set, of := range ethernetWords {
		for short := range of {
			if !read[set][short] || set != "ethernet" && interfaceWords[set][short] == nil {
				t.Errorf("%s.%s is no counter of Ethernet functions", set, short)
			}
		}
	}
	for short := range interfaceWords["network_interface"] {
		if ethernetWords["network_interface"][short] == nil {
			t.Errorf("network_interface.%s: Ethernet functions do not have it", short)
		}
	}
	for set, of := range interfaceWords {
		for short := range of {
			if !read[set][short] {
				t.Errorf("%s.%s is no counter", set, short)
			}
		}
	}
}

// bench is a Collector over adapters that the test sets, with a clock that it moves.
type bench struct {
	t        *testing.T
	c        *Collector
	adapters []Adapter
	now      time.Time
}

func newBench(t *testing.T, names ...string) *bench {
	b := &bench{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	for i, n := range names {
		b.adapters = append(b.adapters, Adapter{Counters: device.Counters{Adapter: uint32(i), Name: n, Enabled: true, FrameOverhead: 42}})
	}
	b.c = New(Config{Read: func() []Adapter { return append([]Adapter(nil), b.adapters...) }, CPUs: 2,
		Now: func() time.Time { return b.now }})
	return b
}

// restart changes an adapter's words as its restart does.
func (b *bench) restart(i int) {
	before := b.adapters[i].Counters
	b.adapters[i].Before = &before
	b.adapters[i].Restarts++
}

func (b *bench) snapshot(paths ...string) counters.Snapshot {
	b.t.Helper()
	s, err := b.c.Snapshot(paths...)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// values returns what a reader sees, by "instance: counter".
func (b *bench) values(r *counters.Reader, paths ...string) map[string]string {
	b.t.Helper()
	m := map[string]string{}
	for _, x := range r.Read(b.snapshot(paths...)) {
		m[x.Instance+": "+x.Counter] = x.Value.String()
	}
	return m
}

func TestRatesAreOverTheReadersInterval(t *testing.T) {
	b := newBench(t, "Ethernet 1")
	const path = `\Mellanox Adapter Traffic Counters(*)\Packets Received*`
	var every, late counters.Reader
	want := func(r *counters.Reader, packets, perSecond string) {
		t.Helper()
		// The errors and discards match too; they do not matter here.
		got := b.values(r, path)
		for _, w := range [][2]string{{"Packets Received", packets}, {"Packets Received/Sec", perSecond}} {
			if got["Ethernet 1: "+w[0]] != w[1] {
				t.Errorf("%s is %s, want %s", w[0], got["Ethernet 1: "+w[0]], w[1])
			}
		}
	}
	want(&every, "0", "-") // the first reading has no interval
	want(&late, "0", "-")
	b.adapters[0].Link.ReceivedPackets = 100
	b.now = b.now.Add(2 * time.Second)
	want(&every, "100", "50.0")
	b.now = b.now.Add(2 * time.Second)
	want(&every, "100", "0.0")
	want(&late, "100", "25.0")
}

// TestPriorities: the instances of the QoS set are the port's priorities, and frames without one (WinOF 5.50, 4.9.4.3). What
// nothing counts has no value, which differs from 0.
func TestPriorities(t *testing.T) {
	b := newBench(t, "Ethernet 1")
	b.adapters[0].Arrived = [9]port.Tally{port.Untagged: {Packets: 3, Bytes: 300}}
	var r counters.Reader
	b.values(&r, "adapter_qos")
	b.adapters[0].Arrived = [9]port.Tally{port.Untagged: {Packets: 13, Bytes: 1846}, 3: {Packets: 5, Bytes: 500}}
	b.adapters[0].Sent[3] = port.Tally{Packets: 15, Bytes: 1500}
	b.now = b.now.Add(time.Second)
	got := b.values(&r, "adapter_qos")
	for name, want := range map[string]string{
		"Untagged: Bytes Received": "1846", "Untagged: Packets Received": "13", "Untagged: Packets Total/Sec": "10.0",
		"Untagged: Bytes Sent":            "0",
		"Untagged: Received Pause Frames": "0", "Priority 0: Bytes Received": "0", "Priority 3: Packets Total/Sec": "20.0",
		"Priority 3: Bytes Sent": "1500", "Priority 3: Bytes Total": "2000",
	} {
		if got["Ethernet 1, "+name] != want {
			t.Errorf("%s is %s, want %s", name, got["Ethernet 1, "+name], want)
		}
	}
}

func TestUncountedCountersHaveNoValue(t *testing.T) {
	b := newBench(t, "Ethernet 1")
	s := b.snapshot("port_traffic.received_symbol_error_packets", "adapter_traffic.sent_packets")
	got := map[string]bool{}
	for _, in := range s.Instances {
		for _, v := range in.Values {
			got[in.Name+" "+v.Counter] = v.Raw != nil
		}
	}
	want := map[string]bool{"Ethernet 1 sent_packets": true, "Ethernet 1 received_symbol_error_packets": false}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

func TestSetsOfAGeneration(t *testing.T) {
	b := newBench(t, "Ethernet 1", "Ethernet 2")
	b.adapters[1].Generation = catalogue.MLX4
	for i := range b.adapters {
		b.adapters[i].Ethernet = &device.EthernetStatus{Config: ethernet.Config{RssMonitoringEnabled: 1}, Processors: []int{1}}
	}
	for path, want := range map[string][]string{
		"rdma_activity":      {"Ethernet 1", "Ethernet 2"},
		"winof_bus":          {"Ethernet 2"},
		"congestion_control": {"Ethernet 1"},
		"adapter_rss":        {"Ethernet 2, CPU 0", "Ethernet 2, CPU 1", "Ethernet 2, Total"},
		"send_queues":        {"Ethernet 1, Queue 0", "Ethernet 2, Queue 0"},
		"adapter_diagnostics.minor_stall_watermarks": {"Ethernet 1"},
	} {
		var got []string
		for _, in := range b.snapshot(path).Instances {
			got = append(got, in.Name)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", path, d)
		}
	}
}

// TestFramesThatAreNone: what an adapter's link and its Ethernet function drop for its length or its FCS is in the sets of both
// generations, and an error each.
func TestFramesThatAreNone(t *testing.T) {
	b := newBench(t, "port")
	a := &b.adapters[0]
	a.Link.ReceiveUndersize, a.Link.ReceiveTruncated, a.Encap.ICRCErrors = 1, 2, 4
	a.Ethernet = &device.EthernetStatus{}
	a.Ethernet.Counters.BadFCS, a.Ethernet.Counters.Fragments, a.Ethernet.Counters.Jabbers = 40, 8, 16
	a.Ethernet.Counters.Filtered[filter.TooLong] = 64
	var r counters.Reader
	for generation, want := range map[catalogue.Generation]map[string]string{
		catalogue.MLX4: {"adapter_traffic.received_frame_length_error_packets": "67", "adapter_traffic.received_bad_crc_packets": "44",
			"adapter_traffic.received_error_packets": "111"},
		catalogue.MLX5: {"port_traffic.received_undersize_packets": "1", "port_traffic.received_fragment_packets": "8",
			"port_traffic.received_jabber_packets": "16", "port_traffic.received_too_long_packets": "66",
			"port_traffic.received_frame_length_error_packets": "67", "port_traffic.received_bad_crc_packets": "44",
			"port_traffic.received_error_packets": "111"},
	} {
		a.Generation = generation
		for path, n := range want {
			got := slices.Collect(maps.Values(b.values(&r, path)))
			if d := cmp.Diff([]string{n}, got); d != "" {
				t.Errorf("%s: (-want +got)\n%s", path, d)
			}
		}
	}
}

// TestRestartClears: a restart clears the adapter's counters except levels; the underlying words continue.
func TestRestartClears(t *testing.T) {
	b := newBench(t, "Ethernet 1", "Ethernet 2")
	for i := range b.adapters {
		b.adapters[i].CM.Accepted, b.adapters[i].CM.Active = 7, 2
	}
	var r counters.Reader
	paths := []string{"rdma_activity.accepted_connections", "rdma_activity.active_connections"}
	b.restart(0)
	b.adapters[0].CM.Accepted++
	want := map[string]string{
		"Ethernet 1: RDMA Accepted Connections": "1", "Ethernet 1: RDMA Active Connections": "2",
		"Ethernet 2: RDMA Accepted Connections": "7", "Ethernet 2: RDMA Active Connections": "2",
	}
	if d := cmp.Diff(want, b.values(&r, paths...)); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestPortsOfADeviceAddUp: the sets of a device have one instance with the sum of its ports, less what was before their
// restarts; a count of the whole device is the same at both ports (WinOF 5.50, 4.9.4), and one that all adapters of the
// process have alike is not added to itself.
func TestPortsOfADeviceAddUp(t *testing.T) {
	b := newBench(t, "Ethernet 1", "Ethernet 2", "Ethernet 3")
	for i := range b.adapters {
		a := &b.adapters[i]
		a.Generation, a.BadDoorbells, a.EQOverflows = catalogue.MLX4, 9, 9
		if i < 2 {
			a.Device, a.Port = "card", i+1
		}
		a.Transport.DiscardedUD, a.CQOverflows = uint64(10*(i+1)), uint64(i+1)
	}
	b.restart(1)
	b.adapters[1].Transport.DiscardedUD++
	got := map[string]uint64{}
	for _, in := range b.snapshot().Instances {
		for _, v := range in.Values {
			if v.Raw != nil {
				got[in.Set+" "+in.Name+" "+v.Counter] = *v.Raw
			}
		}
		if in.Set == "link" && in.Labels["port"] != map[string]string{"Ethernet 1": "1", "Ethernet 2": "2", "Ethernet 3": "1"}[in.Name] {
			t.Errorf("%s is port %s", in.Name, in.Labels["port"])
		}
	}
	for name, want := range map[string]uint64{
		"device card no_wqe_drops": 11, "device card dropped_doorbells": 9, "device Ethernet 3 no_wqe_drops": 30,
		"winof_bus card no_wqe_drops":                 11,
		"adapter_diagnostics Ethernet 1 cq_overflows": 1, "adapter_diagnostics Ethernet 2 cq_overflows": 1,
		"adapter_diagnostics Ethernet 3 cq_overflows":         3,
		"adapter_diagnostics Ethernet 1 discarded_ud_packets": 10, "adapter_diagnostics Ethernet 2 discarded_ud_packets": 1,
		"adapter_diagnostics Ethernet 1 eq_overflows": 9,
	} {
		if n, ok := got[name]; !ok || n != want {
			t.Errorf("%s is %d (%v), want %d", name, n, ok, want)
		}
	}
	if _, ok := got["device Ethernet 2 no_wqe_drops"]; ok {
		t.Error("the device's second port has an instance of its own")
	}
}

func TestResetOnDemand(t *testing.T) {
	b := newBench(t, "Ethernet 1", "Ethernet 2")
	for i := range b.adapters {
		b.adapters[i].Transport.Probes, b.adapters[i].Link.SentBursts = 5, 5
	}
	if err := b.c.Reset(counters.ResetRequest{Set: "SoftVPI Transport", Adapter: "Ethernet 2"}); err != nil {
		t.Fatal(err)
	}
	var r counters.Reader
	want := map[string]string{
		"Ethernet 1: Probes": "5", "Ethernet 2: Probes": "0", "Ethernet 1: Link bursts sent": "5", "Ethernet 2: Link bursts sent": "5",
	}
	if d := cmp.Diff(want, b.values(&r, "transport.probes", "link.sent_bursts")); d != "" {
		t.Error("(-want +got):\n", d)
	}
	// A restart counts from its own time, whatever was reset before it, and a later reset from its own.
	b.adapters[1].Transport.Probes = 8
	b.restart(1)
	b.adapters[1].Transport.Probes = 10
	if got := b.values(&r, "transport(Ethernet 2).probes")["Ethernet 2: Probes"]; got != "2" {
		t.Errorf("after a restart: %s", got)
	}
	if err := b.c.Reset(counters.ResetRequest{Set: "transport"}); err != nil {
		t.Fatal(err)
	}
	b.adapters[1].Transport.Probes = 11
	if got := b.values(&r, "transport(Ethernet 2).probes")["Ethernet 2: Probes"]; got != "1" {
		t.Errorf("after a restart and a reset: %s", got)
	}
	for _, q := range []counters.ResetRequest{{Set: "Mellanox Adapter Diagnostics Counters"}, {Set: "nonsense"},
		{Set: "transport", Adapter: "nonsense"}} {
		var e *counters.PathError
		if err := b.c.Reset(q); !errors.As(err, &e) || len(e.Allowed) == 0 {
			t.Errorf("%+v: %v, want an error with what is allowed", q, err)
		}
	}
}

// TestNoRateOverAReset: no reader sees a rate over an interval with a reset in it.
func TestNoRateOverAReset(t *testing.T) {
	b := newBench(t, "Ethernet 1")
	b.adapters[0].RDMA.SentFrames = 1000
	var r counters.Reader
	rate := func() string {
		b.now = b.now.Add(time.Second)
		return b.values(&r, "rdma_activity.outbound_frames")["Ethernet 1: RDMA Outbound Frames/sec"]
	}
	rate()
	b.adapters[0].RDMA.SentFrames = 3000
	if got := rate(); got != "2000.0" {
		t.Errorf("before: %s", got)
	}
	b.restart(0)
	b.adapters[0].RDMA.SentFrames = 9000
	if got := rate(); got != "-" {
		t.Errorf("over the reset: %s", got)
	}
	if got := rate(); got != "0.0" {
		t.Errorf("after: %s", got)
	}
}

func TestBytesAreThoseOfFrames(t *testing.T) {
	b := newBench(t, "Ethernet 1")
	l := &b.adapters[0].Link
	l.SentPackets, l.SentBytes, l.ReceivedPackets, l.ReceivedBytes = 2, 100, 3, 1000
	var r counters.Reader
	want := map[string]string{"Ethernet 1: Bytes Sent": "184", "Ethernet 1: Bytes Received": "1126", "Ethernet 1: Bytes Total": "1310"}
	if d := cmp.Diff(want, b.values(&r, "adapter_traffic.sent_bytes", "adapter_traffic.received_bytes", "adapter_traffic.bytes")); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestEthernetFunctionsCount: what an Ethernet function counts is in the sets of its adapter (WinOF 5.50, 4.1.8.2: RSC Counters;
// 4.9.4.1), and without one nothing is.
func TestEthernetFunctionsCount(t *testing.T) {
	b := newBench(t, "with", "without")
	e := &device.EthernetStatus{}
	e.Counters.RSC = ethernet.RSC{Aborts: 1, Events: 2, Octets: 5001, Packets: 4}
	e.Counters.RingFull, e.Counters.Refused, e.Counters.NoBuffer, e.Counters.Malformed, e.Counters.Control = 5, 6, 7, 8, 9
	e.Counters.Filtered[filter.TooLong], e.Side.BadHeaders = 10, 11
	b.adapters[0].Ethernet = e
	b.adapters[0].Interfaces = []Interface{{Name: "with", Ethernet: e}}
	var r counters.Reader
	got := b.values(&r, "adapter_diagnostics", "adapter_traffic")
	for name, want := range map[string]string{
		"RSC Aborts": "1", "RSC Coalesce Events": "2", "RSC Coalesce Octets": "5001", "RSC Coalesce Packets": "4",
		"TX Ring Is Full Packets": "5", "Packets Outbound Errors": "17", "Packets Received Discarded": "7",
		"Packets Received Errors": "18", "Packets Received with Frame Length Error": "10", "Control Packets": "9",
	} {
		if got["with: "+name] != want || got["without: "+name] != "0" {
			t.Errorf("%s is %s and %s without an Ethernet function, want %s and 0", name, got["with: "+name], got["without: "+name], want)
		}
	}
	if size := b.values(&r, "network_interface")["with: TCP RSC Average Packet Size"]; size != "2500" {
		t.Errorf("the average size of joined packets is %s, want 2500", size)
	}
}
