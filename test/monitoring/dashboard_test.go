package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is what there is to check of Grafana's format (its schema of dashboards, version 39).
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Annotations   *struct{ List []any }
	Templating    struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []panel
}

type panel struct {
	ID         int
	Title      string
	Type       string
	Datasource struct{ Type, UID string }
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct{ RefID, Expr, LegendFormat string }

	FieldConfig struct {
		Defaults  struct{ Unit string }
		Overrides []any
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("../../examples/monitoring/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboard: panels have numbers and places of their own within Grafana's 24 columns, kinds and units that Grafana knows, the data
// source that is asked for, and no variable that the dashboard does not have.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || d.SchemaVersion != 39 || d.Annotations == nil || len(d.Panels) < 10 {
		t.Errorf("it is %q, uid %q, schema %d, annotations %v, with %d panels", d.Title, d.UID,
			d.SchemaVersion, d.Annotations, len(d.Panels))
	}
	variables := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		if !slices.Contains([]string{"datasource", "query"}, v.Type) || v.Query == "" {
			t.Errorf("variable %s: type %q, query %q", v.Name, v.Type, v.Query)
		}
		variables = append(variables, v.Name)
	}
	units := []string{"bps", "Bps", "pps", "ops", "percentunit", "bytes", "short"}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" || p.Type != "timeseries" || !slices.Contains(units, p.FieldConfig.Defaults.Unit) ||
			p.FieldConfig.Overrides == nil || p.Datasource.Type != "prometheus" || p.Datasource.UID != "${source}" || len(p.Targets) == 0 {
			t.Errorf("panel %d, %q: %+v", p.ID, p.Title, p)
		}
		ids[p.ID] = true
		if g := p.GridPos; g.X < 0 || g.W < 1 || g.X+g.W > 24 || g.H < 1 {
			t.Errorf("%q is at %+v", p.Title, g)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := cells[at]; other != "" {
					t.Fatalf("%q lies over %q", p.Title, other)
				}
				cells[at] = p.Title
			}
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if refs[q.RefID] || q.RefID == "" || q.LegendFormat == "" {
				t.Errorf("%q: query %q, legend %q", p.Title, q.RefID, q.LegendFormat)
			}
			refs[q.RefID] = true
			for _, v := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				if !slices.Contains(variables, v[1]) {
					t.Errorf("%q: there is no variable $%s", p.Title, v[1])
				}
			}
		}
	}
}

// substituted is a query as Grafana sends it with all drivers and adapters selected.
func substituted(expr string) string {
	return strings.NewReplacer("$instance", ".*", "$adapter", ".*", "$__rate_interval", "1m").Replace(expr)
}
