package web

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// Every page of the device manager works in a browser, with a driver that has traffic, without an error in a script,
// a violation of the Content-Security-Policy, or a request to another host.
func TestPages(t *testing.T) {
	path := chromium(t)
	socket, at := running(t)
	traffic(t, socket, at[here], at[there])
	traffic(t, socket, at[left], at[right])
	client := api.NewClient(socket)
	link, err := client.Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, path)
	b.follow(link.URL)
	b.shows("h1", "Devices of") // the page to which the link redirects
	for _, page := range []struct {
		name string
		test func(*testing.T, *tab)
	}{
		{"devices", devices},
		{"information", information},
		{"advanced", advanced},
		{"performance", performance},
		{"port protocol", portProtocol},
		{"quality of service", qualityOfService},
		{"counters", counters},
		{"connections", func(t *testing.T, b *tab) { connections(t, b, at[left].String()) }},
		{"events", func(t *testing.T, b *tab) { events(t, b, client) }},
		{"capture", capture},
		{"keyboard", keyboard},
		{"by keyboard", byKeyboard},
		{"phone", phone},
		{"many queue pairs", func(t *testing.T, b *tab) { manyQueuePairs(t, b, socket, at[spare]) }},
		{"sign out", func(t *testing.T, b *tab) {
			b.click("form.out button")
			b.shows("h1", "Sign in")
		}},
	} {
		if !t.Run(page.name, func(t *testing.T) {
			b.t = t
			page.test(t, b)
			for _, fault := range b.faults() {
				t.Error(fault)
			}
		}) {
			return // the next one would not start in the right place
		}
	}
}

// page goes to a page through the navigation.
func (b *tab) page(name string) {
	b.t.Helper()
	b.click(`header nav a[href="/web/` + name + `"]`)
	b.holds(`document.readyState === "complete" && location.pathname === "/web/` + name + `"`)
}

// adapter goes to an adapter through the tree, and to one of its tabs.
func (b *tab) adapter(name, tab string) {
	b.t.Helper()
	b.click(`aside a[href="/web/adapters/` + name + `"]`)
	b.shows("h1", name)
	if tab != "" {
		b.holds(`document.readyState === "complete"`) // before its styles are there, what is clicked moves
		b.click(`nav.tabs a[href$="` + tab + `"]`)
	}
	b.holds(`document.readyState === "complete" && location.pathname === "/web/adapters/` + name + tab + `"`)
}

func devices(t *testing.T, b *tab) {
	b.holds(`document.readyState === "complete"`)
	if got := b.texts("#devices .card h2 a"); !slices.Equal(got, []string{here, there, left, right, spare}) {
		t.Errorf("adapters %q", got)
	}
	if n := len(b.texts("#devices tbody tr")); n != 4 {
		t.Errorf("%d programs, want 4", n)
	}
	b.click(`#devices a[href="/web/adapters/` + spare + `"]`)
	b.shows("h1 .badge", "up")
	b.click(`button[name=enable][value=false]`)
	b.shows(".notice", spare+" is disabled.")
	b.shows("h1 .badge", "disabled")
	b.click(`button[name=enable][value=true]`)
	b.shows(".notice", spare+" is enabled.")
	b.shows("h1 .badge", "up")
	b.click(`form[action$="/restart"] button`)
	b.shows(".notice", spare+" was restarted.")
	b.shows("h1 .badge", "up")
}

// qualityOfService shares the wire of an adapter that has traffic, sees the shares, and adds and removes a policy.
func qualityOfService(t *testing.T, b *tab) {
	b.adapter(left, "/qos")
	b.shows("#qos caption", "Traffic classes")
	set := func(field, value string) {
		t.Helper()
		b.holds(`document.querySelector("` + field + `") !== null && document.readyState === "complete"`)
		b.do(chromedp.Evaluate(`document.querySelector("`+field+`").value = "`+value+`"`, nil))
	}
	set("#qos-prio-tc", "3:1")
	set("#qos-tc-bw", "0:40,1:60")
	b.click(`form:has(#qos-pfc) button.primary`)
	b.shows(".notice", "The settings of priorities act now.")
	b.holds(`document.querySelectorAll("[aria-label=Classes] tbody tr").length === 2`)
	b.holds(`[...document.querySelectorAll("[aria-label=Classes] [data-name=Share]")].some((e) => parseInt(e.textContent) > 90)`)
	set("#policy", "SMB")
	set("#rule", "netdirect=445,priority=9")
	b.refused("/web/adapters/" + left + "/qos")
	b.click(`form:has(#rule) button`)
	b.shows(".problem", "priority=9")
	set("#rule", "netdirect=445,priority=3")
	b.click(`form:has(#rule) button`)
	b.shows(".notice", "The policy SMB acts now.")
	b.click(`button[name=remove][value=SMB]`)
	b.shows(".notice", "The policy SMB is gone.")
	set("#qos-prio-tc", "")
	set("#qos-tc-bw", "")
	b.click(`form:has(#qos-pfc) button.primary`)
	b.holds(`document.querySelectorAll("[aria-label=Classes] tbody tr").length === 1`)
}

func information(t *testing.T, b *tab) {
	b.adapter(left, "")
	b.shows("dd", "mlx5 (ConnectX-4 class and later)")
	b.shows("dd", "rate=200M")
	sent := `[...document.querySelectorAll("#information dt")].find((e) => e.textContent === "Sent").nextElementSibling.textContent`
	b.do(chromedp.Evaluate("window.before = "+sent, nil))
	b.holds(sent + " !== window.before") // the page updates itself
	b.click(`a[href$="/information.txt"]`)
	if text := string(b.downloaded(".txt")); !strings.Contains(text, "Impairment: rate=200M") {
		t.Errorf("information.txt: %s", text)
	}
}

func advanced(t *testing.T, b *tab) {
	b.adapter(spare, "/advanced")
	const (
		path = "/web/adapters/" + spare + "/advanced"
		key  = `[id="key-*ReceiveBuffers"]`
	)
	b.write("#filter", "ReceiveBuffers")
	b.holds(`[...document.querySelectorAll(".key")].filter((e) => !e.hidden).length === 1`)
	b.refused(path)
	b.write(key+" input[name=value]", "5")
	b.click(key + " button.primary")
	b.shows(key+" .problem", "256 to 4096")
	b.holds(`document.querySelector('` + key + ` input[name=value]').value === "5"`)
	b.write(key+" input[name=value]", "1024")
	b.click(key + " button.primary")
	b.shows(".notice", "*ReceiveBuffers is 1024 now.")
	b.holds(`document.querySelector('` + key + ` input[name=value]').value === "1024"`)
	b.click(key + " button[name=default]")
	b.shows(".notice", "*ReceiveBuffers has its default again.")
	b.holds(`document.querySelector('` + key + ` input[name=value]').value === "512"`)
}

// performance applies a scenario to two adapters and undoes it; empty fields are not sent.
func performance(t *testing.T, b *tab) {
	b.adapter(spare, "/performance")
	b.shows("main", "No scenario has changed a key of this adapter.")
	b.holds(`!document.querySelector("#base").checkVisibility() && document.querySelector("#second").checkVisibility()`)
	b.click("input[value=manual]")
	b.holds(`document.querySelector("#base").checkVisibility() && !document.querySelector("#second").checkVisibility()`)
	b.click("input[value=dual]")
	b.choose("#second", left)
	b.click("#preview")
	b.shows("#planned", "RecvCompletionMethod")
	b.holds(`document.querySelector("input[value=dual]").checked && document.querySelector("#second").value === "` + left + `"`)
	b.shows("main", "No scenario has changed a key of this adapter.")
	b.click("#run")
	b.shows(".notice", "Dual port traffic: ")
	b.shows(".history", "Dual port traffic")
	b.adapter(left, "/performance")
	b.shows(".history", "Dual port traffic")
	b.click("#undo")
	b.shows(".notice", "Dual port traffic is undone")
	b.adapter(spare, "/performance")
	b.holds(`document.querySelector("#undo") === null && document.querySelectorAll(".history > li").length === 2`)
	b.refused("/web/adapters/" + spare + "/performance")
	b.click("input[value=forwarding]")
	b.click("#run")
	b.shows(".problem", "Second adapter is none")
}

func portProtocol(t *testing.T, b *tab) {
	b.adapter(spare, "/port")
	b.holds(`document.querySelector("input[value=ib]").disabled && document.querySelector("input[value=auto]").disabled`)
	b.click("main form.stack button")
	b.shows(".notice", "Port 1 is left to the hardware's default. A restart of the adapter takes it up.")
	b.click("input[value=eth]")
	b.click("main form.stack button")
	b.shows(".notice", "Port 1 is set to ETH.")
	b.holds(`document.querySelector("input[value=eth]").checked`)
	b.refused("/web/adapters/" + spare + "/port")
	// as somebody with the browser's tools might do
	b.do(chromedp.Evaluate(`document.querySelector("input[value=ib]").disabled = false`, nil))
	b.click("input[value=ib]")
	b.click("main form.stack button")
	b.shows(".problem", "allowed: eth, hw")
}

// positive returns an expression of the page: whether a line with an instance's counter has a value other than zero.
func positive(instance, counter string) string {
	return `[...document.querySelectorAll("#chosen tr")].some((r) => r.cells[2].textContent === "` + instance +
		`" && r.cells[3].textContent === "` + counter +
		`" && Number(r.cells[4].textContent.replace(/[^0-9.]/g, "")) > 0)`
}

func counters(t *testing.T, b *tab) {
	const readings = "/web/api/counters"
	b.page("counters")
	// The first lines are of counters that also move without packets.
	b.holds(positive(here, "RDMA Inbound Bytes/sec"))
	b.holds(positive(here, "RDMA Outbound Bytes/sec"))
	b.choose("#set", "Mellanox Adapter Traffic Counters")
	b.choose("#instance", left)
	b.choose("#counter", "Packets Sent/Sec")
	b.click("#add")
	b.holds(positive(here, "RDMA Inbound Bytes/sec") + " && " + positive(here, "RDMA Outbound Bytes/sec") + " && " +
		positive(left, "Packets Sent/Sec"))
	b.holds(`document.querySelectorAll("#chart path.line").length === 3`)
	b.click("#pause")
	b.shows("#pause", "Go on")
	// One that was on its way when the button was clicked may still be counted.
	await.Eventually(t, "no readings come during the pause", func() bool {
		before := b.requests(readings)
		time.Sleep(1500 * time.Millisecond)
		return b.requests(readings) == before
	})
	b.click("#csv")
	rows, err := csv.NewReader(bytes.NewReader(b.downloaded(".csv"))).ReadAll()
	if err != nil || len(rows) < 3 {
		t.Fatalf("CSV: %v %q", err, rows)
	}
	want := []string{"time", `\RDMA Activity(here)\RDMA Inbound Bytes/sec`, `\RDMA Activity(here)\RDMA Outbound Bytes/sec`,
		`\Mellanox Adapter Traffic Counters(left)\Packets Sent/Sec`}
	last := rows[len(rows)-1]
	if !slices.Equal(rows[0], want) || len(last) != len(want) {
		t.Fatalf("CSV: %q", rows)
	}
	if _, err := time.Parse(time.RFC3339, last[0]); err != nil {
		t.Error(err)
	}
	// A counter that was just added has no rate yet, and traffic may rest for a second on a busy machine.
	if !slices.ContainsFunc(rows[1:], moves) {
		t.Errorf("CSV: no line in which each counter moves: %q", rows)
	}
	b.click("#pause")
	b.shows("#pause", "Pause")
	b.click("#chosen tr:last-child button")
	b.holds(`document.querySelectorAll("#chosen tr").length === 2`)
	b.holds(positive(here, "RDMA Inbound Bytes/sec"))
	units(t, b)
}

// units: the page shows rates with the prefix and the unit that a person reads, on the rows and at the axes (2.5 GB/s and not 2,500,000,000
// bytes/s), whatever the traffic.
func units(t *testing.T, b *tab) {
	// Readings as they come, but for their values, which grow with the driver's clock: 2.5e9 bytes, and 12.5e6 packets, a second.
	b.do(chromedp.Evaluate(`window.asked = window.fetch; window.fetch = async (...of) => {
		const answer = await window.asked(...of);
		if (!String(of[0]).startsWith("/web/api/counters?")) return answer;
		const s = await answer.json();
		for (const i of s.instances) for (const v of i.values) v.raw = Math.round(s.uptime_ns * (v.counter.includes("packets") ? 0.0125 : 2.5));
		return new Response(JSON.stringify(s));
	}; true`, nil))
	b.choose("#set", "Mellanox Adapter Traffic Counters")
	b.choose("#instance", left)
	for _, counter := range []string{"Packets Sent/Sec", "Bytes Sent/Sec"} {
		b.choose("#counter", counter)
		b.click("#add")
	}
	row := func(counter, value, unit string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#chosen tr")].some((r) => r.cells[3].textContent === %q && r.cells[4].textContent === %q
			&& r.cells[5].textContent === %q)`, counter, value, unit)
	}
	b.holds(row("Bytes Sent/Sec", "2.5", "GB/s"))
	b.holds(row("Packets Sent/Sec", "12.5", "million packets/s"))
	b.holds(`[...document.querySelectorAll("#chart text")].some((x) => x.textContent.includes("GB/s"))`)
	b.do(chromedp.Evaluate(`window.fetch = window.asked; true`, nil))
}

// moves reports whether all values of a line of the CSV, after its time, are above zero.
func moves(row []string) bool {
	return len(row) > 1 && !slices.ContainsFunc(row[1:], func(field string) bool {
		v, err := strconv.ParseFloat(field, 64)
		return err != nil || v <= 0
	})
}

func connections(t *testing.T, b *tab, peer string) {
	const column = "#connections tbody td:nth-child(2)"
	b.page("connections")
	if all := b.texts("#connections tbody tr"); len(all) != 4 {
		t.Errorf("connections %q, want 4", all)
	}
	b.click(`#connections th a[href*="sort=adapter"]`)
	b.shows(`th[aria-sort=ascending]`, "Adapter")
	if got := b.texts(column); !slices.Equal(got, []string{here, left, right, there}) {
		t.Errorf("sorted by adapter: %q", got)
	}
	b.click(`#connections th a[href*="sort=adapter"]`)
	b.shows(`th[aria-sort=descending]`, "Adapter")
	if got := b.texts(column); !slices.Equal(got, []string{there, right, left, here}) {
		t.Errorf("sorted by adapter, downwards: %q", got)
	}
	b.write("#search", peer)
	b.click("form[role=search] button")
	b.holds(`location.search.includes("search=") && document.readyState === "complete"`)
	if got := b.texts(column); !slices.Equal(got, []string{right}) {
		t.Errorf("search for %s: %q", peer, got)
	}
	if got := b.texts("#connections tbody td:nth-child(9)"); !slices.Equal(got, []string{"wire"}) {
		t.Errorf("path %q", got)
	}
	b.write("#search", "nothing of that name")
	b.click("form[role=search] button")
	b.shows("caption", "No queue pair matches")
}

func events(t *testing.T, b *tab, client *api.Client) {
	b.page("events")
	b.choose("#adapter", spare)
	b.click("form.bar button.primary")
	b.holds(`location.search.includes("adapter=` + spare + `") && document.readyState === "complete"`)
	got := b.texts("#events td:nth-child(6)")
	if len(got) == 0 || slices.ContainsFunc(got, func(s string) bool { return s != spare }) {
		t.Errorf("events of %q, want some, of %s", got, spare)
	}
	b.click("#follow")
	b.shows("#follow-state", "New events appear on top.")
	b.do(chromedp.Evaluate(`window.newest = Number(document.querySelector("#events td").textContent)`, nil))
	for _, enable := range []bool{false, true} {
		if err := client.SetAdapter(t.Context(), api.AdapterRequest{Adapter: spare, Enable: enable}); err != nil {
			t.Fatal(err)
		}
	}
	b.holds(`[...document.querySelectorAll("#events tr")].some((r) => Number(r.cells[0].textContent) > window.newest && r.cells[6].textContent.includes("disabled"))`)
	b.click("#follow")
	b.holds(`document.getElementById("follow-state").textContent === ""`)
	b.click(`input[name=severity][value=Warning]`)
	b.click("form.bar button.primary")
	b.holds(`location.search.includes("severity=Warning") && document.readyState === "complete"`)
	got = b.texts("#events .badge")
	if len(got) == 0 || slices.ContainsFunc(got, func(s string) bool { return s != "Warning" }) {
		t.Errorf("events of severities %q, want some, warnings", got)
	}
}

func capture(t *testing.T, b *tab) {
	b.page("capture")
	b.shows("#captures", "None.")
	b.choose("#adapter", left)
	b.click("#start")
	b.holds(`Number(document.querySelector("#captures td[data-name=Packets]")?.textContent.replace(/[^0-9]/g, "")) > 20`)
	b.shows("#captures th[scope=row]", left)
	b.click("#captures form button")
	b.shows(".notice", "The capture has ended; its file is complete.")
	b.shows("#captures", "None.")
	r, err := pcapgo.NewNgReader(bytes.NewReader(b.downloaded(".pcapng")), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	packets := uint64(0)
	for {
		_, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		packets++
	}
	i, err := r.Interface(0)
	if err != nil {
		t.Fatal(err)
	}
	if s := i.Statistics; packets == 0 || s.LastUpdate.IsZero() || s.PacketsReceived != packets+s.PacketsDropped {
		t.Errorf("%d packets, statistics %+v", packets, s)
	}
}

// Many queue pairs can be searched, sorted and paged through.
func manyQueuePairs(t *testing.T, b *tab, socket string, at netip.Addr) {
	const many = 10000
	idle(t, socket, at, many)
	b.page("connections")
	b.choose("#adapter", spare)
	b.click("form[role=search] button")
	b.shows("caption", "Queue pairs 1 to 100 of 10000")
	b.click(`#connections th a[href*="sort=number"]`)
	b.shows("th[aria-sort=descending]", "QP")
	highest := b.texts("#connections tbody th")[0]
	b.shows(".pager", "Page 1 of 100")
	b.click(".pager a:last-child")
	b.shows("caption", "Queue pairs 9901 to 10000 of 10000")
	b.write("#search", highest)
	b.click("form[role=search] button")
	b.shows("caption", "Queue pairs 1 to 1 of 1")
	const size = `performance.getEntriesByType("navigation")[0].decodedBodySize`
	b.holds(size + " > 0") // 0 until the whole page has come
	var bytes int
	b.do(chromedp.Evaluate(size, &bytes))
	if bytes > 100<<10 {
		t.Errorf("the page has %d bytes", bytes)
	}
	// Yes in the dialog does what was asked for, and the queue pairs end.
	b.adapter(spare, "")
	b.click(`button[name=enable][value=false]`)
	b.shows("dialog[open]", "Disable "+spare+"? Its 10000 queue pairs end.")
	b.click(`dialog button[value=yes]`)
	b.shows(".notice", spare+" is disabled.")
	b.shows("h1 .badge", "disabled")
	b.click(`button[name=enable][value=true]`)
	b.shows("h1 .badge", "up")
}
