package web

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/softvpi/softvpi/internal/simulate"
	"github.com/softvpi/softvpi/internal/simulate/report"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// Reports of large simulations are files of a few megabytes which a browser opens without a fault and without asking anybody: 1,008 hosts
// with 2,016 flows, hundreds of flows between RC queue pairs, and a sweep. Their plots are drawn, with the topology, and their tables are
// there.
func TestReportsOfLargeSimulations(t *testing.T) {
	systemtest.Mark(t)
	b := open(t, chromium(t))
	for _, c := range []struct {
		name, text string
		sets       [][]string
		hosts      int
	}{
		{"1008-hosts", `{"topology": {"kind": "leaf-spine", "leaves": 63, "spines": 8, "hosts": 16}, "lean": true, "duration": "500us",
			"workload": [{"kind": "permutation", "size": "1MB"}, {"kind": "shift", "by": 17, "size": "100KB"}]}`, nil, 1008},
		{"400-flows", `{"topology": {"senders": 50}, "duration": "1ms", "switch": {"pfc": [3], "kmin": "5KB", "kmax": "200KB", "pmax": "1%"},
			"nic": {"pfc": [3], "DcqcnEnablePrio3": 1}, "workload": [` + strings.Repeat(`{"size": "100KB"},`, 7) + `{"size": "100KB"}]}`, nil, 51},
		{"sweep", `{"topology": {"senders": 8}, "lean": true, "duration": "1ms"}`,
			[][]string{{"switch.kmin=5", "switch.kmax=200"}, {"switch.kmin=40", "switch.kmax=200"}, {"switch.kmin=160", "switch.kmax=400"}}, 9},
	} {
		var all []simulate.Labelled
		for _, sets := range append(c.sets, nil)[:max(len(c.sets), 1)] {
			var set []scenario.Set
			for _, text := range sets {
				name, value, _ := strings.Cut(text, "=")
				set = append(set, scenario.Set{Path: name, Text: value, By: "--set"})
			}
			s, err := scenario.Read(c.name, []byte(c.text), set...)
			if err != nil {
				t.Fatal(err)
			}
			r, err := simulate.New(s)
			if err != nil {
				t.Fatal(err)
			}
			result, err := r.Run(t.Context(), runtime.GOMAXPROCS(0), nil)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, simulate.Labelled{Label: strings.Join(sets, " "), Result: result})
		}
		file := filepath.Join(t.TempDir(), c.name+".html")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := report.HTML(f, all); err != nil {
			t.Fatal(err)
		}
		f.Close()
		info, err := os.Stat(file)
		if err != nil || info.Size() > 5<<20 {
			t.Errorf("%s: a file of %d bytes, %v", c.name, info.Size(), err)
		}
		begun := time.Now()
		b.follow((&url.URL{Scheme: "file", Path: file}).String())
		b.holds("document.readyState === 'complete'")
		var tall int
		var plots, drawn int
		b.do(chromedp.Evaluate("document.documentElement.scrollHeight", &tall),
			chromedp.Evaluate("document.querySelectorAll('svg, canvas').length", &plots),
			chromedp.Evaluate("document.querySelectorAll('svg *').length", &drawn))
		t.Logf("%s: %.1f MB, open after %v, %d plots of %d elements, %d pixels tall", c.name, float64(info.Size())/1e6,
			time.Since(begun).Round(time.Millisecond), plots, drawn, tall)
		var text string
		b.do(chromedp.Evaluate("document.body.innerText", &text))
		if c.name == "400-flows" && !strings.Contains(text, "flows, none of them complete") {
			t.Errorf("%s: %.500s", c.name, text)
		}
		if plots < 5 || len(c.sets) == 0 && !strings.Contains(text, fmt.Sprint(c.hosts)) {
			t.Errorf("%s: %d plots; %.500s", c.name, plots, text)
		}
		if wrong := b.faults(); len(wrong) > 0 {
			t.Errorf("%s: %q", c.name, wrong)
		}
		if c.hosts == 1008 {
			gridOfLinks(t, b, 63, 8)
		}
		if dir := os.Getenv("SCREENSHOTS"); dir != "" {
			var shot []byte
			b.do(chromedp.FullScreenshot(&shot, 100))
			if err := os.WriteFile(filepath.Join(dir, c.name+".png"), shot, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
}

// gridOfLinks checks that links to switches at the top are drawn as cells of which none lies over another, in the rows and columns of
// their ends.
func gridOfLinks(t *testing.T, b *tab, columns, rows int) {
	t.Helper()
	var got struct{ Cells, Over, Columns, Rows int }
	b.do(chromedp.Evaluate(`(() => {
		const all = [...document.querySelectorAll("rect.link")].map(r => r.getBBox());
		let over = 0;
		all.forEach((a, i) => all.slice(i + 1).forEach(c => {
			if (a.x < c.x + c.width && c.x < a.x + a.width && a.y < c.y + c.height && c.y < a.y + a.height) over++;
		}));
		const distinct = key => new Set(all.map(r => r[key].toFixed(1))).size;
		return { Cells: all.length, Over: over, Columns: distinct("x"), Rows: distinct("y") };
	})()`, &got))
	if got.Cells != columns*rows || got.Over != 0 || got.Columns != columns || got.Rows != rows {
		t.Errorf("links of %d switches below and %d at the top: %+v", columns, rows, got)
	}
}
