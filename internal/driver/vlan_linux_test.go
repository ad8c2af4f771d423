package driver

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/verbs"
)

// mustVLAN makes a VLAN interface with an address.
func mustVLAN(t *testing.T, d *Driver, owner string, id int, address string) api.VLANStatus {
	t.Helper()
	v, err := d.CreateVLAN(api.VLANRequest{Owner: owner, Name: "V", ID: id, Priority: 1, Address: address})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// acrossVLAN writes from a program at one address to a program at another, both of which are of VLAN interfaces.
func acrossVLAN(t *testing.T, d *Driver, from, to string) {
	t.Helper()
	var sides [2]*checkSide
	addrs := [2]netip.Addr{netip.MustParseAddr(from), netip.MustParseAddr(to)}
	for i, a := range addrs {
		session, err := verbs.Within(d.host, "vlan")
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if sides[i], err = newCheckSide(session, a, checkBytes, verbs.LocalWrite|verbs.RemoteWrite); err != nil {
			t.Fatal(err)
		}
		defer sides[i].close()
	}
	a, b := sides[0], sides[1]
	disconnect, err := connect(t.Context(), a, b, addrs[0], addrs[1])
	if err != nil {
		t.Fatal(err)
	}
	fill(a.mr.Bytes(), addrs[0], addrs[1])
	if err := a.run(t.Context(), &verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{a.mr.SGE(0, checkBytes)}, RemoteAddr: b.mr.RemoteAddr(),
		RKey: b.mr.RKey()}); err != nil {
		t.Fatal(err)
	}
	if string(a.mr.Bytes()) != string(b.mr.Bytes()) {
		t.Error("other bytes have arrived")
	}
	if err := disconnect(); err != nil {
		t.Error(err)
	}
}

// TestVLAN_Life: a VLAN interface of a team and one of an adapter reach each other in their VLAN, go on when they are changed, are there
// after restarts of their adapter and of the driver, and leave nothing; the team and its adapters go on beside them.
func TestVLAN_Life(t *testing.T) {
	c := parsed(t, threeAtASwitch...)
	d := start(t, c)
	mustVLAN(t, d, "a", 10, "198.51.100.1/24") // disabled with its adapter
	if _, err := d.RemoveVLAN("a", "V"); err != nil {
		t.Fatal(err)
	}
	mustTeam(t, d, "AFT", "a", "b")
	v := mustVLAN(t, d, "T", 10, "198.51.100.1/24")
	mustVLAN(t, d, "c", 10, "198.51.100.3/24")
	if !v.Up || v.Owner != "T" || v.Adapter != "a" || v.Device != "a.V" || v.MAC != d.Status().Adapters[0].MAC || len(v.GIDs) == 0 {
		t.Errorf("it is %+v", v)
	}
	acrossVLAN(t, d, "198.51.100.1", "198.51.100.3")
	across(t, end{d, 0}, end{d, 2})
	for _, owner := range []string{"T", "c"} {
		if _, err := d.ModifyVLAN(owner, "v", api.VLANRequest{Name: "W", ID: 20, Priority: 3}); err != nil {
			t.Fatal(err)
		}
	}
	restart(t, d, "c")
	acrossVLAN(t, d, "198.51.100.3", "198.51.100.1")
	if _, err := d.DetachMember("T", "a"); err != nil { // by the wire of the other it carries the team, and its VLAN interface
		t.Fatal(err)
	}
	acrossVLAN(t, d, "198.51.100.1", "198.51.100.3")
	stop(t, d)
	d = start(t, c)
	defer stop(t, d)
	acrossVLAN(t, d, "198.51.100.3", "198.51.100.1")
	all := d.VLANs()
	if len(all) != 2 || all[0].GUID != v.GUID || all[0].Adapter != "a" || all[1].ID != 20 || all[1].Priority != 3 || all[1].Name != "W" {
		t.Fatalf("after a restart there are %+v", all)
	}
	if w := d.vlanWords(2); len(w) != 1 || w[0].Name != "c.W" || w[0].Values["sent_bytes"] < checkBytes || w[0].Values["id"] != 20 ||
		w[0].Values["priority"] != 3 || w[0].Values["up"] != 1 {
		t.Errorf("counters of c's VLAN interfaces: %+v", w)
	}
	if s := d.Status().Adapters[2].VLANs; len(s) != 1 || s[0].Counters["sent_bytes"] < checkBytes {
		t.Errorf("the status of c has %+v", s)
	}
	for _, owner := range []string{"T", "c"} {
		if _, err := d.RemoveVLAN(owner, "W"); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.VLANs()) != 0 || len(d.Registry().VLANs()) != 0 {
		t.Errorf("there are %+v, and %+v is kept", d.VLANs(), d.Registry().VLANs())
	}
	across(t, end{d, 0}, end{d, 2})
}

// TestVLAN_AddressTaken: an interface whose address somebody has is not made, and one that cannot change is what it was.
func TestVLAN_AddressTaken(t *testing.T) {
	d := start(t, parsed(t, threeAtASwitch...))
	defer stop(t, d)
	var wrong *api.FieldError
	_, err := d.CreateVLAN(api.VLANRequest{Owner: "a", Name: "V", ID: 10, Address: "192.0.2.2/24"})
	if !errors.As(err, &wrong) || wrong.Field != "address" || len(d.VLANs()) != 0 || len(d.Registry().VLANs()) != 0 {
		t.Errorf("with another's address: %v; there are %+v", err, d.VLANs())
	}
	mustVLAN(t, d, "a", 10, "")
	if v := mustVLAN(t, d, "b", 10, ""); v.Address[:6] != "fe80::" {
		t.Errorf("without an address it has %s", v.Address)
	}
}

// TestVLAN_OfFunction: a VLAN interface of a virtual function at a team has that one's MAC, lives as long as that does, also over resets,
// changes and restarts of the driver, and goes with it; the function stays out of VLANs of its own meanwhile.
func TestVLAN_OfFunction(t *testing.T) {
	c := parsed(t, threeAtASwitch...)
	d := start(t, c)
	defer func() { stop(t, d) }()
	mustTeam(t, d, "AFT", "a", "b")
	create := func(name, settings string) {
		t.Helper()
		if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: name, Settings: []string{settings}}); err != nil {
			t.Fatal(err)
		}
	}
	set := func(words ...string) error { return d.setFunction(api.FunctionRequest{Name: "red", Settings: words}) }
	create("red", "address=192.0.2.11/24")
	create("blue", "vlan=30")
	create("green", "vsid=5001")
	v := mustVLAN(t, d, "RED", 10, "198.51.100.11/24")
	is := func(when, mac string, up bool) {
		t.Helper()
		all := d.VLANs()
		if len(all) != 1 || all[0].Up != up || all[0].MAC != mac || all[0].GUID != v.GUID || all[0].Function != "red" || all[0].Owner != "red" ||
			all[0].Adapter != "a" || all[0].Device != "red.V" {
			t.Errorf("%s: there are %+v", when, all)
		}
	}
	is("made", d.Functions()[0].MAC, true)
	if w := d.vlanWords(0); len(w) != 1 || w[0].Name != "red.V" {
		t.Errorf("counters are %+v", w)
	}
	if err := d.ResetFunction("red"); err != nil {
		t.Fatal(err)
	}
	is("reset", d.Functions()[0].MAC, true)
	if err := set("mac=02:00:00:00:00:21"); err != nil {
		t.Fatal(err)
	}
	is("with another MAC", "02:00:00:00:00:21", true)
	if err := set("link=down"); err != nil {
		t.Fatal(err)
	}
	is("down", "02:00:00:00:00:21", false)
	if err := set("link=auto"); err != nil {
		t.Fatal(err)
	}
	var wrong *api.FieldError
	for _, own := range []string{"vlan=10", "vsid=5001"} {
		if err := set(own); !errors.As(err, &wrong) || wrong.Field != "vlan, vsid" {
			t.Errorf("%s of its own: %v", own, err)
		}
	}
	for owner, why := range map[string]string{"blue": "in VLAN 30", "green": "virtual subnet 5001"} { // the host's tag, and none: RFC 7348, 6.1
		_, err := d.CreateVLAN(api.VLANRequest{Owner: owner, Name: "X", ID: 11})
		if !errors.As(err, &wrong) || wrong.Field != "adapter or team" || !strings.Contains(wrong.Value, why) {
			t.Errorf("of %s: %v, want one that says %q", owner, err, why)
		}
	}
	restart(t, d, "a")
	is("restarted", "02:00:00:00:00:21", true)
	if _, err := d.DetachMember("T", "a"); err != nil {
		t.Fatal(err)
	}
	is("without the team", "02:00:00:00:00:21", true)
	stop(t, d)
	d = start(t, c)
	is("after a restart", "02:00:00:00:00:21", true)
	if err := d.removeFunction("red"); err != nil {
		t.Fatal(err)
	}
	if len(d.VLANs()) != 0 || len(d.Registry().VLANs()) != 0 {
		t.Errorf("there are %+v, and %+v is kept", d.VLANs(), d.Registry().VLANs())
	}
}
