package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/fabric/state"
)

// fabrics are what the fake says of fabrics.
type fabrics struct {
	names []string
	part  state.Part
}

func (f *fake) Fabrics() []string                      { return f.fabrics.names }
func (f *fake) FabricState(string) (state.Part, error) { return f.fabrics.part, nil }
func (f *fake) CommandFabric(name string, words []string) (string, error) {
	if words[0] == "storm" {
		return "", api.Wrong("priorities", `"9"`, "0 to 7")
	}
	f.did = append(f.did, name+": "+strings.Join(words, " "))
	return "", nil
}

// twoTiers are the ports of hosts h0 and h1 at leaves l0 and l1 below a spine, and of an InfiniBand host at a switch.
func twoTiers() []state.Port {
	p := func(node string, port int, peer string, host bool) state.Port {
		return state.Port{Node: node, Port: port, Peer: peer, Host: host, Up: true, Rate: 1e9}
	}
	ports := []state.Port{
		p("h0", 1, "l0[1]", true), p("h1", 1, "l1[1]", true),
		p("l0", 1, "h0", false), p("l0", 2, "s[1]", false), p("l1", 1, "h1", false), p("l1", 2, "s[2]", false),
		p("s", 1, "l0[2]", false), p("s", 2, "l1[2]", false),
		p("hca", 1, "sw[1]", true), p("sw", 1, "hca[1]", false),
	}
	for i := range 2 {
		ports[8+i].InfiniBand = true
	}
	return ports
}

// The page says that no fabric runs, and what one is.
func TestNoFabricRuns(t *testing.T) {
	b := newBench(t)
	if page := b.get("/web/fabric").Body.String(); !strings.Contains(page, "No fabric runs on this machine") || !strings.Contains(page, "softvpi fabric run FILE") {
		t.Errorf("the page is\n%s", page)
	}
	if w := b.get("/web/fabric?name=gone"); w.Code != http.StatusNotFound {
		t.Errorf("a fabric that does not run: %d", w.Code)
	}
}

// Links are coloured by use, and say what is wrong with them; the chosen port shows its counters and commands.
func TestFabricIsDrawn(t *testing.T) {
	b := newBench(t)
	b.fabrics.names = []string{"lab", hostile}
	b.fabrics.part = state.Part{Timed: true, Now: 1e9, Ports: twoTiers()}
	b.get("/web/fabric?name=lab")
	ports := twoTiers()
	ports[2].OutBytes, ports[0].InBytes = 100e6, 100e6 // 0.8 Gb/s of 1 Gb/s in a second
	ports[3].PausesSent = 7
	ports[4].Up, ports[1].Up = false, false
	ports[7].QueueDrops = 3
	b.fabrics.part = state.Part{Timed: true, Now: 2e9, Ports: ports}
	ports[2].Settings, ports[2].FlowControl = []string{"priorities 0 to 7: weight 1; no marks"}, "PFC 3"
	b.fabrics.part.Deadlock = "l0[2] priority 3, s[1] priority 3"
	b.fabrics.part.Incidents = []state.Incident{{At: 5e8, Kind: "storm", Text: "l0[2] priority 3 is paused for long"},
		{At: 1e9, Kind: "deadlock", Text: "l0[2] priority 3, s[1] priority 3"}}
	page := b.get("/web/fabric?name=lab&port=l0%5B1%5D").Body.String()
	for _, want := range []string{
		"These wait for each other: l0[2] priority 3, s[1] priority 3.", "<td data-name=\"Ago\">2s</td>", "Storm: l0[2] priority 3 is paused for long",
		"<dt>Priorities 0 to 7</dt><dd>weight 1; no marks</dd>", "<dt>Flow control</dt><dd>PFC 3</dd>", "value=\"set l0[1] all kmin=20KB",
		`class="link use4 chosen"`, `class="link out"`, `class="mark paused"`, `class="mark lost"`, "h0 to l0[1]: 80 % used, 0 b/s there, 800 Mb/s back",
		"l0[1] to h0</h2>", "softvpi fabric do --name lab unlink &#39;l0[1]&#39;", ">hca</text>", `class="node switch ib"`, "<dd>800 Mb/s</dd>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<script>") || t.Failed() {
		t.Log(page)
	}
	// Another fabric of the name counts from the beginning.
	b.fabrics.part = state.Part{Timed: true, Now: 5e8, Ports: twoTiers()}
	if page := b.get("/web/fabric?name=lab").Body.String(); strings.Contains(page, "link use4") || strings.Contains(page, `class="mark`) {
		t.Error("what another fabric has done is shown")
	}
}

// Buttons give commands; one that the fabric refuses is shown with why, and nothing is given without the session's secret.
func TestFabricIsCommanded(t *testing.T) {
	b := newBench(t)
	b.fabrics.names, b.fabrics.part = []string{"lab"}, state.Part{Ports: twoTiers()}
	form := url.Values{"name": {"lab"}, "port": {"l0[1]"}, "command": {"unlink l0[1]"}}
	if w := b.post("/web/fabric", form); w.Code != http.StatusSeeOther || fmt.Sprint(b.did) != "[lab: unlink l0[1]]" ||
		w.Header().Get("Location") != fabricURL("lab", "l0[1]") {
		t.Errorf("%d, %v, to %s", w.Code, b.did, w.Header().Get("Location"))
	}
	form.Set("command", "storm l0[1] 9")
	if w := b.post("/web/fabric", form); w.Code != http.StatusUnprocessableEntity ||
		!strings.Contains(w.Body.String(), "0 to 7") || !strings.Contains(w.Body.String(), "l0[1] to h0</h2>") {
		t.Errorf("%d: %s", w.Code, w.Body.String())
	}
	form.Del("command")
	if w := b.post("/web/fabric", form); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("no command: %d", w.Code)
	}
}

// Switches are above their hosts, and those next to each other below one switch; what is too much is not drawn.
func TestRowsOfADrawing(t *testing.T) {
	var ports []fabricPort
	for _, p := range twoTiers() {
		ports = append(ports, fabricPort{Port: p, Name: portName(&p)})
	}
	y := map[string]int{}
	for _, n := range draw(ports, "").Nodes {
		y[n.Name] = n.Y
	}
	if !(y["s"] < y["l0"] && y["l0"] == y["l1"] && y["l0"] == y["sw"] && y["l0"] < y["h0"] && y["h0"] == y["h1"] && y["h0"] == y["hca"]) {
		t.Errorf("heights %v", y)
	}
	if draw(make([]fabricPort, 2*mostDrawn+1), "") != nil {
		t.Error("too many links are drawn")
	}
}
