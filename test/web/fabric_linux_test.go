package web

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/lan"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/ibsim"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// fabricRunning runs a fabric with an Ethernet switch and an InfiniBand one as another process would, and returns its name.
func fabricRunning(t *testing.T) (name string) {
	t.Helper()
	cfg := lan.Config{Timing: true}
	s := lan.Node{Name: "leaf"}
	for i := range 3 {
		cfg.Nodes = append(cfg.Nodes, lan.Node{Name: fmt.Sprintf("host%d", i),
			Station: &ethernet.StationConfig{Wire: ethernet.PortConfig{Rate: 1e9}}})
		s.Ports = append(s.Ports, ethernet.PortConfig{Rate: 1e9})
		cfg.Links = append(cfg.Links, lan.Link{A: ethernet.End{Node: i}, B: ethernet.End{Node: 3, Port: i}})
	}
	cfg.Nodes = append(cfg.Nodes, s)
	n, err := lan.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := n.Plug(0, fmt.Sprintf("host%d", i), "a test"); err != nil {
			t.Fatal(err)
		}
	}
	top, err := topology.Star(2, topology.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	r := live.New(fabric.New(top, rand.Uint64), live.Options{Timing: true, Ethernet: n})
	t.Cleanup(func() { r.Close() })
	name = fmt.Sprintf("web-%x", rand.Uint32())
	cables, err := live.Listen(paths.Cables(name), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ibsim.ListenLocal(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 2)
	go func() { served <- r.Serve(ctx, cables) }()
	go func() { served <- ibsim.NewServer(r).Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
	})
	return name
}

// The page of a fabric: that none runs, then its topology; a link is chosen in the picture, broken and mended by buttons, and the
// picture follows.
func TestFabricPage(t *testing.T) {
	path := chromium(t)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	socket, _ := running(t)
	link, err := api.NewClient(socket).Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, path)
	b.follow(link.URL)
	b.shows("h1", "Devices of")
	b.page("fabric")
	b.shows(".none", "No fabric runs on this machine")
	name := fabricRunning(t)
	b.page("fabric")
	b.shows("h1", name)
	if got := strings.Join(b.texts("svg.fabric text"), " "); got != "leaf switch0000 host0 host1 host2 node00000 node00001" {
		t.Errorf("nodes %s", got)
	}
	b.do(chromedp.Evaluate(`document.querySelector('svg.fabric a[aria-label^="host1 to"]').dispatchEvent(new MouseEvent("click", {bubbles: true}))`, nil))
	b.shows("#chosen-title", "leaf[2] to host1")
	out := `document.querySelectorAll("svg.fabric .link.out").length`
	b.holds(out + " === 0")
	b.click(`button[value="unlink leaf[2]"]`)
	b.shows(".notice", "Done: unlink leaf[2].")
	b.holds(out + " === 1")
	b.click(`button[value="relink leaf[2]"]`)
	b.shows(".notice", "Done: relink leaf[2].")
	b.holds(out + " === 0")
	b.click(`button[value="flap leaf[2] 200ms"]`)
	b.shows(".notice", "Done: flap leaf[2] 200ms.")
	b.holds(out + " === 0") // the picture follows by itself
	b.click(`button[value="loss leaf[2] 1%"]`)
	b.shows("#fabric dd", "1 %")
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}
