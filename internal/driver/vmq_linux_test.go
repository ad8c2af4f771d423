package driver

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	machine "github.com/softvpi/softvpi/internal/os/processors"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// queued is a driver with a virtual switch over adapter a, whose adapters are in namespaces, and a sender on the wire.
type queued struct {
	*Driver
	t      *testing.T
	sender *space
}

// port adds an adapter to the switch, with an interface p0 and an address in a namespace of its own.
func (q *queued) port(name, addr string, words ...string) *space {
	q.t.Helper()
	s := newSpace(q.t)
	words = append(words, "rdma=off", "tap=p0"+name, "netns="+s.path())
	if _, err := q.AddSwitchAdapter(api.SwitchAdapterRequest{Switch: "lab", Function: name, Settings: words}); err != nil {
		q.t.Fatal(err)
	}
	s.address("p0"+name, addr)
	return s
}

// queue returns the queue of a port.
func (q *queued) queue(name string) api.QueueStatus {
	q.t.Helper()
	for _, f := range q.Functions() {
		if f.Name == name && f.VMQ != nil {
			return *f.VMQ
		}
	}
	q.t.Fatalf("%s has no queue at all", name)
	return api.QueueStatus{}
}

// offer returns what the switch's adapter offers.
func (q *queued) offer() api.VMQStatus {
	q.t.Helper()
	st := q.Status()
	a, err := st.Adapter("", "a")
	if err != nil || a.VMQ == nil {
		q.t.Fatalf("no VMQ in the status of the adapter: %v", err)
	}
	return *a.VMQ
}

// own returns how many queues the adapter's own Ethernet function has.
func (q *queued) own() int {
	q.t.Helper()
	st := q.Status()
	a, err := st.Adapter("", "a")
	if err != nil || a.Ethernet == nil {
		q.t.Fatalf("the adapter has no Ethernet function: %v", err)
	}
	return a.Ethernet.Queues
}

func (q *queued) set(name string, words ...string) {
	q.t.Helper()
	if err := q.SetSwitchAdapter(api.SwitchAdapterRequest{Switch: "lab", Function: name, Settings: words}); err != nil {
		q.t.Fatal(err)
	}
}

// keys sets keys of the switch's adapter, by name and value, and restarts it.
func (q *queued) keys(words ...string) {
	q.t.Helper()
	for i := 0; i < len(words); i += 2 {
		if _, err := q.Set("a", words[i], &words[i+1]); err != nil {
			q.t.Fatal(err)
		}
	}
	if err := q.RestartAdapter("a"); err != nil {
		q.t.Fatal(err)
	}
}

// expects checks the queues of ports, by name, and that a port without one says why.
func (q *queued) expects(when string, numbers map[string]int, why string) {
	q.t.Helper()
	for name, want := range numbers {
		if s := q.queue(name); s.Number != want || (want == 0) != (s.Why != "") || want == 0 && !strings.Contains(s.Why, why) {
			q.t.Errorf("%s: %s has queue %d because %q, want %d because of %s", when, name, s.Number, s.Why, want, why)
		}
	}
}

// floods sends datagrams to an address until as many have come by a queue as there are to be. Others' traffic is ARP and neighbour
// discovery alone, far less.
func (q *queued) floods(addr, what string, came func() uint64) {
	q.t.Helper()
	err := q.sender.in(func() error {
		c, err := net.Dial("udp", addr+":9")
		if err != nil {
			return err
		}
		defer c.Close()
		b, before := make([]byte, 1000), came()
		sent := func() bool {
			for range 200 {
				_, _ = c.Write(b) // nobody listens, and says so
			}
			return came() >= before+flood
		}
		if !await.Until(sent) {
			return fmt.Errorf("%s: %d after %v", what, came()-before, await.Limit)
		}
		return nil
	})
	if err != nil {
		q.t.Error(err)
	}
}

// flood is how many datagrams are many.
const flood = 500

// TestVMQ: virtual ports of a virtual switch have receive queues of the adapter's by their addresses, as many as MaxNumVmqs allows; frames
// of the third come through the default queue, and counters show which. A queue that is given back is for who waits, and works at once;
// a port whose MAC changes keeps its own; keys act after a restart (WinOF 5.50, 4.5.1 and 4.6.6.2).
func TestVMQ(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	cfg := hosting(t)
	cfg.Adapters[0].Generation, cfg.Adapters[0].Host, cfg.Adapters[1].Host = "mlx4", "tap:pf0", "tap:wire0"
	d := start(t, cfg)
	defer stop(t, d)
	q := &queued{d, t, newSpace(t)}
	q.sender.gets(hereSpace(t), "wire0")
	q.sender.address("wire0", "10.2.0.9/24")
	if o := q.offer(); o.Offers != "RSS" {
		t.Errorf("without a virtual switch the adapter offers %s", o.Offers)
	}
	q.keys("MaxNumVmqs", "2")
	if _, err := d.CreateVirtualSwitch(api.SwitchRequest{Name: "lab", Adapter: "a"}); err != nil {
		t.Fatal(err)
	}
	q.port("one", "10.2.0.1/24")
	q.port("two", "10.2.0.2/24")
	three := q.port("three", "10.2.0.3/24")
	q.expects("at first", map[string]int{"one": 1, "two": 2, "three": 0}, "MaxNumVmqs is 2")
	if o := q.offer(); o.Offers != "VMQ" || o.UsedQueues != 2 || o.Queues != 2 || len(o.Sharing) != 1 || o.Sharing[0] != "three" {
		t.Errorf("the adapter offers %+v", o)
	}

	counts := func() [3]uint64 {
		return [3]uint64{q.offer().Default.Packets, q.queue("one").Packets, q.queue("two").Packets}
	}
	for i, addr := range []string{"10.2.0.3", "10.2.0.1", "10.2.0.2"} {
		before := counts()
		q.floods(addr, "frames by queue "+addr, func() uint64 { return counts()[i] })
		for n, now := range counts() {
			if n != i && now-before[n] >= flood/2 {
				t.Errorf("%d frames by queue %d, of those for %s", now-before[n], n, addr)
			}
		}
	}
	if w := d.queueWords(0); w["default_packets"] < flood || w["default_bytes"] < flood*1000 || w["used_queues"] != 2 || w["queues"] != 2 ||
		w["sharing_ports"] != 1 || w["used_mac_filters"] == 0 {
		t.Errorf("the counters of the queues: %v", w)
	}
	if s := q.queue("one"); !s.LookaheadSplit || s.Split < flood || s.Bytes < flood*1000 || len(s.Filters) != 1 || s.Filters[0].AnyVLAN {
		t.Errorf("the first queue: %+v", s)
	}

	if err := d.RemoveSwitchAdapter("lab", "one"); err != nil {
		t.Fatal(err)
	}
	q.expects("without the first", map[string]int{"two": 2, "three": 1}, "")
	q.floods("10.2.0.3", "frames by the queue that was given back", func() uint64 { return q.queue("three").Packets })
	q.sender.reaches(three, "10.2.0.3", "the port that has another queue")
	q.set("two", "mac=02:00:00:00:77:02")
	if s := q.queue("two"); s.Number != 2 || s.Filters[0].MAC != "02:00:00:00:77:02" {
		t.Errorf("with another MAC: %+v", s)
	}
	q.set("two", "vmq=0")
	q.expects("with weight 0", map[string]int{"two": 0, "three": 1}, "VmqWeight")
	q.set("two", "vmq=1")
	q.expects("with weight 1", map[string]int{"two": 2, "three": 1}, "")

	q.keys("*VMQLookaheadSplit", "0", "MaxNumVmqs", "127", "MaxNumMacAddrFilters", "1")
	q.expects("with one filter", map[string]int{"two": 1, "three": 0}, "MaxNumMacAddrFilters")
	if q.queue("two").LookaheadSplit {
		t.Error("headers are split with *VMQLookaheadSplit 0")
	}
	q.keys("*VMQ", "0")
	q.expects("with *VMQ 0", map[string]int{"two": 0, "three": 0}, "*VMQ")
	q.sender.reaches(three, "10.2.0.3", "by the default queue")
	q.keys("*VMQ", "1", "MaxNumMacAddrFilters", "127", "MaxNumVlanFilters", "1")
	q.set("three", "vlan=5")
	q.set("two", "vlan=6")
	q.expects("with one VLAN", map[string]int{"three": 2, "two": 0}, "MaxNumVlanFilters")
	q.keys("*VMQVlanFiltering", "0")
	q.expects("without filters of VLANs", map[string]int{"three": 2, "two": 1}, "")
	q.keys("*RssOnHostVPorts", "0")
	if n := q.own(); n != 1 {
		t.Errorf("the adapter's own function has %d queues, and offers VMQ without VMMQ", n)
	}
	rss := "0"
	if _, err := d.Set("a", "*RssOrVmqPreference", &rss); err != nil {
		t.Fatal(err)
	}
	if n := q.own(); n != min(8, len(machine.List())) {
		t.Errorf("the adapter's own function has %d queues with RSS", n)
	}
	q.expects("with RSS", map[string]int{"three": 0, "two": 0}, "*RssOrVmqPreference")
	if err := d.RemoveVirtualSwitch("lab"); err != nil {
		t.Fatal(err)
	}
	if o := q.offer(); o.Offers != "RSS" || o.UsedQueues != 0 || len(o.Sharing) != 0 {
		t.Errorf("without the switch the adapter offers %+v", o)
	}
}
