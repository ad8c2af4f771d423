package ndperf

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestTables(t *testing.T) {
	var b bytes.Buffer
	writeHeader(&b, Bandwidth)
	writeRow(&b, newRow(1, 1, 1000, 2*time.Millisecond, time.Millisecond))
	writeRow(&b, newRow(16, 65536, 1_000_000, 20*time.Second, 25*time.Second))
	writeRow(&b, newRow(4096, 4<<20, 999_999_999, 86400*time.Second, 1))
	writeHeader(&b, Latency)
	r := newRow(1, 8, 1000, 10*time.Millisecond, 20*time.Millisecond)
	r.Latency = &LatencyRow{Min: 2.51, Max: 180.2, Typical: 3.02, Average: 3.4, Stdev: 4.1, P99: 9.7, P999: 60.25}
	writeRow(&b, r)
	r.Bytes, r.Iterations, r.Latency = 4<<20, 1_000_000_000, &LatencyRow{Min: 12345.67, Max: 9999999.99, Typical: 99999.5, Average: 100000,
		Stdev: 1234.5, P99: 200000, P999: 300000}
	writeRow(&b, r)
	golden(t, "tables.txt", b.Bytes())
}

func TestRatesAreInMillionsAndGibibits(t *testing.T) {
	r := newRow(1, 1<<27, 10, time.Second, 500*time.Millisecond)
	if r.Gbps != 10 || r.MessageRate != 1e-5 || r.CPU != 50 {
		t.Errorf("%+v, want 10 Gb/s, 1e-5 million messages per second and 50 %% of a processor", r)
	}
	if r := newRow(1, 1, 0, 0, 0); r.Gbps != 0 || r.CPU != 0 {
		t.Errorf("a row of no time: %+v, want rates of 0", r)
	}
}

func TestJSONReport(t *testing.T) {
	c, s := newRow(1, 64, 1000, time.Millisecond, time.Millisecond), newRow(1, 64, 1000, 2*time.Millisecond, time.Millisecond)
	c.Latency = &LatencyRow{Min: 1, Typical: 2, P999: 3}
	r := Report{Tool: "nd_send_lat", Role: "client", Server: "127.9.0.1:6830", Client: "127.9.0.2", Adapter: "Ethernet 1", Mode: "embedded",
		Results: []Result{{Bytes: 64, Client: c, Server: s}}}
	r.judge(&options{MaxLat: 1.5})
	var b bytes.Buffer
	if err := r.writeJSON(&b); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Error("not valid JSON:\n", b.String())
	}
	golden(t, "report.json", b.Bytes())
}

func TestThresholdsJudgeTheBestSize(t *testing.T) {
	results := []Result{{Client: Row{Gbps: 1, Latency: &LatencyRow{Typical: 5}}}, {Client: Row{Gbps: 3, Latency: &LatencyRow{Typical: 9}}}}
	for _, c := range []struct {
		o      options
		passed bool
	}{
		{options{MinBW: 3}, true}, {options{MinBW: 3.01}, false},
		{options{MaxLat: 5}, true}, {options{MaxLat: 4.99}, false},
	} {
		r := Report{Results: results}
		r.judge(&c.o)
		if r.Threshold == nil || r.Threshold.Passed != c.passed {
			t.Errorf("%+v: %+v, want passed %v", c.o, r.Threshold, c.passed)
		}
	}
}
