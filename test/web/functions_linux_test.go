package web

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// TestFunctionsPage: virtual functions are created, changed, reset and removed on their page; what the driver refuses is told at the field;
// what others do to them is seen without loading the page again.
func TestFunctionsPage(t *testing.T) {
	path := chromium(t)
	cfg := driverbed.Config(t, config.Adapter{Name: "pf", Link: config.LinkSwitch, Address: netip.MustParseAddr("192.0.2.1"),
		Wire: config.Wire{Switch: "s", Prefix: 24}})
	driverbed.Start(t, cfg)
	client := api.NewClient(cfg.Socket)
	link, err := client.Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, path)
	b.follow(link.URL)
	b.shows("h1", "Devices of")
	b.page("functions")
	b.shows("#functions caption", "pf. SR-IOV: Unknown")
	b.write("#vf-name", "red")
	b.write("#vf-address", "192.0.2.11/24")
	b.write("#vf-vlan", "5000")
	b.refused("/web/functions")
	b.click(`button[name=action][value=create]`)
	b.shows(`.field:has(#vf-vlan[aria-invalid=true]) .problem`, "1 to 4094")
	b.holds(`document.querySelector("#vf-name").value === "red"`)
	b.write("#vf-vlan", "7")
	b.click(`button[name=action][value=create]`)
	b.shows(".notice", "red is there.")
	b.shows("#functions td[data-name=VLAN]", "7")
	b.click(`#functions a[href*="name=red"]`)
	b.shows("h2", "Settings of red")
	b.write("#vf-max", "250")
	b.choose("#vf-link", "down")
	b.click(`button[name=action][value=set]`)
	b.shows(".notice", "red is changed.")
	b.shows("#functions td[data-name=Limits]", "at most 250 Mb/s")
	b.shows("#functions td[data-name=Link]", "down (down)")
	if _, err := client.CreateFunction(t.Context(), api.FunctionRequest{Adapter: "pf", Name: "blue", Settings: []string{}}); err != nil {
		t.Fatal(err)
	}
	b.shows("#functions th", "blue") // the page follows
	b.click(`#functions form:has(input[value=blue]) button[value=reset]`)
	b.click(`dialog button[value=yes]`)
	b.shows(".notice", "blue was reset.")
	b.click(`#functions form:has(input[value=blue]) button[value=remove]`)
	b.click(`dialog button[value=yes]`)
	b.shows(".notice", "blue is removed.")
	list, err := client.Functions(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "red" || list[0].Max != 250 || list[0].Link != "down" || list[0].VLAN != 7 {
		t.Errorf("the driver has %+v, %v", list, err)
	}
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}
