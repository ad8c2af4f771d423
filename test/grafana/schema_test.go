package grafana

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// text is the dashboard.
func text(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../examples/monitoring/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// read reads a dashboard strictly: a field that Grafana does not have, or has of another type, or wants and does not get, is an error, and
// so is one of a query or of a panel's options.
//
//lint:ignore SA1019 Grafana imports this schema, and older ones read no other.
func read(text string) (d dashboard.Dashboard, err error) {
	cog.NewRuntime().RegisterPanelcfgVariant(timeseries.VariantConfig())
	cog.NewRuntime().RegisterDataqueryVariant(prometheus.VariantConfig())
	if err := found(d.UnmarshalJSONStrict([]byte(text))); err != nil {
		return d, err
	}
	var raw struct{ Panels []json.RawMessage }
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return d, err
	}
	d.Panels = nil
	for _, text := range raw.Panels { // its configuration of fields and its queries are read leniently, or lost, within a dashboard
		p := dashboard.NewPanel()
		var parts struct {
			FieldConfig json.RawMessage
			Targets     []json.RawMessage
		}
		err := errors.Join(found(p.UnmarshalJSONStrict(text)), json.Unmarshal(text, &parts),
			found(new(dashboard.FieldConfigSource).UnmarshalJSONStrict(parts.FieldConfig)))
		p.Targets = nil
		for _, text := range parts.Targets {
			var q prometheus.Dataquery
			err = errors.Join(err, found(q.UnmarshalJSONStrict(text)))
			p.Targets = append(p.Targets, q)
		}
		if err != nil {
			return d, err
		}
		d.Panels = append(d.Panels, dashboard.PanelOrRowPanel{Panel: p})
	}
	return d, found(d.Validate())
}

// found is an error of the library, which returns an empty list of them where there is none.
func found(err error) error {
	if list := (cog.BuildErrors)(nil); errors.As(err, &list) && len(list) == 0 {
		return nil
	}
	return err
}

// TestSchema: the dashboard is one of Grafana's schema, every panel is a time series that it knows, with a unit that it knows, and every
// query is one for Prometheus that is drawn, from the data source that is asked for.
func TestSchema(t *testing.T) {
	d, err := read(text(t))
	if err != nil {
		t.Fatal(err)
	}
	if newest := dashboard.NewDashboard().SchemaVersion; d.SchemaVersion < 36 || d.SchemaVersion > newest {
		t.Errorf("schema %d: data sources are references from 36 on, and the library's is %d", d.SchemaVersion, newest)
	}
	known := map[string]bool{units.BitsPerSecondSI: true, units.BytesPerSecondSI: true, units.PacketsPerSecond: true,
		units.OpsPerSecond: true, units.PercentUnit: true, units.BytesIEC: true, units.Short: true}
	for _, v := range d.Templating.List {
		want := v.Type == dashboard.VariableTypeDatasource && v.Name == "source" && v.Query != nil && *v.Query.String == "prometheus" ||
			v.Type == dashboard.VariableTypeQuery && v.Datasource != nil && *v.Datasource.Uid == "${source}" && v.Refresh != nil
		if !want {
			t.Errorf("variable %s: %+v", v.Name, v)
		}
	}
	for _, p := range d.Panels {
		if p.Panel == nil {
			t.Fatalf("a row: %+v", p.RowPanel)
		}
		if _, found := cog.ConfigForPanelcfgVariant(p.Panel.Type); !found {
			t.Errorf("%q is of kind %q", *p.Panel.Title, p.Panel.Type)
		}
		if u := p.Panel.FieldConfig.Defaults.Unit; u == nil || !known[*u] {
			t.Errorf("%q has a unit that Grafana does not know", *p.Panel.Title)
		}
		if len(p.Panel.Targets) == 0 {
			t.Errorf("%q asks nothing", *p.Panel.Title)
		}
		for _, q := range p.Panel.Targets {
			query, is := q.(prometheus.Dataquery)
			if !is {
				t.Errorf("%q has a query %T", *p.Panel.Title, q)
				continue
			}
			if s := query.Datasource; s == nil || s.Type == nil || *s.Type != "prometheus" || s.Uid == nil || *s.Uid != "${source}" {
				t.Errorf("%q asks something else than ${source}", *p.Panel.Title)
			}
			if (query.Hide != nil && *query.Hide) || query.Range == nil || !*query.Range {
				t.Errorf("%q: %s is no query over time that is drawn", *p.Panel.Title, query.Expr)
			}
		}
	}
}

// TestSchema_Strict: what is spelled wrong, missing or of another type anywhere in the dashboard is found.
func TestSchema_Strict(t *testing.T) {
	right := text(t)
	for _, x := range []struct{ old, new string }{
		{`"schemaVersion": 39`, `"schemaVersion": "39"`},
		{`"refresh": "10s"`, `"refreshes": "10s"`},
		{`"includeAll"`, `"includesAll"`},
		{`"type": "datasource"`, `"type": 1`},
		{`"gridPos"`, `"gridpos"`},
		{`"w": 12`, `"w": "12"`},
		{`"unit": "bps"`, `"units": "bps"`},
		{`"overrides": []`, `"overrides": {}`},
		{`"legendFormat"`, `"legend"`},
		{`"expr"`, `"query"`},
		{`"uid": "${source}"`, `"id": "${source}"`},
	} {
		wrong := strings.Replace(right, x.old, x.new, 1)
		if wrong == right {
			t.Errorf("the dashboard has no %s", x.old)
		}
		if _, err := read(wrong); err == nil {
			t.Errorf("%s in the place of %s is read", x.new, x.old)
		}
	}
}
