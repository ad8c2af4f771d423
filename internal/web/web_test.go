package web

import (
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
)

const hostile = `<script>alert(1)</script>"'`

var secretField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func TestWithoutASessionNothingIsShown(t *testing.T) {
	b := newBench(t)
	for path, want := range map[string]int{
		"/web/": 303, "/web/adapters/Ethernet%201": 303, "/web/api/counters": 401, "/": 303, "/web/signin": 200,
		"/web/static/style.css": 200,
	} {
		w := b.ask(httptest.NewRequest("GET", "http://127.0.0.1:80"+path, nil))
		if w.Code != want || strings.Contains(w.Body.String(), "Ethernet 1") {
			t.Errorf("GET %s: %d; want %d", path, w.Code, want)
		}
	}
	r := httptest.NewRequest("POST", "http://127.0.0.1:80/web/adapters/Ethernet%201/restart", nil)
	if w := b.ask(r); w.Code != http.StatusUnauthorized || b.did != nil {
		t.Errorf("POST: %d, %v", w.Code, b.did)
	}
}

func TestFormsCarryTheSecretOfTheirSession(t *testing.T) {
	b := newBench(t)
	const path = "/web/adapters/Ethernet%201/restart"
	for _, secret := range []string{"", "wrong"} {
		if w := b.send(path, url.Values{"csrf": {secret}}); w.Code != http.StatusForbidden || b.did != nil {
			t.Errorf("secret %q: %d, %v", secret, w.Code, b.did)
		}
	}
	other := *b
	other.cookie = b.signIn(t)
	if w := b.send(path, url.Values{"csrf": {other.secret()}}); w.Code != http.StatusForbidden || b.did != nil {
		t.Errorf("another session's secret: %d, %v", w.Code, b.did)
	}
	r := httptest.NewRequest("POST", "http://127.0.0.1:80"+path, strings.NewReader("csrf="+b.secret()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://127.0.0.1:81") // the same site to a browser, which sends the cookie
	r.AddCookie(b.cookie)
	if w := b.ask(r); w.Code != http.StatusForbidden || b.did != nil {
		t.Errorf("another port's form: %d, %v", w.Code, b.did)
	}
	if w := b.post(path, url.Values{}); w.Code != http.StatusSeeOther || fmt.Sprint(b.did) != "[restart Ethernet 1]" {
		t.Errorf("status %d, did %v; want a restart of Ethernet 1", w.Code, b.did)
	}
}

// TestNoticeIsForTheNextPage: what a change did is told once, on the page that the browser goes to next. A page that fetches a part of
// itself again meanwhile does not take it.
func TestNoticeIsForTheNextPage(t *testing.T) {
	b := newBench(t)
	b.post("/web/adapters/Ethernet%201/restart", url.Values{})
	for i, want := range []bool{false, true, false} {
		r := httptest.NewRequest("GET", "http://127.0.0.1:80/web/adapters/Ethernet%201", nil)
		r.AddCookie(b.cookie)
		if i == 0 {
			r.Header.Set(renewHeader, "information")
		}
		if got := strings.Contains(b.ask(r).Body.String(), "was restarted."); got != want {
			t.Errorf("request %d: told %v, want %v", i+1, got, want)
		}
	}
}

func TestALinkOpensOneSession(t *testing.T) {
	b := newBench(t)
	path, _ := b.pages.Link()
	for i, want := range []int{200, 403} {
		if w := b.ask(httptest.NewRequest("GET", "http://127.0.0.1:80"+path, nil)); w.Code != want ||
			(len(w.Result().Cookies()) == 1) != (want == 200) {
			t.Errorf("use %d: %d; want %d", i+1, w.Code, want)
		}
	}
	path, until := b.pages.Link()
	b.now = until.Add(time.Second)
	if w := b.ask(httptest.NewRequest("GET", "http://127.0.0.1:80"+path, nil)); w.Code != 403 {
		t.Errorf("an old link: %d", w.Code)
	}
	if c := b.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("cookie %v", c)
	}
}

func TestSessionsEnd(t *testing.T) {
	b := newBench(t)
	if w := b.post("/web/signout", url.Values{}); w.Code != 303 || b.get("/web/").Code != 303 {
		t.Error("a session goes on after its end")
	}
	b.cookie = b.signIn(t)
	b.now = b.now.Add(sessionIdle + time.Second)
	if w := b.get("/web/"); w.Code != 303 {
		t.Errorf("an idle session: %d", w.Code)
	}
	b.cookie = b.signIn(t)
	b.pages.SignOutAll()
	if w := b.get("/web/"); w.Code != 303 {
		t.Errorf("after all were ended: %d", w.Code)
	}
	for range 2 * maxSessions {
		b.cookie = b.signIn(t)
		b.pages.Link()
	}
	if n, l := len(b.pages.sessions.open), len(b.pages.sessions.links); n > maxSessions || l > maxLinks {
		t.Errorf("%d sessions and %d links are kept", n, l)
	}
}

func TestOnlyOurNamesAreServed(t *testing.T) {
	b := newBench(t)
	for host, want := range map[string]int{"127.0.0.1:80": 200, "localhost:9": 200, "evil.example": 421, "127.0.0.1.evil.example:80": 421,
		"": 421, "[::1]:80": 421} {
		r := httptest.NewRequest("GET", "http://127.0.0.1:80/web/", nil)
		r.Host = host
		r.AddCookie(b.cookie)
		if w := b.ask(r); w.Code != want {
			t.Errorf("Host %q: %d; want %d", host, w.Code, want)
		}
	}
}

func TestLargeFormsAreRefused(t *testing.T) {
	b := newBench(t)
	if w := b.post("/web/adapters/Ethernet%201/restart", url.Values{"x": {strings.Repeat("x",
		2*maxForm)}}); w.Code != http.StatusRequestEntityTooLarge || b.did != nil {
		t.Errorf("status %d, did %v; want 413 and nothing done", w.Code, b.did)
	}
}

var postForm = regexp.MustCompile(`(?s)<form[^>]* method="post".*?</form>`)

func TestNamesAreShownAsText(t *testing.T) {
	b := newBench(t)
	for i := range 300 {
		b.status.Adapters[0].QPs = append(b.status.Adapters[0].QPs, api.QPStatus{Number: uint32(i), Owner: hostile,
			Peer: netip.MustParseAddr("127.0.0.9")})
	}
	paths := []string{}
	for _, n := range navigation {
		paths = append(paths, n.Path)
	}
	for _, x := range tabs {
		paths = append(paths, adapterURL(hostile, x.Path))
	}
	for _, path := range paths {
		w := b.get(path)
		if body := w.Body.String(); w.Code != 200 || strings.Contains(body, "<script>") || strings.Contains(body, " style=") ||
			strings.Contains(body, " onclick=") {
			t.Errorf("GET %s: %d\n%s", path, w.Code, body)
		}
		for _, form := range postForm.FindAllString(w.Body.String(), -1) {
			if m := secretField.FindStringSubmatch(form); m == nil || m[1] != b.secret() {
				t.Errorf("GET %s: a form without the secret of the session: %s", path, form)
			}
		}
		if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") ||
			strings.Contains(policy, "unsafe") {
			t.Errorf("GET %s: policy %q", path, policy)
		}
	}
}

func TestInformationIsSaved(t *testing.T) {
	b := newBench(t)
	w := b.get("/web/adapters/Ethernet%201/information.txt")
	text, _ := io.ReadAll(w.Body)
	if w.Code != 200 || !strings.Contains(string(text), "Generation: mlx5") {
		t.Errorf("status %d, want 200 with the generation:\n%s", w.Code, text)
	}
	if w := b.get("/web/adapters/nobody"); w.Code != 404 {
		t.Errorf("an adapter that is not there: %d", w.Code)
	}
}

func TestKeysAreSetAndRefusedInPlace(t *testing.T) {
	b := newBench(t)
	const path = "/web/adapters/Ethernet%201/advanced"
	if w := b.post(path, url.Values{"key": {"*ReceiveBuffers"}, "value": {"wrong"}}); w.Code != 422 || b.did != nil ||
		!strings.Contains(w.Body.String(), `aria-invalid="true"`) {
		t.Errorf("status %d, did %v; want 422, nothing done, and the field marked", w.Code, b.did)
	}
	b.post(path, url.Values{"key": {"*ReceiveBuffers"}, "value": {"1024"}})
	b.post(path, url.Values{"key": {"*ReceiveBuffers"}, "value": {"1024"}, "default": {"1"}})
	if got := fmt.Sprint(b.did); got != "[key Ethernet 1 *ReceiveBuffers 1024 key Ethernet 1 *ReceiveBuffers default]" {
		t.Error("the form did ", got)
	}
	shown := b.get(path).Body.String()
	settings, _ := b.Settings("Ethernet 1")
	for _, k := range settings {
		if strings.Contains(shown, `id="key-`+template.HTMLEscapeString(k.Name)+`"`) != k.UI {
			t.Errorf("%s: shown is not %v", k.Name, k.UI)
		}
	}
}

func TestConnectionsArePagedBySearchAndOrder(t *testing.T) {
	b := newBench(t)
	for i := range 10000 {
		b.status.Adapters[0].QPs = append(b.status.Adapters[0].QPs, api.QPStatus{Number: uint32(i + 1),
			Owner: fmt.Sprintf("program-%d", i%10)})
	}
	for query, want := range map[string]string{
		"":                               "Queue pairs 1 to 100 of 10000",
		"?offset=9950":                   "Queue pairs 9951 to 10000 of 10000",
		"?search=PROGRAM-3&sort=number":  "Queue pairs 1 to 100 of 1000",
		"?search=nothing":                "No queue pair matches",
		"?sort=number&order=down":        ">10000</th>",
		"?adapter=Ethernet+1&sort=owner": `aria-sort="ascending"`,
	} {
		w := b.get("/web/connections" + query)
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) || strings.Count(w.Body.String(), "<tr>") > 101 {
			t.Errorf("%s: %d, without %q", query, w.Code, want)
		}
		if n := w.Body.Len(); n > 100<<10 {
			t.Errorf("%s: the page has %d bytes", query, n)
		}
	}
	for _, query := range []string{"?offset=-1", "?sort=nothing", "?adapter=nobody"} {
		if w := b.get("/web/connections" + query); w.Code != 422 {
			t.Errorf("%s: status %d, want 422", query, w.Code)
		}
	}
}

// TestPortsAreWhatTheirLinksAllow: a port can be set to what its link can be, and to AUTO if there is a choice and
// the generation has it.
func TestPortsAreWhatTheirLinksAllow(t *testing.T) {
	b := newBench(t)
	for name, path := range map[string]string{"mlx5": "/web/adapters/Ethernet%201/port", "mlx4": adapterURL(hostile, "/port")} {
		for _, c := range []struct {
			protocols []string
			allowed   string
		}{
			{[]string{"eth"}, "eth hw"},
			{[]string{"ib"}, "ib hw"},
			{[]string{"ib", "eth"}, map[string]string{"mlx5": "ib eth hw", "mlx4": "ib eth hw auto"}[name]},
		} {
			for i := range b.status.Adapters {
				b.status.Adapters[i].Protocols = c.protocols
			}
			for _, choice := range []string{"eth", "hw", "ib", "auto", ""} {
				want := http.StatusUnprocessableEntity
				if slices.Contains(strings.Fields(c.allowed), choice) {
					want = http.StatusSeeOther
				}
				if w := b.post(path, url.Values{"protocol": {choice}}); w.Code != want {
					t.Errorf("%s that can be %v, %q: %d; want %d", name, c.protocols, choice, w.Code, want)
				}
			}
		}
	}
}

// TestInfiniBandPortsAreShown: an InfiniBand port is shown as one.
func TestInfiniBandPortsAreShown(t *testing.T) {
	b := newBench(t)
	a := &b.status.Adapters[0]
	a.Protocols, a.InfiniBand = []string{"ib"}, &api.InfiniBandStatus{State: "Active", Physical: "LinkUp", LID: 17, SMLID: 3, Rate: "4xEDR",
		MTU: 4096, PKeys: []uint16{0xffff}}
	for path, want := range map[string][]string{
		"/web/": {"InfiniBand, Active, LID 17, SM LID 3, 4xEDR"}, "/web/adapters/Ethernet%201": {"4xEDR", "0xffff", "Active (LinkUp)"},
		"/web/adapters/Ethernet%201/port": {"<strong>InfiniBand</strong>"},
	} {
		for _, w := range want {
			if page := b.get(path).Body.String(); !strings.Contains(page, w) {
				t.Errorf("%s lacks %q", path, w)
			}
		}
	}
}

// TestSpeedIsShown: the page of an adapter shows the speed of its link, 0 while that is down, and that a link without a speed is none
// that is down.
func TestSpeedIsShown(t *testing.T) {
	for want, a := range map[string]api.AdapterStatus{
		"25 Gbit/s, full duplex":              {Enabled: true, Up: true, Speed: 25e9, Duplex: "full"},
		"0 Gbit/s":                            {Enabled: true},
		"not limited: as fast as the machine": {Enabled: true, Up: true},
	} {
		b := newBench(t)
		x := &b.status.Adapters[0]
		x.Enabled, x.Up, x.Speed, x.Duplex = a.Enabled, a.Up, a.Speed, a.Duplex
		text := b.get("/web/adapters/Ethernet%201/information.txt").Body.String()
		if !strings.Contains(text, "Link speed: "+want+"\n") {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// TestPortsOfADeviceAreShown: the pages of an adapter that is one of two ports name its device, number, and the
// device's location and node GUID.
func TestPortsOfADeviceAreShown(t *testing.T) {
	b := newBench(t)
	a := &b.status.Adapters[0]
	a.DeviceName, a.Port, a.Ports, a.NodeGUID, a.DeviceNumber = "card", 2, 2, 0x1234000000005678, 7
	page := b.get("/web/adapters/Ethernet%201").Body.String()
	for _, want := range []string{"port 2 of card", "Port 2 of 2", "1234:0000:0000:5678", "PCI bus 8, device 0"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestPortProtocolIsKept: the protocol of a port is stored where its generation keeps it, and shown again.
func TestPortProtocolIsKept(t *testing.T) {
	b := newBench(t)
	const path = "/web/adapters/Ethernet%201/port"
	checked := func(value string) bool {
		return strings.Contains(b.get(path).Body.String(), `value="`+value+`" checked`)
	}
	if !checked("hw") {
		t.Error("no choice is not shown as the hardware's default")
	}
	b.post(path, url.Values{"protocol": {"eth"}})
	a, _ := b.reg.Adapter("Ethernet 1")
	if n, ok := b.reg.Configuration(a)["LINK_TYPE_P1"]; !ok || n != 2 || !checked("eth") {
		t.Errorf("LINK_TYPE_P1 is %d", n)
	}
	b.post(path, url.Values{"protocol": {"hw"}})
	if _, ok := b.reg.Configuration(a)["LINK_TYPE_P1"]; ok || !checked("hw") {
		t.Error("LINK_TYPE_P1 is still set")
	}
	b.post(adapterURL(hostile, "/port"), url.Values{"protocol": {"eth"}})
	if got := fmt.Sprint(b.did); !strings.Contains(got, "PortType1 2") {
		t.Error("want PortType1 to be 2, the form did ", got)
	}
	b.status.Adapters[1].Device, b.status.Adapters[1].Port = "Ethernet 1", 2
	b.status.Adapters[1].Generation = "mlx5"
	b.post(adapterURL(hostile, "/port"), url.Values{"protocol": {"ib"}})
	if n := b.reg.Configuration(a)["LINK_TYPE_P2"]; n == 1 {
		t.Error("a port took a protocol that it cannot have")
	}
	b.status.Adapters[1].Protocols = []string{"ib", "eth"}
	b.post(adapterURL(hostile, "/port"), url.Values{"protocol": {"ib"}})
	if n := b.reg.Configuration(a)["LINK_TYPE_P2"]; n != 1 {
		t.Errorf("LINK_TYPE_P2 of the device is %d", n)
	}
	if page := b.get(adapterURL(hostile, "/port")).Body.String(); !strings.Contains(page, `value="ib" checked`) ||
		!strings.Contains(page, "Protocol of port 2") ||
		!strings.Contains(page, ">Ethernet 1</a>") {
		t.Errorf("the page of the second port is\n%s", page)
	}
}

// TestAllCapturesAreListedAndEnded: the page lists all captures of the driver and says if one ended incompletely.
func TestAllCapturesAreListedAndEnded(t *testing.T) {
	b := newBench(t)
	page := b.get("/web/capture").Body.String()
	for _, want := range []string{"12\u202f345", template.HTMLEscapeString("/" + hostile), "a program or browser", "running",
		"ended: " + template.HTMLEscapeString(hostile), "/web/capture/2/stop"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for id, want := range map[string]string{"1": "its file is complete", "2": "not complete: the disk is full"} {
		if w := b.post("/web/capture/"+id+"/stop", url.Values{}); w.Code != http.StatusSeeOther || !slices.Contains(b.did, "end "+id) {
			t.Errorf("stop %s: %d, %q", id, w.Code, b.did)
		}
		if text := b.get("/web/capture").Body.String(); !strings.Contains(text, want) {
			t.Errorf("behind the stop of %s the page lacks %q", id, want)
		}
	}
}
