package driver

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// connectionOf waits for an adapter's interface and returns it when it is up.
func connectionOf(t *testing.T, d *Driver, i uint32, name string) (f *service.Interface) {
	t.Helper()
	await.Eventually(t, name+" runs", func() bool { f = d.ipoib.find(i, name); return f != nil })
	await.Eventually(t, name+" is up", func() bool { s, _ := d.ipoib.look(i, name); return stateText(s.State, true) == "up" })
	return f
}

// TestIPoIBIsShown: the state and counters of IPoIB interfaces, an adapter's own and those of virtual ports, are in
// the status, their end points can be listed, and they have instances in the counter sets. A restart of the adapter
// makes them anew.
func TestIPoIBIsShown(t *testing.T) {
	cfg := twoCables(t)
	cfg.Adapters[0].Address = netip.MustParseAddr("10.99.0.1")
	d := start(t, cfg)
	defer stop(t, d)
	v, err := d.AddVirtualPort(api.VirtualPortRequest{Connection: "left", IName: "ivirtual"})
	if err != nil {
		t.Fatal(err)
	}
	left := connectionOf(t, d, 0, "left")
	connectionOf(t, d, 1, "right")
	connectionOf(t, d, 0, v.Connection)
	p := make([]byte, eth.IPv4Len+eth.UDPLen)
	eth.IPv4(p).Encode(0, len(p), 1, 64, eth.ProtocolUDP, [4]byte{10, 99, 0, 1}, [4]byte{10, 99, 0, 2})
	eth.UDP(p[eth.IPv4Len:]).Encode(7, 7, eth.UDPLen)
	await.Eventually(t, "the packets arrive", func() bool {
		left.Send([][]byte{p})
		s, _ := d.ipoib.look(1, "right")
		return s.Counters.ReceivedPackets > 2
	})
	s := d.Overview().Adapters[0]
	if len(s.IPoIB) != 2 || s.IPoIB[0].Connection != "left" || s.IPoIB[1].IName != "ivirtual" || s.IPoIB[1].Connection != v.Connection {
		t.Fatalf("the status has the interfaces %+v, want left's own and its virtual port's", s.IPoIB)
	}
	x := s.IPoIB[0]
	if !x.Connected || x.State != "up" || x.MTU != 2044 || x.PKey != 0xffff || len(x.Address) != 59 || x.MAC == "" || x.MAC != s.MAC ||
		x.Broadcast != "ff12:401b:ffff::ffff:ffff" || x.MLID < 0xc000 || x.Local != 1 || x.Remote != 1 || x.Counters["sent_packets"] < 3 ||
		x.Counters["bandwidth"] != 100e9 {
		t.Errorf("left's interface is %+v", x)
	}
	if e := d.Overview().Adapters; len(e[1].IPoIB) != 1 || e[1].IPoIB[0].Counters["received_packets"] < 3 {
		t.Errorf("the overview of right has %+v, want one interface that has received 3 packets", e[1].IPoIB)
	}
	ends, err := d.Endpoints("LEFT")
	if err != nil || len(ends) != 1 || ends[0].Connection != "left" || len(ends[0].Local) != 1 || !ends[0].Local[0].Configured ||
		len(ends[0].Remote) != 1 || ends[0].Remote[0].Address != netip.MustParseAddr("10.99.0.2") ||
		ends[0].Remote[0].LID == 0 || ends[0].Remote[0].State != "reachable" || ends[0].Multicast[0].MGID.String() != x.Broadcast ||
		ends[0].Multicast[0].State != "joined" {
		t.Errorf("left's end points are %+v (%v)", ends, err)
	}
	if all, err := d.Endpoints(""); err != nil || len(all) != 3 {
		t.Errorf("all end points are %+v (%v), want those of 3 interfaces", all, err)
	}
	var field *api.FieldError
	if _, err := d.Endpoints("nobody"); !errors.As(err, &field) {
		t.Errorf("end points of an unknown interface: error %v, want one of the field", err)
	}
	read := func(path string) map[string]uint64 {
		t.Helper()
		snap, err := d.counters.Snapshot(path)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]uint64{}
		for _, in := range snap.Instances {
			out[in.Name] = *in.Values[0].Raw
		}
		return out
	}
	if got := read("network_interface.sent_packets"); len(got) != 3 || got["left"] < 3 || got["right"] != 0 {
		t.Errorf("the sent packets are %v, want 3 or more for left and none for right", got)
	}
	before := read("ipoib.sa_requests")["left"]
	if err := d.counters.Reset(counters.ResetRequest{Set: "ipoib", Adapter: "left"}); err != nil || before == 0 ||
		read("ipoib.sa_requests")["left"] != 0 || read("ipoib.sa_requests")["right"] == 0 {
		t.Errorf("before the reset %v, after it %v; want only left's cleared", before, read("ipoib.sa_requests"))
	}
	if err := d.RestartAdapter("left"); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "a restart clears the counters", func() bool {
		n, ok := read("network_interface.sent_packets")["left"]
		return ok &&
			n == 0
	})
}
