package driver

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// places returns a program's end at the driver, and what waits until the address of twoCables is at an adapter for it.
func places(t *testing.T, d *Driver) (h *verbs.Host, at func(want string)) {
	t.Helper()
	h, err := verbs.Within(d.host, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h, func(want string) {
		t.Helper()
		await.Eventually(t, "the address is at "+want, func() bool {
			dev, err := h.DeviceByAddr(netip.MustParseAddr("10.99.0.2"))
			return err == nil && dev.Name() == want
		})
	}
}

// TestIPoIBTeam_Addresses: the address of a team of IPoIB interfaces is, for programs, that of the port that carries it, and of no other;
// when the team ends each port has its own again. A member is given no virtual functions.
func TestIPoIBTeam_Addresses(t *testing.T) {
	d := start(t, twoCables(t))
	defer stop(t, d)
	h, at := places(t, d)
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
	for _, m := range d.Status().Teams[0].Members {
		if m.Speed == 0 {
			t.Errorf("member %s has no speed", m.Adapter)
		}
	}
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
	await.Eventually(t, "it is disabled", func() bool {
		all := d.Teams()[0].Members
		return all[0].Status == "Disabled" || all[1].Status == "Disabled"
	})
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

// TestIPoIBTeam_Alone: a member of a team of IPoIB interfaces that comes or goes leaves the interface of the other alone. When the one that
// was attached first goes the team keeps its address; when the last one does each port has its own. Events tell of the members.
func TestIPoIBTeam_Alone(t *testing.T) {
	d := start(t, twoCables(t))
	defer stop(t, d)
	interfaceOf := func(name string) *service.Interface {
		d.ipoib.mu.Lock()
		defer d.ipoib.mu.Unlock()
		i, err := d.find(name)
		if x := d.ipoib.ports[i]; err == nil && x != nil {
			return x.list[name]
		}
		return nil
	}
	if _, err := d.CreateTeam(api.TeamRequest{Name: "T", Type: "AFT", IPoIB: true}); err != nil {
		t.Fatal(err)
	}
	attach := func(name string) {
		t.Helper()
		if _, err := d.AttachMember("T", name, api.TeamMemberRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	detach := func(name string) {
		t.Helper()
		if _, err := d.DetachMember("T", name); err != nil {
			t.Fatal(err)
		}
	}
	are := func(want string) {
		t.Helper()
		await.Eventually(t, "the members are "+want, func() bool {
			now := ""
			for _, m := range d.Teams()[0].Members {
				now += m.Adapter + " " + m.Status + " " + m.Role + " "
			}
			return now == want
		})
	}
	_, at := places(t, d)
	var wrong *api.FieldError
	_, err := d.AddVirtualPort(api.VirtualPortRequest{Connection: "T"})
	if !errors.As(err, &wrong) || !strings.Contains(wrong.Allowed, "over one physical port") {
		t.Errorf("a virtual port on the team: %v", err)
	}
	attach("right")
	are("right Connected Active ")
	at("right")
	was := interfaceOf("right")
	attach("left")
	are("right Connected Active left Connected Backup ")
	detach("left")
	attach("left")
	are("right Connected Active left Connected Backup ")
	if now := interfaceOf("right"); was == nil || now != was {
		t.Error("the interface that carries the team has begun anew")
	}
	wantEvent(t, d, "TeamMemberChanged", "right: member left", "Connected", "Backup")
	was = interfaceOf("left")
	detach("right") // it carries, and its address is the team's
	are("left Connected Active ")
	at("left")
	if now := interfaceOf("left"); now != was || d.Teams()[0].Carrier != "right" {
		t.Errorf("the other interface has begun anew, or the team is %+v", d.Teams())
	}
	wantEvent(t, d, "TeamMemberChanged", "right: member left", "Connected", "Active")
	detach("left")
	at("right")
}

// TestIPoIBTeam_Configured: a team of IPoIB interfaces of the configuration runs from the start, fails over and back, keeps its members
// from other teams and from virtual functions, and is there again after a restart.
func TestIPoIBTeam_Configured(t *testing.T) {
	t.Parallel()
	cfg := twoCables(t)
	cfg.Adapters[1].Team = &config.Team{Members: []config.TeamMember{{Adapter: "left"}, {Adapter: "right", Primary: true}}}
	d := start(t, cfg)
	defer func() { stop(t, d) }()
	are := func(want string) {
		t.Helper()
		await.Eventually(t, "the members are "+want, func() bool {
			all, now := d.Status().Teams, ""
			if len(all) != 1 || all[0].Adapter != "right" || all[0].Name != "" || !all[0].IPoIB {
				return false
			}
			for _, m := range all[0].Members {
				now += m.Adapter + " " + m.Status + " " + m.Role + " "
			}
			return now == want
		})
	}
	const both = "left Connected Backup right Connected Active "
	are(both)
	_, at := places(t, d)
	at("right")
	if err := d.SetAdapter(AdapterRequest{Adapter: "right"}); err != nil {
		t.Fatal(err)
	}
	are("left Connected Active right Disabled Backup ")
	at("left")
	if err := d.SetAdapter(AdapterRequest{Adapter: "right", Enable: true}); err != nil {
		t.Fatal(err)
	}
	are(both)
	at("right")
	if _, err := d.CreateTeam(api.TeamRequest{Name: "T", Type: "AFT", IPoIB: true}); err != nil {
		t.Fatal(err)
	}
	var wrong *api.FieldError
	if _, err := d.AttachMember("T", "left", api.TeamMemberRequest{}); !errors.As(err, &wrong) || wrong.Field != "adapter" {
		t.Errorf("a member of another team: %v", err)
	}
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "left", Name: "vf"}); !errors.Is(err, api.ErrUnsupported) {
		t.Errorf("a virtual function of a member: %v", err)
	}
	if err := (captureDriver{d}).Elsewhere("left"); err != nil { // its RDMA is its own
		t.Errorf("a capture of a member: %v", err)
	}
	stop(t, d)
	d = start(t, cfg)
	are(both)
}
