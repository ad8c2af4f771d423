package collector

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// metricName is one of ours; names of recording rules have colons.
var metricName = regexp.MustCompile(`\bsoftvpi_[a-z_0-9]+`)

// ofTheDriver are those that the driver adds (DriverValue).
var ofTheDriver = regexp.MustCompile(`^softvpi_driver_held_bytes(_limit)?$`)

// TestMonitoring_NamesExist: the examples for Prometheus and Grafana name no metric that there is not.
func TestMonitoring_NamesExist(t *testing.T) {
	exist := map[string]bool{}
	for _, of := range newMetrics(nil).of {
		for _, m := range of {
			exist[regexp.MustCompile(`fqName: "([^"]*)"`).FindStringSubmatch(m.desc.String())[1]] = true
		}
	}
	dir := filepath.Join("..", "..", "..", "examples", "monitoring")
	for _, file := range []string{"softvpi.rules.yml", "grafana.json"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(file) == ".json" && !json.Valid(text) {
			t.Errorf("%s is no JSON", file)
		}
		names := metricName.FindAllString(string(text), -1)
		if len(names) < 8 {
			t.Errorf("%s names %d metrics", file, len(names))
		}
		for _, n := range names {
			if !exist[n] && !ofTheDriver.MatchString(n) {
				t.Errorf("%s names %s, which does not exist", file, n)
			}
		}
	}
}
