package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// virtual is the virtual function that the fake driver has.
var virtual = api.FunctionStatus{Name: "red", Adapter: "Ethernet 1", MAC: "02:00:00:00:00:09", Address: "192.0.2.9/24", VLAN: 7, VSID: 5001, VLANs: "none",
	Link: "up", Up: true, Max: 500, Group: hostile, TAP: "red0", Programs: 3, QPs: 17, Counters: map[string]uint64{"sent_bytes": 4711, "spoofed_mac": 2}}

func (f *fake) Functions() []api.FunctionStatus { return []api.FunctionStatus{virtual} }
func (f *fake) CreateFunction(q api.FunctionRequest) (api.FunctionStatus, error) {
	return virtual, f.do("create %s at %s %s", q.Name, q.Adapter, strings.Join(q.Settings, " "))
}
func (f *fake) SetFunction(q api.FunctionRequest) error {
	return f.do("set %s %s", q.Name, strings.Join(q.Settings, " "))
}
func (f *fake) RemoveFunction(name string) error { return f.do("remove %s", name) }
func (f *fake) Overlay() api.Overlay {
	return api.Overlay{Switches: []api.OverlayStatus{{Adapter: "Ethernet 1", Functions: 2, Records: 4,
		Counters: map[string]uint64{"sent": 1000, "sent_bytes": 90000, "dropped_no_record": 3, "dropped_nobody": 1}}}}
}
func (f *fake) AddOverlayEntry(api.OverlayRequest) (e api.OverlayEntry, err error) { return e, nil }
func (f *fake) RemoveOverlayEntries(api.OverlayRequest) ([]api.OverlayEntry, error) {
	return nil, nil
}
func (f *fake) ResetFunction(name string) error { return f.do("reset %s", name) }

// TestFunctionsAreShown: the page has physical and virtual functions with owners, limits and counters, and the settings of a chosen one.
func TestFunctionsAreShown(t *testing.T) {
	b := newBench(t)
	b.status.Adapters[0].SRIOV = &api.SRIOVStatus{Support: "Unknown", Cause: "SRIOV_EN is 0", Requested: 32}
	w := b.get("/web/functions")
	text := w.Body.String()
	if w.Code != http.StatusOK || strings.Contains(text, hostile) {
		t.Fatalf("status %d, or a name is not shown as text", w.Code)
	}
	for _, want := range []string{"SRIOV_EN is 0.", "(physical)", ">red</a>", "up (up)", "02:00:00:00:00:09", `data-name="VLAN">7<`, `data-name="Subnet">5001<`,
		"Overlay: 2 functions in virtual subnets, 4 records; sent 1\u202f000 frames (90\u202f000 bytes) in tunnels",
		"dropped: no record 3, nobody 1.", "at most 500 Mb/s",
		"3 programs, group ", "interface red0", `data-name="Queue pairs">17<`, "4\u202f711", `data-name="Dropped">2<`, "A new virtual function",
		`<option>Ethernet 1</option>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	text = b.get("/web/functions?name=red").Body.String()
	for _, want := range []string{"Settings of red", `name="vlan" value="7"`, `name="was-max" value="500"`, `<option selected>up</option>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the form lacks %s", want)
		}
	}
	if w := b.get("/web/functions?name=nobody"); w.Code != http.StatusNotFound {
		t.Errorf("a function that there is not: %d", w.Code)
	}
}

// TestFunctionsAreChanged: the forms ask the driver for what differs, and what it refuses is beside its field, with what was entered.
func TestFunctionsAreChanged(t *testing.T) {
	b := newBench(t)
	b.status.Adapters[0].SRIOV = &api.SRIOVStatus{}
	const page = "/web/functions"
	for _, form := range []url.Values{
		{"action": {"create"}, "adapter": {"Ethernet 1"}, "name": {"blue"}, "mac": {""}, "was-mac": {""}, "vlan": {" 9 "}, "was-vlan": {"0"}},
		{"action": {"set"}, "name": {"red"}, "max": {"100"}, "was-max": {"500"}, "min": {"0"}, "was-min": {"0"}},
		{"action": {"set"}, "name": {"red"}, "min": {"0"}, "was-min": {"0"}},
		{"action": {"reset"}, "name": {"red"}}, {"action": {"remove"}, "name": {"red"}},
	} {
		if w := b.post(page, form); w.Code != http.StatusSeeOther {
			t.Errorf("%v: status %d", form, w.Code)
		}
	}
	if want := []string{"create blue at Ethernet 1 vlan=9", "set red max=100", "reset red", "remove red"}; !slices.Equal(b.did, want) {
		t.Errorf("done: %q", b.did)
	}
	b.fail = api.Wrong("vlan", `"x"`, "0 (none), 1 to 4094")
	for _, form := range []url.Values{{"action": {"create"}, "adapter": {"Ethernet 1"}, "name": {"blue"}, "vlan": {"x"}},
		{"action": {"set"}, "name": {"red"}, "vlan": {"x"}, "was-vlan": {"7"}}} {
		w := b.post(page, form)
		if text := w.Body.String(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(text, "0 (none), 1 to 4094</p>") ||
			!strings.Contains(text, `name="vlan" value="x" maxlength="4200" autocomplete="off" spellcheck="false" aria-describedby="vf-vlan-help" aria-invalid="true"`) {
			t.Errorf("%v: status %d, or the field is not marked", form, w.Code)
		}
	}
	b.fail = api.Wrong("name", `"a/b"`, "letters")
	if w := b.post(page, url.Values{"action": {"create"}, "name": {"a/b"}}); w.Code != http.StatusUnprocessableEntity ||
		!strings.Contains(w.Body.String(), `value="a/b"`) || !strings.Contains(w.Body.String(), "Allowed: letters") {
		t.Errorf("a wrong name: status %d", w.Code)
	}
	b.fail = nil
	if w := b.post(page, url.Values{"action": {"explode"}}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("an action that there is not: status %d", w.Code)
	}
}

// TestFunctionsOfInfiniBand: at an InfiniBand port the page has LIDs, by what they are found, GIDs, P_Keys and IPoIB interfaces in place
// of MACs and VLANs, and the form the settings of such functions.
func TestFunctionsOfInfiniBand(t *testing.T) {
	was := virtual
	defer func() { virtual = was }()
	virtual.MAC, virtual.VLAN, virtual.VSID, virtual.PKeysGiven = "", 0, 0, "0x8022"
	virtual.Fabric = &api.FunctionFabric{LID: 17, Routing: "LID", Asked: []string{"0x0200000000000021"}, GIDs: []string{"fe80::200:0:0:21"},
		PKeys: []string{"0x8022"}}
	virtual.IPoIB = []api.IPoIBStatus{{Connection: "red", Interface: hostile, State: "up", PKey: 0x8022,
		Counters: map[string]uint64{"sent_packets": 4712}},
		{Connection: "Ethernet 2", IName: "ired", State: "disconnected: the partition is not there", Counters: map[string]uint64{}}}
	b := newBench(t)
	b.status.Adapters[0].InfiniBand = &api.InfiniBandStatus{LID: 3, PKeys: []uint16{0xffff}}
	text := b.get("/web/functions").Body.String()
	for _, want := range []string{`data-name="LID">3<`, `data-name="LID">17, by LID<`, "fe80::200:0:0:21", "0x8022 (0x8022)", "0xffff",
		"P_Key 0x8022, sent 4\u202f712 packets", "<br>Ethernet 2 (ired): disconnected: the partition is not there, interface none, no partition"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(text, hostile) {
		t.Error("a name is not shown as text")
	}
	text = b.get("/web/functions?name=red").Body.String()
	for _, want := range []string{`name="guid" value="0x0200000000000021"`, `name="pkeys" value="0x8022"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the form lacks %s", want)
		}
	}
}
