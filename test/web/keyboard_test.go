package web

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// everyPage lists the pages and tabs.
var everyPage = []string{
	"/web/", "/web/adapters/" + left, "/web/adapters/" + spare + "/advanced", "/web/adapters/" + left + "/performance",
	"/web/adapters/" + left + "/port", "/web/adapters/" + left + "/qos",
	"/web/functions", "/web/teams", "/web/counters", "/web/connections", "/web/events", "/web/capture", "/web/adapters/nobody",
}

// visit goes to a page of the driver.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate("http://" + b.host + path))
	b.holds(`document.readyState === "complete"`)
}

// watchFocus records where the focus goes: the position in the document, and whether a ring shows it. In a group of
// radio buttons only one takes the focus.
const watchFocus = `
window.places = () => [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")].filter((e) =>
	!e.disabled && e.checkVisibility() && !(e.type === "radio" && !e.checked));
window.stops = [];
document.addEventListener("focusin", (e) => {
	const s = getComputedStyle(e.target), place = places().indexOf(e.target); // parts of a page are renewed
	stops.push(place);
	if (place < 0) stops.problem = "not expected: " + e.target.outerHTML.slice(0, 200);
	if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 2) stops.problem = "no ring: " + e.target.outerHTML.slice(0, 200);
});
places().length`

// keyboard goes over every page with the tab key. It must reach everything that can be used, in the order of the
// page, and show where it is.
func keyboard(t *testing.T, b *tab) {
	for _, path := range everyPage {
		if path == "/web/adapters/nobody" {
			b.refused(path)
		}
		b.visit(path)
		if path == "/web/counters" {
			b.holds(`document.querySelectorAll("#chosen button").length === 2`) // the script has finished its table
		}
		var n int
		b.do(chromedp.Evaluate(watchFocus, &n))
		var stops []int
		for range n {
			b.press(kb.Tab)
		}
		b.do(chromedp.Evaluate("stops", &stops))
		for range 32 { // the parts of a date are stops too, within one element
			if len(stops) >= n {
				break
			}
			b.do(chromedp.KeyEvent(kb.Tab), chromedp.Evaluate("stops", &stops))
		}
		var problem string
		b.do(chromedp.Evaluate(`stops.problem ?? ""`, &problem))
		want := make([]int, n)
		for i := range want {
			want[i] = i
		}
		if problem != "" || !slices.Equal(stops, want) {
			t.Errorf("%s: the tab key goes to %v of %d; %s", path, stops, n, problem)
		}
	}
}

// reach presses the tab key until an element has the focus.
func (b *tab) reach(selector string) {
	b.t.Helper()
	for range 400 {
		var there bool
		b.do(chromedp.KeyEvent(kb.Tab), chromedp.Evaluate("document.activeElement?.matches("+strconv.Quote(selector)+") ?? false", &there))
		if there {
			return
		}
	}
	b.t.Fatalf("the tab key does not come to %s", selector)
}

func (b *tab) press(keys string) { b.do(chromedp.KeyEvent(keys)) }

// byKeyboard does without a mouse what can be done with the pages.
func byKeyboard(t *testing.T, b *tab) {
	b.visit("/web/")
	b.press(kb.Tab + kb.Enter) // the link that skips the navigation
	b.holds(`location.hash === "#main"`)
	b.reach(`#devices a[href="/web/adapters/` + left + `"]`)
	b.press(kb.Enter)
	b.shows("h1", left)

	// What ends connections asks first, and gives the focus back when it is cancelled.
	b.reach(`button[name=enable]`)
	b.press(kb.Enter)
	b.shows("dialog[open]", "Disable "+left+"? Its 1 queue pairs end.")
	b.press(kb.Escape)
	b.holds(`document.querySelector("dialog") === null && document.activeElement.matches("button[name=enable]")`)

	b.visit("/web/adapters/" + spare + "/advanced")
	b.reach("#filter")
	b.press("ReceiveBuffers")
	b.shows("#filter-count", "1 of ")
	b.reach(`[id="key-*ReceiveBuffers"] input[name=value]`)
	b.press("2048" + kb.Enter) // the tab key has selected the contents of the field
	b.shows(".notice", "*ReceiveBuffers is 2048 now.")
	b.reach(`[id="key-*ReceiveBuffers"] button[name=default]`)
	b.press(kb.Enter)
	b.shows(".notice", "has its default again.")

	b.visit("/web/adapters/" + spare + "/performance")
	b.reach("input[name=scenario]")
	b.press(kb.ArrowDown)
	b.holds(`document.querySelector("input[value=stream]").checked`)
	b.reach("#run")
	b.press(kb.Enter)
	b.shows(".notice", "Single stream traffic: ")
	b.reach("#undo")
	b.press(kb.Enter)
	b.shows(".notice", "Single stream traffic is undone")

	b.visit("/web/counters")
	b.holds(`document.querySelectorAll("#chosen tr").length === 2`)
	b.reach("#counter")
	b.press(kb.ArrowDown)
	b.reach("#add")
	b.press(kb.Enter)
	b.holds(`document.querySelectorAll("#chosen tr").length === 3`)
	b.reach("#pause")
	b.press(" ")
	b.shows("#pause", "Go on")
	b.reach("#chosen button")
	b.press(kb.Enter)
	b.holds(`document.querySelectorAll("#chosen tr").length === 2`)

	b.visit("/web/connections")
	b.reach("#search")
	b.press("wire" + kb.Enter)
	b.shows("caption", "Queue pairs 1 to 2 of 2")
	b.reach(`th a[href*="sort=peer"]`)
	b.press(kb.Enter)
	b.shows("th[aria-sort=ascending]", "Peer")

	b.visit("/web/events")
	b.reach("input[value=Warning]")
	b.press(" ")
	b.reach("form.bar button.primary")
	b.press(kb.Enter)
	b.holds(`location.search.includes("severity=Warning") && document.readyState === "complete"`)
	b.reach("#follow")
	b.press(" ")
	b.shows("#follow-state", "New events appear on top.")

	b.visit("/web/capture")
	b.reach("#start")
	b.press(kb.Enter)
	b.shows("#captures th[scope=row]", here)
	b.reach("#captures form button")
	b.press(kb.Enter)
	b.shows(".notice", "The capture has ended; its file is complete.")
	if got := b.downloaded(".pcapng"); len(got) == 0 {
		t.Error("the capture is empty")
	}
}

// phoneWidth and phoneHeight are those of a small phone, in CSS pixels.
const phoneWidth, phoneHeight = 360, 740

// outside lists what in a page reaches beyond a phone's screen, or is too small for a finger (WCAG 2.2, 2.5.8).
const outside = `[
	...(document.documentElement.scrollWidth > innerWidth ? ["the page is " + document.documentElement.scrollWidth + " wide"] : []),
	...[...document.querySelectorAll("nav a, button, input, select, main table.rows td, main table.rows th, svg, .card, dd")].filter((e) => {
		const r = e.getBoundingClientRect();
		return r.width > 0 && !e.closest(".skip") && (r.right > innerWidth + 0.5 || r.left < -0.5);
	}).map((e) => "beyond the screen: " + e.outerHTML.slice(0, 120)),
	...[...document.querySelectorAll("nav a, button, select, input:not([type=hidden]):not([type=checkbox]):not([type=radio])")].filter((e) => {
		const r = e.getBoundingClientRect();
		return r.width > 0 && r.height < 24;
	}).map((e) => "too small: " + e.outerHTML.slice(0, 120)),
]`

// phone visits every page on a small screen: nothing may reach beyond it, and each cell of a table must say what it
// is.
func phone(t *testing.T, b *tab) {
	b.do(chromedp.EmulateViewport(phoneWidth, phoneHeight, chromedp.EmulateMobile, chromedp.EmulateTouch))
	defer func() {
		b.do(chromedp.EmulateReset(), emulation.ClearDeviceMetricsOverride())
		b.holds("innerWidth > 1000")
	}()
	for _, path := range everyPage {
		if path == "/web/adapters/nobody" {
			b.refused(path)
		}
		b.visit(path)
		if path == "/web/counters" {
			b.holds(positive(here, "RDMA Inbound Bytes/sec"))
		}
		var width int
		var wrong, unnamed []string
		b.do(chromedp.Evaluate("innerWidth", &width), chromedp.Evaluate(outside, &wrong), chromedp.Evaluate(
			`[...document.querySelectorAll("table.rows tbody :is(td, th)")].filter((e) => e.textContent && !e.dataset.name && !e.querySelector("button")).map((e) => e.outerHTML)`, &unnamed))
		if width != phoneWidth || len(wrong)+len(unnamed) > 0 {
			t.Errorf("%s at %d pixels: %q, without a name: %q", path, width, wrong, unnamed)
		}
	}
	b.visit("/web/connections")
	b.choose("#sort", "Peer")
	b.choose("select[name=order]", "down")
	b.click("form[role=search] button")
	b.holds(`location.search.includes("sort=peer") && location.search.includes("order=down") && document.readyState === "complete"`)
	got := b.texts("#connections tbody td:nth-child(7)")
	if !slices.IsSortedFunc(got, func(x, y string) int { return -compareAddrs(x, y) }) || len(got) != 4 {
		t.Errorf("sorted by peer, downwards: %q", got)
	}
	b.click(fmt.Sprintf(`#connections a[href="/web/adapters/%s"]`, left))
	b.shows("h1", left)
}

// compareAddrs compares addresses as text.
func compareAddrs(x, y string) int {
	a, err := netip.ParseAddr(x)
	if err != nil {
		return -1
	}
	b, err := netip.ParseAddr(y)
	if err != nil {
		return 1
	}
	return a.Compare(b)
}
