package driver

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// TestIPoIBTeam_Addresses: the address of a team of IPoIB interfaces is, for programs, that of the port that carries it, and of no other;
// when the team ends each port has its own again. A member is given no virtual functions.
func TestIPoIBTeam_Addresses(t *testing.T) {
	d := start(t, twoCables(t))
	defer stop(t, d)
	h, err := verbs.Within(d.host, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	at := func(want string) {
		t.Helper()
		await.Eventually(t, "the address is at "+want, func() bool {
			dev, err := h.DeviceByAddr(netip.MustParseAddr("10.99.0.2"))
			return err == nil && dev.Name() == want
		})
	}
	at("right")
	if _, err := d.CreateTeam(api.TeamRequest{Name: "T", Type: "AFT", IPoIB: true}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"right", "left"} {
		if _, err := d.AttachMember("T", name, api.TeamMemberRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	await.Eventually(t, "both are connected", func() bool {
		all := d.Teams()
		return len(all) == 1 && all[0].Members[0].Status == "Connected" && all[0].Members[1].Status == "Connected"
	})
	now := ""
	await.Eventually(t, "the address is at a member", func() bool {
		dev, err := h.DeviceByAddr(netip.MustParseAddr("10.99.0.2"))
		if err == nil {
			now = dev.Name()
		}
		return err == nil
	})
	other := map[string]string{"left": "right", "right": "left"}[now]
	if err := d.SetAdapter(AdapterRequest{Adapter: now}); err != nil {
		t.Fatal(err)
	}
	at(other)
	if err := d.SetAdapter(AdapterRequest{Adapter: now, Enable: true}); err != nil {
		t.Fatal(err)
	}
	d.changes.Lock()
	for i := range d.running {
		if why := d.noFunctions(i); why == "" {
			t.Errorf("adapter %d of the team may have virtual functions", i)
		}
	}
	d.changes.Unlock()
	if _, err := d.RemoveTeam("T"); err != nil {
		t.Fatal(err)
	}
	at("right")
}
