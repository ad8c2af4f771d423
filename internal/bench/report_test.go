package bench

import (
	"encoding/json"
	"strings"
	"testing"
)

// measured returns a report with a row of every kind.
func measured() *Report {
	s := samples{}
	for _, v := range []float64{9, 1, 5} {
		s.add("write", v)
		s.add("iperf3", 2*v)
		s.add("latency", v/1000)
	}
	r := &Report{Machine: "a machine", Command: "softvpi bench", Started: "2026-01-02T03:04:05Z", Rounds: 3, Seconds: 0.5}
	r.add("veth", s,
		figure{"write of 1 MB", "Gb/s", "write", "iperf3 TCP", "iperf3", timesAtLeast(2)},
		figure{"write of 1 MB", "Gb/s", "write", "iperf3 TCP", "iperf3", timesAtMost(0.5)},
		figure{"write of 1 MB", "Gb/s", "write", "absent", "absent", timesAtLeast(2)},
		figure{"never measured", "Gb/s", "nothing", "", "", atLeast(1)},
		figure{name: "latency", unit: "us", sample: "latency", target: atLeast(1)})
	r.add("scale", s, figure{name: "write of 1 MB", unit: "Gb/s", sample: "write", target: atMost(5)})
	return r
}

func TestReportAsMarkdown(t *testing.T) {
	const want = `a machine

` + "`softvpi bench`" + `, 2026-01-02T03:04:05Z: medians of 3 interleaved rounds of 0.5 s. Gb/s = 2^30 bits of payload a second.

### veth

| what | | lowest - highest | next to | | ratio | aim | |
|---|---|---|---|---|---|---|---|
| write of 1 MB | 5.00 Gb/s | 1.00 - 9.00 | iperf3 TCP | 10.00 | 0.50 | ≥ 2.00 times | not met |
| write of 1 MB | 5.00 Gb/s | 1.00 - 9.00 | iperf3 TCP | 10.00 | 0.50 | ≤ 0.50 times | met |
| write of 1 MB | 5.00 Gb/s | 1.00 - 9.00 | | | | | |
| latency | 0.005 us | 0.001 - 0.009 | | | | ≥ 1.00 | not met |

### scale

| what | | lowest - highest | next to | | ratio | aim | |
|---|---|---|---|---|---|---|---|
| write of 1 MB | 5.00 Gb/s | 1.00 - 9.00 | | | | ≤ 5.00 | met |
`
	var b strings.Builder
	if err := measured().WriteMarkdown(&b); err != nil || b.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, b.String(), want)
	}
}

// The report in JSON has the names that docs/performance.md gives.
func TestReportAsJSON(t *testing.T) {
	var b strings.Builder
	if err := measured().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine, Command, Started string
		Rounds                    int
		Rows                      []map[string]any
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Machine != "a machine" || got.Rounds != 3 || len(got.Rows) != 5 {
		t.Fatalf("%+v, want 5 rows of 3 rounds on a machine", got)
	}
	first, third := got.Rows[0], got.Rows[2]
	if first["part"] != "veth" || first["value"] != 5.0 || first["peer_value"] != 10.0 || first["ratio"] != 0.5 || first["met"] != false {
		t.Errorf("the first row is %v", first)
	}
	if target := first["target"].(map[string]any); target["of"] != "ratio" || target["bound"] != "at least" || target["limit"] != 2.0 {
		t.Errorf("the first row's target is %v, want a ratio of at least 2", target)
	}
	for _, name := range []string{"peer", "ratio", "target", "met"} {
		if v, there := third[name]; there {
			t.Errorf("%s is %v, though there was no peer", name, v)
		}
	}
}

func TestMedian(t *testing.T) {
	s := samples{"even": {4, 1, 2, 9}, "odd": {9, 1, 5}}
	if s.median("even") != 3 || s.median("odd") != 5 || s.median("nothing") != 0 {
		t.Errorf("medians %v, %v, %v; want 3, 5 and 0", s.median("even"), s.median("odd"), s.median("nothing"))
	}
}

func TestNumbersAreShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.0123", 1.234: "1.23", 99.994: "99.99", 1234.5: "1234"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{999: "999", 20000: "20,000", 1234567: "1,234,567"} {
		if got := grouped(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
