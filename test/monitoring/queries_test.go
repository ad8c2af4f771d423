package monitoring

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
)

// family is a metric that a driver exports: its kind, and the labels of each of its series.
type family struct {
	kind   string
	series []map[string]string
}

// has reports whether each series has a label: its own, or that of every target of Prometheus.
func (f *family) has(label string) bool {
	return label == "instance" || !slices.ContainsFunc(f.series, func(s map[string]string) bool { return s[label] == "" })
}

// scraped gets what a driver tells Prometheus at /metrics, as Prometheus does: over TLS, with the token.
func scraped(t *testing.T, d *driver.Driver, cfg config.Config) map[string]*family {
	t.Helper()
	cert, err := os.ReadFile(filepath.Join(cfg.State, "api-cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(cfg.State, "api-token"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer tr.CloseIdleConnections()
	q, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+d.Managed()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r, err := (&http.Client{Transport: tr}).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, err)
	}
	out := map[string]*family{}
	line, pair := regexp.MustCompile(`^(softvpi_\w+)(?:\{(.*)\})? \S+$`), regexp.MustCompile(`(\w+)="([^"]*)"`)
	for l := range strings.Lines(string(text)) {
		l = strings.TrimSpace(l)
		if kind, is := strings.CutPrefix(l, "# TYPE softvpi_"); is {
			name, kind, _ := strings.Cut(kind, " ")
			out["softvpi_"+name] = &family{kind: kind}
		} else if m := line.FindStringSubmatch(l); m != nil && out[m[1]] != nil {
			labels := map[string]string{}
			for _, p := range pair.FindAllStringSubmatch(m[2], -1) {
				labels[p[1]] = p[2]
			}
			out[m[1]].series = append(out[m[1]].series, labels)
		}
	}
	return out
}

var (
	// aQuery is a query of the dashboard: a metric, or its rate or increase, in bits instead of bytes or not.
	aQuery = regexp.MustCompile(`^(8 \* )?(?:(rate|increase)\()?(softvpi_\w+)\{([^}]*)\}(\[\$__rate_interval\]\))?$`)
	// aValues is the query of a variable: the values that a label of a metric has.
	aValues   = regexp.MustCompile(`^label_values\((softvpi_\w+)(?:\{([^}]*)\})?, (\w+)\)$`)
	aMatcher  = regexp.MustCompile(`^(\w+)=~"\$(\w+)"$`)
	inLegend  = regexp.MustCompile(`\{\{(\w+)\}\}`)
	ofPackets = regexp.MustCompile(`packets|frames|cnps|dropped|wrong_vlan|lost`)
)

// unitOf returns the unit of a query's values, as Grafana names it; empty: there is none.
func unitOf(bits bool, function, metric string) string {
	base := strings.TrimSuffix(strings.TrimSuffix(metric, "_total"), "_limit")
	kind := "count"
	for _, k := range []string{"bytes", "seconds"} {
		if strings.HasSuffix(base, "_"+k) {
			kind = k
		}
	}
	if kind == "count" && function == "rate" && ofPackets.MatchString(metric) {
		kind = "packets"
	}
	if bits {
		kind = "8 " + kind
	}
	return map[[2]string]string{{"rate", "8 bytes"}: "bps", {"rate", "bytes"}: "Bps", {"rate", "seconds"}: "percentunit",
		{"rate", "packets"}: "pps", {"rate", "count"}: "ops", {"increase", "bytes"}: "bytes", {"increase", "seconds"}: "s",
		{"increase", "count"}: "short", {"", "bytes"}: "bytes", {"", "seconds"}: "s", {"", "count"}: "short"}[[2]string{function, kind}]
}

// wrong returns what is wrong with a dashboard that shows drivers which export these metrics.
func wrong(d *dashboard, metrics map[string]*family) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	used := map[string]bool{}
	matches := func(where, text string, f *family) {
		for m := range strings.SplitSeq(text, ",") {
			x := aMatcher.FindStringSubmatch(m)
			if x == nil || x[1] != x[2] {
				add("%s: %q is not of a variable for its label", where, m)
				continue
			}
			used[x[2]] = true
			if !f.has(x[1]) {
				add("%s: there is no label %s", where, x[1])
			}
		}
	}
	offered := map[string]bool{} // adapters
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := aValues.FindStringSubmatch(v.Query)
		if m == nil || metrics[m[1]] == nil || len(metrics[m[1]].series) == 0 || m[3] != v.Name || !metrics[m[1]].has(m[3]) {
			add("variable %s: %s finds nothing", v.Name, v.Query)
			continue
		}
		if m[2] != "" {
			matches("variable "+v.Name, m[2], metrics[m[1]])
		}
		for _, s := range metrics[m[1]].series {
			offered[s["adapter"]] = offered[s["adapter"]] || v.Name == "adapter"
		}
	}
	for _, p := range d.Panels {
		if p.Datasource.UID == "${source}" {
			used["source"] = true
		}
		lines := map[string]string{}
		for _, q := range p.Targets {
			where := fmt.Sprintf("%q, %s", p.Title, q.Expr)
			m := aQuery.FindStringSubmatch(q.Expr)
			if m == nil || (m[2] == "") != (m[5] == "") {
				add("%s: it is no query that is known here", where)
				continue
			}
			f := metrics[m[3]]
			if f == nil || len(f.series) == 0 {
				add("%s: the driver exports none", where)
				continue
			}
			if (f.kind == "counter") != (m[2] != "") {
				add("%s: it is a %s", where, f.kind)
			}
			if want := unitOf(m[1] != "", m[2], m[3]); p.FieldConfig.Defaults.Unit != want {
				add("%s: the unit is %q, want %q", where, p.FieldConfig.Defaults.Unit, want)
			}
			matches(where, m[4], f)
			if f.has("adapter") && !strings.Contains(m[4], "$adapter") {
				add("%s: it is not of the adapters that are chosen", where)
			}
			for _, l := range inLegend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if !f.has(l[1]) {
					add("%s: the legend has %s, and the driver exports no such label", where, l[1])
				}
			}
			for _, s := range f.series {
				if a := s["adapter"]; a != "" && !offered[a] {
					add("%s: the adapter %s is not offered", where, a)
				}
				for _, instance := range []string{"one:8791", "two:8791"} {
					legend := inLegend.ReplaceAllStringFunc(q.LegendFormat, func(x string) string {
						if x == "{{instance}}" {
							return instance
						}
						return s[strings.Trim(x, "{}")]
					})
					if other := lines[legend]; other != "" {
						add("%s: a line is %q, as one of %s is", where, legend, other)
					}
					lines[legend] = q.Expr
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		if !used[v.Name] {
			add("variable %s: nothing uses it", v.Name)
		}
	}
	return list
}

// TestQueries: what the dashboard asks for is there in what a driver tells Prometheus, units are those of the values, and the lines of a
// panel differ by their legends, with several drivers too. What is spelled wrong or chosen wrong is found.
func TestQueries(t *testing.T) {
	d, cfg := watched(t)
	metrics := scraped(t, d, cfg)
	right := readDashboard(t)
	for _, w := range wrong(&right, metrics) {
		t.Error(w)
	}
	text, err := os.ReadFile("../../examples/monitoring/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ old, new, want string }{
		{"softvpi_adapter_traffic_sent_bytes_total, instance", "softvpi_adapter_traffic_sent_octets_total, instance", "finds nothing"},
		{`\"$instance\"}, adapter)`, `\"$instance\"}, adaptor)`, "finds nothing"},
		{`"name": "adapter"`, `"name": "adapters"`, "variable adapters"},
		{"rate(softvpi_adapter_traffic_sent_packets_total", "rate(softvpi_adapter_traffic_sent_packet_total", "exports none"},
		{`softvpi_vmq_used_queues{instance=~\"$instance\",adapter=`, `softvpi_vmq_used_queues{instance=~\"$instance\",function=`,
			"not of a variable"},
		{`softvpi_driver_held_bytes{instance=~\"$instance\"}`, `softvpi_driver_held_bytes{instance=~\"$instance\",adapter=~\"$adapter\"}`,
			"no label adapter"},
		{`softvpi_vmq_used_queues{instance=~\"$instance\",adapter=~\"$adapter\"}`, `softvpi_vmq_used_queues{instance=~\"$instance\"}`,
			"adapters that are chosen"},
		{`"expr": "8 * rate(`, `"expr": "rate(`, `the unit is "bps", want "Bps"`},
		{`"unit": "percentunit"`, `"unit": "s"`, `want "percentunit"`},
		{`"unit": "bytes"`, `"unit": "bps"`, `want "bytes"`},
		{`"unit": "ops"`, `"unit": "pps"`, `want "ops"`},
		{`"{{instance}} {{adapter}} received"`, `"{{instance}} {{adapter}} sent"`, "as one of"},
		{`"{{instance}} {{adapter}} sent"`, `"{{adapter}} sent"`, "as one of"},
		{`{{adapter}} priority {{priority}}`, `{{adapter}} priority`, "as one of"},
		{`{{function}} sent"`, `{{functions}} sent"`, "no such label"},
		{`"expr": "softvpi_rdma_activity_active_connections{instance=~\"$instance\",adapter=~\"$adapter\"}"`,
			`"expr": "rate(softvpi_rdma_activity_active_connections{instance=~\"$instance\",adapter=~\"$adapter\"}[$__rate_interval])"`,
			"it is a gauge"},
	} {
		changed := strings.Replace(string(text), x.old, x.new, 1)
		if changed == string(text) {
			t.Errorf("the dashboard has no %s", x.old)
		}
		var other dashboard
		if err := json.Unmarshal([]byte(changed), &other); err != nil {
			t.Fatal(err)
		}
		if list := wrong(&other, metrics); !slices.ContainsFunc(list, func(w string) bool { return strings.Contains(w, x.want) }) {
			t.Errorf("%s in the place of %s: %q, want %s", x.new, x.old, list, x.want)
		}
	}
}
