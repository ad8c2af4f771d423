package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// program finds one of Prometheus's programs.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s in the PATH: Prometheus does not load examples/monitoring", name)
	}
	return path
}

// TestRules: promtool accepts the rules, and their alerts come when they are to.
func TestRules(t *testing.T) {
	promtool := program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "softvpi.rules.yml"}, {"test", "rules", "softvpi.test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "../../examples/monitoring"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// prometheus is a running Prometheus.
type prometheus struct {
	t   *testing.T
	url string
}

// collect starts a Prometheus that reads a driver by the configuration of examples/monitoring/README.md, with shorter intervals.
func collect(t *testing.T, d *driver.Driver, cfg config.Config) *prometheus {
	t.Helper()
	path := program(t, "prometheus")
	dir := t.TempDir()
	rules, err := filepath.Abs("../../examples/monitoring/softvpi.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../examples/monitoring/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(readme), "# prometheus.yml\n")
	text, _, ended := strings.Cut(text, "\n\n")
	if !found || !ended {
		t.Fatal("README.md has no configuration of Prometheus")
	}
	text = strings.NewReplacer("\n    ", "\n", "softvpi.rules.yml", rules, "host:8791", d.Managed(),
		"softvpi-cert.pem", filepath.Join(cfg.State, "api-cert.pem"), "softvpi-token", filepath.Join(cfg.State, "api-token"),
	).Replace("\n" + text)
	text = "global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 500ms }\n" + text + "\n"
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	read, write := io.Pipe()
	cmd := exec.Command(path, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0",
		"--log.level=info")
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	logged := make(chan struct{})
	go func() { // its address is in what it says; its web server is not asked for a free port otherwise
		defer close(logged)
		listening := regexp.MustCompile(`Listening on" address=(\S+)`)
		buffer := make([]byte, 4096)
		for told := false; ; {
			n, err := read.Read(buffer)
			log.Write(buffer[:n])
			if m := listening.FindSubmatch(log.Bytes()); m != nil && !told {
				address <- string(m[1])
				told = true
			}
			if err != nil {
				if !told {
					close(address)
				}
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		write.Close()
		<-logged
		if t.Failed() {
			t.Logf("%s\n%s", text, log.Bytes())
		}
	})
	p := &prometheus{t: t}
	await.Eventually(t, "the address of Prometheus", func() bool {
		select {
		case a, ok := <-address:
			if !ok {
				t.Fatal("Prometheus ends at once")
			}
			p.url = "http://" + a
		default:
		}
		return p.url != ""
	})
	return p
}

// ask gets what the HTTP API answers, and reports whether it is there.
func (p *prometheus) ask(path string, q url.Values, into any) bool {
	r, err := http.Get(p.url + path + "?" + q.Encode())
	if err != nil {
		return false
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode == http.StatusServiceUnavailable { // it has not read its configuration yet
		return false
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		p.t.Fatalf("%s %s: %s: %s", path, q, r.Status, body)
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		p.t.Fatalf("%s %s: %v: %s", path, q, err, answer.Data)
	}
	return true
}

// sample is a value of a query, with its labels.
type sample struct {
	labels map[string]string
	value  float64
}

// query returns the values that an expression has now.
func (p *prometheus) query(expr string) (list []sample) {
	var d struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if !p.ask("/api/v1/query", url.Values{"query": {expr}}, &d) {
		return nil
	}
	for _, r := range d.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			p.t.Fatalf("%s: %v", expr, r)
		}
		list = append(list, sample{r.Metric, v})
	}
	return list
}

// of is the value with a label.
func of(list []sample, label, value string) float64 {
	for _, s := range list {
		if s.labels[label] == value {
			return s.value
		}
	}
	return math.NaN()
}

// TestPrometheus: a Prometheus with the configuration, the rules and the queries of examples/monitoring reads a driver with traffic. Every
// recording rule and every query of the dashboard has values, no rule fails, and bytes are those that programs have sent.
func TestPrometheus(t *testing.T) {
	d, cfg := watched(t)
	p := collect(t, d, cfg)
	at := netip.MustParseAddr
	flows := map[string]*flow{
		"wire": send(t, cfg.Socket, at("192.0.2.1"), at("192.0.2.2")),
		"vlan": send(t, cfg.Socket, at("198.51.100.1"), at("198.51.100.2")),
		"near": send(t, cfg.Socket, cfg.Adapters[4].Address, cfg.Adapters[5].Address),
	}
	var recorded []string
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Query, Type, Health, LastError string }
		}
	}
	await.Eventually(t, "the rules of Prometheus", func() bool { return p.ask("/api/v1/rules", nil, &rules) && len(rules.Groups) == 1 })
	for _, r := range rules.Groups[0].Rules {
		if r.Type == "recording" {
			recorded = append(recorded, r.Name)
		}
	}
	if len(recorded) < 8 {
		t.Fatalf("recording rules: %v", recorded)
	}
	for _, name := range recorded {
		await.Eventually(t, "values of "+name, func() bool { return len(p.query(name)) > 0 })
	}
	for _, x := range []struct{ rule, label, value string }{
		{"softvpi:sent_bits:rate1m", "adapter", "a"}, {"softvpi:received_bits:rate1m", "adapter", "b"},
		{"softvpi:vlan_sent_bits:rate1m", "vlan", "a.V"}, {"softvpi:vlan_received_bits:rate1m", "vlan", "b.V"},
		{"softvpi:without_packets_bits:rate1m", "adapter", "near"},
	} {
		await.Eventually(t, x.rule+" above 0", func() bool { return of(p.query(x.rule), x.label, x.value) > 0 })
	}
	values := 0
	for _, expr := range recorded {
		for _, s := range p.query(expr) { // which had some above
			values++
			if math.IsNaN(s.value) || math.IsInf(s.value, 0) || s.value < 0 {
				t.Errorf("%s is %v of %v", expr, s.value, s.labels)
			}
		}
	}
	var adapters []string
	if !p.ask("/api/v1/label/adapter/values", url.Values{"match[]": {"softvpi_adapter_traffic_sent_bytes_total"}}, &adapters) ||
		!strings.HasPrefix(strings.Join(adapters, " "), "a b c") {
		t.Errorf("the dashboard offers the adapters %v", adapters)
	}
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			expr := substituted(target.Expr)
			var list []sample
			if !await.Until(func() bool { // a driver that answers late has none until it is asked again
				list = p.query(expr)
				return len(list) > 0
			}) {
				t.Errorf("%q: %s has no values", panel.Title, expr)
			}
			for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				for _, s := range list {
					if s.labels[label[1]] == "" {
						t.Errorf("%q: the legend %q wants a label that %v has not", panel.Title, target.LegendFormat, s.labels)
					}
				}
			}
			for _, s := range list {
				values++
				if math.IsNaN(s.value) || math.IsInf(s.value, 0) || s.value < 0 {
					t.Errorf("%q: %s is %v of %v", panel.Title, expr, s.value, s.labels)
				}
			}
		}
	}
	t.Logf("%d values of %d recording rules and %d panels", values, len(recorded), len(readDashboard(t).Panels))
	if !p.ask("/api/v1/rules", nil, &rules) {
		t.Fatal("Prometheus tells nothing of its rules any more")
	}
	for _, r := range rules.Groups[0].Rules {
		if r.Health != "ok" || r.LastError != "" {
			t.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}
	// Bytes are bytes: what programs have sent, and with headers and acknowledgements at most a fifth more.
	for _, f := range flows {
		f.stop()
	}
	for metric, want := range map[string]uint64{
		`softvpi_adapter_traffic_sent_bytes_total{adapter="a"}`:                                      flows["wire"].sent.Load(),
		`softvpi_vlan_sent_bytes_total{vlan="a.V"}`:                                                  flows["vlan"].sent.Load(),
		`softvpi_transport_local_bytes_total{adapter="near"} + softvpi_transport_direct_bytes_total`: flows["near"].sent.Load(),
	} {
		var last float64
		await.Until(func() bool {
			for _, s := range p.query(metric) {
				last = s.value
			}
			return last >= float64(want)
		})
		if last < float64(want) || last > 1.2*float64(want)+1<<16 {
			t.Errorf("%s is %.0f, and programs have sent %d bytes", metric, last, want)
		}
	}
}
