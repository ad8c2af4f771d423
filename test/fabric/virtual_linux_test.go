package fabric

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// With Debian's OpenSM, which does not know of virtualization, a virtual function by alias GUID is up, and one that is to have a LID of its
// own is down and says why. OpenSM finds no fault with the port.
func TestVirtualFunctionsOfOpenSM(t *testing.T) {
	d := newDatagrams(t)
	h, err := device.NewHost(device.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	port, err := d.rack.Plug(fabric.Place{Node: 1, Port: 1}, h.Wake)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := h.AddAdapter(device.AdapterConfig{Name: "pf", Link: port, Addr: netip.MustParseAddr("192.0.2.1")})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"alias", "lid"} {
		guid := uint64(0x0200_0000_0000_0021 + i)
		f := device.FunctionConfig{Owner: owner, Name: name, GUID: guid, ByLID: name == "lid",
			Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(11 + i)}), 24)}
		f.Aliases = device.AliasGUIDs{List: [2]uint64{guid}, Used: 1}
		if _, err := h.AddFunction(f); err != nil {
			t.Fatal(err)
		}
	}
	opensm := d.at("hca1", "opensm", "-f", filepath.Join(d.dir, "opensm.log"), "-d", "2")
	if err := opensm.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = opensm.Process.Kill()
		_ = opensm.Wait()
	})
	await.Eventually(t, "OpenSM brings the alias GUID up, and the other function says why it is down", func() bool {
		list := h.Functions(owner)
		return list[0].Up && list[0].Fabric.LID != 0 && !list[1].Up && list[1].Fabric.LID == 0 && list[1].Fabric.Why != nil &&
			strings.Contains(list[1].Fabric.Why.Error(), "does not enable virtualization")
	})
	log, err := os.ReadFile(filepath.Join(d.dir, "opensm.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(log), "\n") {
		if strings.Contains(line, "ERR ") {
			t.Errorf("OpenSM has an error: %s", line)
		}
	}
}
