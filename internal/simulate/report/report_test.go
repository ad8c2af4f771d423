package report

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/simulate"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// results are those of runs with a seed of each.
func results(t *testing.T, text string, seeds ...string) (all []simulate.Labelled) {
	t.Helper()
	for _, seed := range seeds {
		s, err := scenario.Read("f", []byte(text), scenario.Set{Path: "seed", Text: seed})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, simulate.Labelled{Label: "seed=" + seed, Result: outcome(t, s)})
	}
	if len(all) == 1 {
		all[0].Label = ""
	}
	return all
}

func outcome(t *testing.T, s *scenario.Scenario) *simulate.Result {
	r, err := simulate.New(s)
	if err != nil {
		t.Fatal(err)
	}
	x, err := r.Run(context.Background(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

const text = `{"name": "a </script> & <b>", "topology": {"senders": 3}, "switch": {"kmin": 5, "kmax": 50, "pmax": 1, "pfc": [3], "xoff": "20KB"},
	"nic": {"pfc": [3], "DcqcnEnablePrio3": 1}, "workload": {"size": "100KB"}, "lean": true}`

func write(t *testing.T, all []simulate.Labelled) string {
	var b bytes.Buffer
	if err := HTML(&b, all); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHTML: the page needs nothing from elsewhere, and what is in a scenario does not end its elements.
func TestHTML(t *testing.T) {
	page := write(t, results(t, text, "1", "2"))
	if m := regexp.MustCompile(`(?i)(src|href)\s*=\s*"[^#"]|@import|url\(`).FindString(page); m != "" {
		t.Errorf("the page needs %q", m)
	}
	for _, m := range regexp.MustCompile(`https?://[^"]*`).FindAllString(page, -1) {
		if m != "http://www.w3.org/2000/svg" {
			t.Errorf("the page names %s", m)
		}
	}
	if n := strings.Count(page, "</script>"); n != 2 {
		t.Errorf("%d scripts end, want 2", n)
	}
	data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(page)
	var all []simulate.Labelled
	if len(data) != 2 {
		t.Fatal("no data")
	}
	if err := json.Unmarshal([]byte(data[1]), &all); err != nil || len(all) != 2 || all[1].Result.Name != "a </script> & <b>" {
		t.Errorf("%d runs, %v", len(all), err)
	}
}

// TestFewer: of many flows a page has the first as they are, and others from all over.
func TestFewer(t *testing.T) {
	all := make([]simulate.Flow, 100_000)
	for i := range all {
		all[i].Number = i
	}
	few := fewer(all, 1000)
	if len(few) != 1000 || few[255].Number != 255 || few[256].Number != 256 || few[999].Number < 99_000 {
		t.Errorf("%d flows, the last %d", len(few), few[len(few)-1].Number)
	}
	if len(fewer(all[:600], 10)) != 512 || len(fewer(all[:500], 10)) != 500 {
		t.Error("too few or too many are left")
	}
}

// drawn returns what a browser makes of a page.
func drawn(t *testing.T, name, page string) string {
	t.Helper()
	systemtest.Required(t)
	systemtest.Programs(t, "chromium")
	file := filepath.Join(t.TempDir(), name+".html")
	page = strings.Replace(page, "<script>", `<script>window.onerror = m => document.body.append("page failed: " + m);`, 1)
	if err := wholefile.Write(file, []byte(page)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--dump-dom",
		"file://"+file).Output()
	if err != nil {
		t.Skip("chromium does not run: ", err)
	}
	dom := string(out)
	if strings.Contains(dom, "page failed: Uncaught") || strings.Contains(dom, "NaN") || strings.Contains(dom, "undefined<") {
		t.Errorf("%s: errors in the page", name)
	}
	return dom
}

// TestHTML_Browser: a browser draws the page without an error.
func TestHTML_Browser(t *testing.T) {
	systemtest.Mark(t)
	for name, seeds := range map[string][]string{"one": {"1"}, "several": {"1", "2"}} {
		dom := drawn(t, name, write(t, results(t, text, seeds...)))
		for _, want := range []string{"<h2>Topology</h2>", "<h2>Queues</h2>", "<h2>Slowdown</h2>", "<h2>Pauses</h2>", "sender2 → receiver", "3 / 3"} {
			if !strings.Contains(dom, want) {
				t.Errorf("%s: no %s", name, want)
			}
		}
		if strings.Contains(dom, "<h2>2 runs</h2>") != (len(seeds) == 2) {
			t.Errorf("%s: the comparison of runs", name)
		}
		for _, none := range []string{"LACP", "<h2>Agreed by DCBX"} {
			if strings.Contains(dom[strings.Index(dom, "<main>"):strings.Index(dom, "</main>")], none) {
				t.Errorf("%s: %s, of which there is none", name, none)
			}
		}
	}
}

// TestHTML_IdlePorts: ports that have carried nothing have no priorities, and the page is drawn all the same.
func TestHTML_IdlePorts(t *testing.T) {
	systemtest.Mark(t)
	page := write(t, results(t, `{"topology": {"kind": "star", "hosts": 3}, "lean": true, "duration": "100us", "workload": {"kind": "permutation",
		"hosts": ["host0", "host1"], "size": "20KB"}}`, "1"))
	if !strings.Contains(page, `"priorities":[]`) {
		t.Error("each port has priorities")
	}
	if dom := drawn(t, "idle", page); !strings.Contains(dom, "<h2>Flows</h2>") {
		t.Error("no table of flows")
	}
}

// TestHTML_Agreements: the page has tables of what ports have agreed by LACP, those first whose place in a bundle has changed, and of what
// adapters have by DCBX; the same bytes each time.
func TestHTML_Agreements(t *testing.T) {
	systemtest.Mark(t)
	all := results(t, bundled, "1")
	page := write(t, all)
	if write(t, results(t, bundled, "1")) != page {
		t.Error("another page of the same run")
	}
	dom := drawn(t, "bundled", page)
	dom = regexp.MustCompile(`(<[^>]*>)+`).ReplaceAllString(dom[strings.Index(dom, "<main>"):strings.Index(dom, "</main>")], "|")
	for _, want := range []string{
		`since the run began\|.*\|timed out\|host0\[2\]\|switch\|distributing\|\S+ key 1 port 2\|leaves at 1 s, joins at [4-8]\S* s\|\d+\|\d+\|\d+\|switch\[2\]\|host0\|`,
		`\|switch\[4\]\|host1\|standby\|\S+ key 2 port 2\|–\|`, `\|host1\[1\]\|switch\|distributing\|\S+ key 3 port 3\|–\|`,
		`Ports and priorities.*\|host0\[1\]\|switch\|3\|.*Link aggregation`, `Agreed by DCBX.*\|host0\|switch\|agreed\|ieee\|3\|peer\|peer\|host1\|switch\|`,
	} {
		if !regexp.MustCompile(want).MatchString(dom) {
			t.Errorf("no %s in\n%s", want, dom)
		}
	}
}

// TestTables: each table has its head, and as many cells in each row; text and JSON say the same as the result.
func TestTables(t *testing.T) {
	all := results(t, text, "1", "2")
	for _, table := range Tables {
		var b bytes.Buffer
		if err := table.Write(&b, all); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) < 3 || lines[0] != "run,"+strings.Join(table.Head, ",") {
			t.Errorf("%s: %d lines, %s", table.Name, len(lines), lines[0])
		}
		for _, l := range lines[1:] {
			if strings.Count(l, ",") != len(table.Head) || !strings.HasPrefix(l, "seed=") {
				t.Errorf("%s: %s", table.Name, l)
			}
		}
	}
	var b bytes.Buffer
	if err := JSON(&b, all[:1]); err != nil {
		t.Fatal(err)
	}
	var x []simulate.Labelled
	if err := json.Unmarshal(b.Bytes(), &x); err != nil || len(x) != 1 || x[0].Result.Summary != all[0].Result.Summary {
		t.Errorf("%v", err)
	}
	b.Reset()
	if err := Text(&b, all); err != nil || strings.Count(b.String(), "seed=") != 2 {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// bundled is a run in which a link of a bundle is out for a while, and one has a wrong key.
const bundled = `{"topology": {"kind": "star", "hosts": 2, "bundle": 2, "rate": "2Mb/s"}, "switch": {"lacp": "active", "pfc": [3],
	"dcbx": "ieee", "weights": [1, 1, 1, 2, 1, 1, 1, 1]}, "nic": {"lacp_keys": [1, 1], "dcbx": "auto"}, "nics": {"host1": {"lacp_keys": [1, 2]}},
	"lean": true, "duration": "15s", "sample": "1s", "faults": {"kind": "unlink", "port": "host0[2]", "at": "1s", "until": "2s"},
	"workload": {"kind": "shift"}}`

// TestText_LACP: the summary has the states of ports that follow LACP, and when some have left and joined their bundle.
func TestText_LACP(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, results(t, bundled, "1")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`LACP         distributing at 6, attached at 1, standby at 1 ports\n`,
		`LACP         host0\[2\]>switch leaves at 1s, joins at [4-8]\S*s\n`, `LACP         switch\[2\]>host0 leaves at 1s, joins at [4-8]\S*s\n`} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	a := simulate.Aggregated{Node: "s", Port: 1, Peer: "h"}
	for i := range 7 {
		x := simulate.Joined{At: float64(i) * 1e6, Sends: i%2 > 0}
		a.Changes = append(a.Changes, x, x)
	}
	const want = "s[2]>h leaves at 0s, joins at 1s, leaves at 2s, joins at 3s, 3 times more"
	if got := changes(&a); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
