package vswitch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
)

func (h *house) configure(name string, settings ...string) error {
	return h.SetVirtualSwitch(api.SwitchSettings{Switch: name, Settings: settings})
}

// rules says of functions what their switches say of them.
func (h *house) rules(names ...string) string {
	var list []string
	for _, n := range names {
		r := h.Rules(n)
		list = append(list, n+map[bool]string{true: " blocked"}[r.Blocked]+map[bool]string{true: " frames"}[r.PacketDirect])
	}
	return strings.Join(list, ", ")
}

// TestFilterPlatform: it blocks the ports of machines and no others, until it is disabled at one; a restart of the machine and of the
// platform itself brings it back there, one of the driver does not (WinOF-2 24.4, Using PacketDirect for VM).
func TestFilterPlatform(t *testing.T) {
	h := newHouse()
	all := []string{"host", "red", "blue", "none"}
	h.does(t, h.create("s", "a", true), h.add("s", "host"), h.add("s", "red", "machine=r"), h.add("s", "blue", "machine=b", "iov=0"))
	want := func(rules string) {
		t.Helper()
		for range 2 {
			if got := h.rules(all...); got != rules {
				t.Errorf("%s; want %s", got, rules)
			}
			h.open() // the next driver
		}
	}
	want("host, red, blue, none")
	if did := h.does(t, h.configure("S", "vfp=on")); did != "follow blue; follow host; follow red" {
		t.Errorf("enabled: %s", did)
	}
	want("host, red blocked, blue blocked, none")
	if did := h.does(t, h.set("s", "red", "vfp=off"), h.set("s", "red", "vfp=off")); did != "follow red" {
		t.Errorf("disabled at a port: %s", did)
	}
	want("host, red, blue blocked, none")
	if did := h.does(t, h.Restarted("blue"), h.Restarted("Red"), h.Restarted("host"), h.Restarted("none")); did != "follow red" {
		t.Errorf("a machine restarts: %s", did)
	}
	want("host, red blocked, blue blocked, none")
	h.does(t, h.set("s", "red", "vfp=off"), h.set("s", "blue", "machine=none"), h.configure("s", "vfp=off"))
	want("host, red, blue, none")
	if did := h.does(t, h.configure("s", "vfp=off"), h.configure("s", "vfp=on")); did != "follow blue; follow host; follow red" {
		t.Errorf("enabled again: %s", did)
	}
	want("host, red blocked, blue, none")
	if did := h.does(t, h.set("s", "red", "vfp=off", "max=5"), h.add("s", "green", "machine=g", "vfp=off")); did !=
		"set red [max=5]; create a green [rdma=on]" {
		t.Errorf("disabled beside another setting: %s", did)
	}
	all = append(all, "green")
	want("host, red, blue, none, green")
}

// TestPacketDirect: it is on where the adapter's key offers it, concerns all adapters of the switch, and taking it away makes their
// functions anew.
func TestPacketDirect(t *testing.T) {
	h := newHouse()
	_, err := h.CreateVirtualSwitch(api.SwitchRequest{Name: "p", Adapter: "a", PacketDirect: true})
	h.does(t, err, h.create("q", "b", false), h.add("p", "host"), h.add("p", "red", "machine=r"), h.add("q", "blue"))
	if got := h.rules("host", "red", "blue"); got != "host frames, red frames, blue" {
		t.Errorf("at first: %s", got)
	}
	if did := h.does(t, h.configure("p", "vfp=on", "packetdirect=off")); did != "follow host anew; follow red anew" {
		t.Errorf("taken away: %s", did)
	}
	if did := h.does(t, h.configure("p", "packetdirect=on")); did != "follow host; follow red" {
		t.Errorf("offered again: %s", did)
	}
	h.open()
	if got := h.rules("host", "red", "blue"); got != "host frames, red blocked frames, blue" {
		t.Errorf("at the next driver: %s", got)
	}
	_, taken := h.CreateVirtualSwitch(api.SwitchRequest{Name: "t", Adapter: "b", PacketDirect: true})
	h.does(t, h.RemoveVirtualSwitch("q"))
	_, made := h.CreateVirtualSwitch(api.SwitchRequest{Name: "t", Adapter: "b", PacketDirect: true})
	h.does(t, h.create("t", "b", false))
	for _, err := range []error{taken, made, h.configure("t", "packetdirect=on"), h.configure("t", "vfp=yes"), h.configure("t"), h.configure("t", "x=on"),
		h.configure("none", "vfp=on"), h.configure("t", "vfp=on", "vfp=on"), h.configure("t", "vfp"), h.set("p", "red", "vfp=no"),
		h.set("p", "host", "vfp=off"), h.add("p", "green", "vfp=on")} {
		var wrong *api.FieldError
		if !errors.As(err, &wrong) {
			t.Errorf("not refused: %v", err)
		}
	}
	if v := h.VirtualSwitches(); len(v) != 2 || v[1].PacketDirect || v[1].VFP || !v[0].PacketDirect || len(v[0].Adapters) != 2 {
		t.Errorf("after what was refused there is %+v", v)
	}
}

// TestFilterFails: what the driver cannot do is told, and a port is as it was.
func TestFilterFails(t *testing.T) {
	h := newHouse()
	h.does(t, h.create("s", "a", true), h.configure("s", "vfp=on"), h.add("s", "red", "machine=r"))
	h.f.fail = errors.New("no")
	if h.set("s", "red", "vfp=off") == nil || h.rules("red") != "red blocked" {
		t.Errorf("%s", h.rules("red"))
	}
	if h.open(); h.rules("red") != "red blocked" {
		t.Errorf("the next driver: %s", h.rules("red"))
	}
}

// TestFilterFollows: the configuration says whether a switch has PacketDirect and the filter platform, and at which ports not; a start
// with the same configuration changes nothing.
func TestFilterFollows(t *testing.T) {
	h := newHouse()
	c := config.VirtualSwitch{Name: "s", Adapter: "a", IOV: true, PacketDirect: true, VFP: true, Adapters: []config.SwitchAdapter{
		{Function: "red", Settings: []string{"machine=r", "vfp=off"}}, {Function: "blue", Settings: []string{"machine=b"}}}}
	for range 2 {
		h.does(t, h.Follow([]config.VirtualSwitch{c}))
		if got := h.rules("red", "blue"); got != "red frames, blue blocked frames" {
			t.Error(got)
		}
		h.does(t, h.set("s", "blue", "vfp=off"))
		h.open()
		h.does(t, h.set("s", "blue", "vfp=on"))
	}
	c.VFP, c.PacketDirect = false, false
	h.does(t, h.Follow([]config.VirtualSwitch{c}))
	if got := h.rules("red", "blue"); got != "red, blue" {
		t.Error(got)
	}
}

// TestOwned: functions of switches are not removed, and what their switches decide of them is not changed, past these; the refusal says
// what to do.
func TestOwned(t *testing.T) {
	h := newHouse()
	h.does(t, h.create("s", "a", true), h.add("s", "red"))
	for _, c := range []struct {
		function string
		settings []string
		want     string
	}{
		{"red", nil, "softvpi vswitch remove-adapter s red"}, {"RED", []string{"max=5", "rdma=off"}, "softvpi vswitch set s red rdma=off"},
		{"red", []string{"queues=4"}, "softvpi vswitch set s red queues=4"}, {"red", []string{"max=5", "vlan=7"}, ""}, {"red", []string{}, ""},
		{"other", nil, ""}, {"other", []string{"rdma=off"}, ""},
	} {
		if err := h.Owned(c.function, c.settings); (err == nil) != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s %q: %v, want %q", c.function, c.settings, err, c.want)
		}
	}
}
