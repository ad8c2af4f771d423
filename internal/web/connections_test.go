package web

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// The rate cell of a queue pair has the lower of the rates that limit it, with its unit, and says "set" of one that its program has set;
// where congestion limits it, a hint has the rate on whose way it is and alpha; without a limit there is a dash. The table sorts by it.
func TestConnections_RateCell(t *testing.T) {
	b := newBench(t)
	slow, fast := &api.RateStatus{Current: 12.34, Target: 56.7, Alpha: 0.25}, &api.RateStatus{Current: 2500, Target: 10000, Alpha: 1}
	b.status.Adapters[0].QPs = []api.QPStatus{{Number: 1}, {Number: 2, Rate: slow}, {Number: 3, Rate: fast}, {Number: 4, RateLimit: 20},
		{Number: 5, Rate: fast, RateLimit: 20}, {Number: 6, Rate: slow, RateLimit: 20}}
	cell := regexp.MustCompile(`data-name="Rate" class="number"([^>]*)>([^<]*)</td>`)
	cells := func(query string) (all []string) {
		t.Helper()
		w := b.get("/web/connections" + query)
		for _, m := range cell.FindAllStringSubmatch(w.Body.String(), -1) {
			all = append(all, strings.TrimSpace(m[1]+" "+m[2]))
		}
		return all
	}
	const slowHint, fastHint = `title="on the way to 57 Mb/s, alpha 0.250"`, `title="on the way to 10000 Mb/s, alpha 1.000"`
	want := []string{"-", slowHint + " 12.3 Mb/s", fastHint + " 2.50 Gb/s", "20.0 Mb/s set", fastHint + " 20.0 Mb/s set", slowHint + " 12.3 Mb/s"}
	if got := cells("?sort=number"); !slices.Equal(got, want) {
		t.Errorf("cells\n%q, want\n%q", got, want)
	}
	if got := cells("?sort=rate"); len(got) != len(want) || got[0] != want[1] || got[len(got)-1] != "-" {
		t.Errorf("sorted by the rate\n%q", got)
	}
	b.status.Adapters[0].QPs[1].Rate = nil // the limit has ended
	if got := cells("?sort=number"); got[1] != "-" {
		t.Errorf("without its limit %q", got[1])
	}
}
