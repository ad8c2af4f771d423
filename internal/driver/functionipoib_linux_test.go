package driver

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestFunctions_IPoIB: virtual functions of an InfiniBand port have IPoIB interfaces in network namespaces, over which TCP goes, whether
// they share the port's LID or have LIDs of their own (SRIOV_IB_ROUTING_MODE). The interfaces stay when the adapter restarts with the
// other mode, and go with their functions.
func TestFunctions_IPoIB(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("needs /dev/net/tun")
	}
	d := start(t, twoCables(t))
	defer stop(t, d)
	red, blue := newSpace(t), newSpace(t)
	create(t, d, "left", "red", "tap=red0", "netns="+red.path(), "address=192.0.2.11/24")
	create(t, d, "left", "blue", "tap=blue0", "netns="+blue.path())
	red.address("red0", "10.7.0.1/24")
	blue.address("blue0", "10.7.0.2/24")
	carriers := func() bool {
		for name, s := range map[string]*space{"red0": red, "blue0": blue} {
			if l, err := s.h.LinkByName(name); err != nil || l.Attrs().RawFlags&unix.IFF_RUNNING == 0 || l.Attrs().MTU != 2044 {
				return false
			}
		}
		return true
	}
	for _, own := range []bool{false, true} {
		if own {
			mlxconfigured(t, d, 0, map[string]uint64{"SRIOV_IB_ROUTING_MODE_P1": 1})
		}
		await.Eventually(t, "red and blue have carriers", carriers)
		r, b, port := functionNamed(t, d, "red").Fabric.LID, functionNamed(t, d, "blue").Fabric.LID, uint16(d.portOf(0).LID)
		if r == 0 || own && (r == b || r == port || b == port || b == 0) || !own && (r != port || b != port) {
			t.Errorf("LIDs %d and %d, and the port has %d; own ones: %v", r, b, port, own)
		}
		if _, err := red.send(blue, "10.7.0.2", 1<<20, await.Limit); err != nil {
			t.Errorf("TCP from red to blue, with LIDs of their own: %v: %v", own, err)
		}
	}
	functionIPoIBShown(t, d)
	functionIPoIBPorts(t, d, red, blue)
	if err := d.RemoveFunction("red"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"red0", "ired"} {
		if _, err := red.h.LinkByName(name); err == nil {
			t.Errorf("the interface %s of red is there without red", name)
		}
	}
	if left := d.VirtualPorts(); len(left) != 1 || left[0].Port != "blue" {
		t.Errorf("without red there are the virtual ports %+v, want that of blue", left)
	}
}

// functionIPoIBPorts makes virtual ports of red and blue, in partitions that they have and in no others. They are interfaces in the
// namespaces of their functions, stay when the adapter restarts, and end while their function has no IPoIB.
func functionIPoIBPorts(t *testing.T, d *Driver, red, blue *space) {
	t.Helper()
	create(t, d, "left", "bare")
	var field *api.FieldError
	for _, q := range []api.VirtualPortRequest{{Connection: "red", PKey: "8022"}, {Connection: "bare"}, {Connection: "nobody"}} {
		if _, err := d.AddVirtualPort(q); !errors.As(err, &field) {
			t.Errorf("%+v: error %v, want one of a field", q, err)
		}
	}
	for name, iname := range map[string]string{"red": "ired", "blue": "iblue"} {
		v, err := d.AddVirtualPort(api.VirtualPortRequest{Connection: name, IName: iname, PKey: "7FFF"})
		if err != nil || v.Port != name || v.IName != iname {
			t.Fatalf("made %+v (%v)", v, err)
		}
	}
	red.address("ired", "10.8.0.1/24")
	blue.address("iblue", "10.8.0.2/24")
	both := func() bool {
		list := d.VirtualPorts()
		return len(list) == 2 && list[0].State == "up" && list[1].State == "up"
	}
	await.Eventually(t, "the virtual ports are up", both)
	if _, err := red.send(blue, "10.8.0.2", 1<<20, await.Limit); err != nil {
		t.Errorf("TCP between the virtual ports: %v", err)
	}
	if err := d.RestartAdapter("left"); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the virtual ports are up after a restart", both)
	if _, err := red.send(blue, "10.8.0.2", 1<<20, await.Limit); err != nil {
		t.Errorf("TCP between the virtual ports after a restart: %v", err)
	}
	if f := functionNamed(t, d, "red"); len(f.IPoIB) != 2 || f.IPoIB[1].IName != "ired" || f.IPoIB[1].Interface != "ired" || f.IPoIB[1].PKey != 0xffff {
		t.Errorf("red has the interfaces %+v", f.IPoIB)
	}
	if err := d.SetFunction(api.FunctionRequest{Name: "red", Settings: []string{"tap=none", "netns=none"}}); err != nil {
		t.Fatal(err)
	}
	if list := d.VirtualPorts(); len(list) != 2 || !slices.ContainsFunc(list, func(v api.VirtualPort) bool {
		return v.Port == "red" && strings.Contains(v.State, "no IPoIB interface")
	}) {
		t.Errorf("while red has no IPoIB there are %+v", list)
	}
	if err := d.SetFunction(api.FunctionRequest{Name: "red", Settings: []string{"tap=red0", "netns=" + red.path()}}); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the virtual ports are up again", both)
}

// functionIPoIBShown checks that the IPoIB interfaces of red and blue, over which packets went, are in the status, that their end points
// can be listed, and that they have instances in the counter sets, each by the name of its function.
func functionIPoIBShown(t *testing.T, d *Driver) {
	t.Helper()
	for _, name := range []string{"red", "blue"} {
		f := functionNamed(t, d, name)
		if len(f.IPoIB) != 1 {
			t.Fatalf("%s has the IPoIB interfaces %+v, want one", name, f.IPoIB)
		}
		x := f.IPoIB[0]
		if x.Connection != name || x.Interface != name+"0" || x.State != "up" || x.MTU != 2044 || x.PKey != 0xffff || x.MAC == "" ||
			x.MAC == d.ipoibMAC(0) || x.Remote == 0 || x.Counters["sent_packets"] == 0 || x.Counters["received_packets"] == 0 {
			t.Errorf("the IPoIB interface of %s is %+v", name, x)
		}
		if f.Fabric.Routing != "LID" || len(f.Fabric.GIDs) != 1 {
			t.Errorf("%s has %+v of its port, want a GID, found by LID", name, f.Fabric)
		}
		if ends, err := d.Endpoints(name); err != nil || len(ends) != 1 || len(ends[0].Remote) == 0 {
			t.Errorf("the end points of %s are %+v (%v)", name, ends, err)
		}
		snap, err := d.counters.Snapshot("network_interface(" + name + ").sent_packets")
		if err != nil || len(snap.Instances) != 1 || *snap.Instances[0].Values[0].Raw == 0 {
			t.Errorf("the counters of %s are %+v (%v)", name, snap.Instances, err)
		}
	}
	if own := d.Overview().Adapters[0].IPoIB; len(own) != 1 {
		t.Errorf("the port has the interfaces %+v, want its own alone", own)
	}
}
