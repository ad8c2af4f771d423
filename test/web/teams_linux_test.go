package web

import (
	"net/netip"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// TestTeamsPage: a team is made, gets members, changes its type, loses a member and is removed on its page; what the driver refuses is told
// at the field; what others do to it is seen without loading the page again.
func TestTeamsPage(t *testing.T) {
	path := chromium(t)
	at := func(name, address string) config.Adapter {
		return config.Adapter{Name: name, Link: config.LinkSwitch, Address: netip.MustParseAddr(address),
			Wire: config.Wire{Switch: "s", Prefix: 24}}
	}
	cfg := driverbed.Config(t, at("a", "192.0.2.1"), at("b", "192.0.2.2"), at("c", "192.0.2.3"))
	driverbed.Start(t, cfg)
	client := api.NewClient(cfg.Socket)
	link, err := client.Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, path)
	b.follow(link.URL)
	b.shows("h1", "Devices of")
	b.page("teams")
	b.shows("#teams .none", "There are no teams.")
	b.write("#team-name", "a") // an adapter's
	b.refused("/web/teams")
	b.click(`button[name=action][value=create]`)
	b.shows(`.field:has(#team-name[aria-invalid=true]) .problem`, "no adapter has")
	b.write("#team-name", "T")
	b.click(`button[name=action][value=create]`)
	b.shows(".notice", "T is there")
	b.shows("h2", "Name and type of T")
	for _, adapter := range []string{"a", "b"} {
		b.choose("#team-adapter", adapter)
		if adapter == "b" {
			b.click("#team-primary")
		}
		b.click(`button[name=action][value=attach]`)
		b.shows(".notice", adapter+" is a member of T.")
	}
	b.shows("#teams tr:nth-child(2) td[data-name=Role]", "Active")
	b.shows("#teams tr:nth-child(2) td[data-name=Is]", "primary")
	b.shows("#teams tr:nth-child(1) td[data-name=Role]", "Backup")
	var wide []string
	b.do(chromedp.EmulateViewport(phoneWidth, phoneHeight, chromedp.EmulateMobile, chromedp.EmulateTouch),
		chromedp.Evaluate(outside, &wide), chromedp.EmulateReset(), emulation.ClearDeviceMetricsOverride())
	if b.holds("innerWidth > 1000"); len(wide) > 0 {
		t.Errorf("on a phone these are too wide: %q", wide)
	}
	b.choose("#team-type", "SFT")
	b.click(`button[name=action][value=modify]`)
	b.shows(".notice", "T is changed.")
	b.shows("#teams caption", "T: SFT by L4. Carried by a")
	b.click(`#teams caption a`)
	b.shows("h2", "Name and type of T")
	b.choose("#team-adapter", "c")
	b.refused("/web/teams")
	b.click(`button[name=action][value=attach]`)
	b.shows(`.field:has(#team-adapter[aria-invalid=true]) .problem`, "2")
	if err := client.SetAdapter(t.Context(), api.AdapterRequest{Adapter: "b"}); err != nil {
		t.Fatal(err)
	}
	b.shows("#teams tr:nth-child(2) td[data-name=Status]", "Disabled") // the page follows
	b.shows("#teams tr:nth-child(1) td[data-name=Role]", "Active")
	b.click(`#teams form:has(input[value=b]) button[value=detach]`)
	b.click(`dialog button[value=yes]`)
	b.shows(".notice", "b is no member of T any more.")
	b.click(`#teams button[value=remove]`)
	b.click(`dialog button[value=yes]`)
	b.shows(".notice", "T is removed.")
	if list, err := client.Teams(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("the driver has %+v, %v", list, err)
	}
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}
