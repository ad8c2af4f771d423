package ndperf

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Row is what one side measured for one message size.
type Row struct {
	QPs        int     `json:"qp"`
	Bytes      int     `json:"bytes"` // of a message
	Iterations int64   `json:"iterations"`
	Seconds    float64 `json:"seconds"`
	// MessageRate is in millions of messages a second, Gbps in 2^30 bits of
	// payload a second.
	MessageRate float64 `json:"mr_mmps"`
	Gbps        float64 `json:"gbps"`
	// CPU is the processor time of this side's process during the run in
	// percent of one processor.
	CPU     float64     `json:"cpu_util_percent"`
	Latency *LatencyRow `json:"latency_us,omitempty"`
}

// LatencyRow holds latencies in microseconds: one way (half a round trip) for
// send and write, the whole operation for read. Typical is the median.
type LatencyRow struct {
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Typical float64 `json:"typical"`
	Average float64 `json:"average"`
	Stdev   float64 `json:"stdev"`
	P99     float64 `json:"p99"`
	P999    float64 `json:"p99_9"`
}

// newRow works out the rates of a run.
func newRow(qps, bytes int, iterations int64, elapsed, cpu time.Duration) Row {
	r := Row{QPs: qps, Bytes: bytes, Iterations: iterations, Seconds: elapsed.Seconds()}
	if elapsed > 0 {
		r.MessageRate = float64(iterations) / elapsed.Seconds() / 1e6
		r.Gbps = float64(iterations) * float64(bytes) * 8 / (1 << 30) / elapsed.Seconds()
		r.CPU = 100 * cpu.Seconds() / elapsed.Seconds()
	}
	return r
}

// Result is one message size as both sides saw it.
type Result struct {
	Bytes  int `json:"bytes"`
	Client Row `json:"client"`
	Server Row `json:"server"`
}

// Report is a whole run, the JSON that --json prints.
type Report struct {
	Tool      string   `json:"tool"`
	Role      string   `json:"role"` // of the side that prints
	Server    string   `json:"server"`
	Client    string   `json:"client"`
	Adapter   string   `json:"adapter"`
	Mode      string   `json:"mode"` // embedded or attached
	Results   []Result `json:"results"`
	Threshold *Verdict `json:"threshold,omitempty"`
	Stopped   bool     `json:"stopped,omitempty"` // by the user, before its end
	Error     string   `json:"error,omitempty"`
}

// Verdict is how a run did against --min-bw or --max-lat.
type Verdict struct {
	Option string  `json:"option"`
	Limit  float64 `json:"limit"`
	Value  float64 `json:"value"`
	Passed bool    `json:"passed"`
}

// judge compares the best size of the run with the thresholds.
func (r *Report) judge(o *options) {
	if len(r.Results) == 0 {
		return
	}
	switch {
	case o.MinBW > 0:
		v := Verdict{Option: "--min-bw", Limit: o.MinBW}
		for _, x := range r.Results {
			v.Value = max(v.Value, x.Client.Gbps)
		}
		v.Passed = v.Value >= v.Limit
		r.Threshold = &v
	case o.MaxLat > 0:
		v := Verdict{Option: "--max-lat", Limit: o.MaxLat}
		for i, x := range r.Results {
			if l := x.Client.Latency; l != nil && (i == 0 || l.Typical < v.Value) {
				v.Value = l.Typical
			}
		}
		v.Passed = v.Value <= v.Limit
		r.Threshold = &v
	}
}

func (r *Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

const (
	bandwidthHeader = "#qp  #bytes   #iterations   MR [Mmps]     Gb/s   CPU Util."
	latencyHeader   = "#bytes   #iterations   min [us]    max [us]   typical [us]   avg [us]  stdev [us]   99% [us]   99.9% [us]   CPU Util."
)

func writeHeader(w io.Writer, m Measure) {
	if m == Latency {
		fmt.Fprintln(w, latencyHeader)
		return
	}
	fmt.Fprintln(w, bandwidthHeader)
}

func writeRow(w io.Writer, r Row) {
	if l := r.Latency; l != nil {
		fmt.Fprintf(w, "%-7d %13d %10.2f %11.2f %14.2f %10.2f %11.2f %10.2f %12.2f %10.1f%%\n",
			r.Bytes, r.Iterations, l.Min, l.Max, l.Typical, l.Average, l.Stdev, l.P99, l.P999, r.CPU)
		return
	}
	fmt.Fprintf(w, "%-4d %-8d %11d %11.4f %8.2f %10.1f%%\n", r.QPs, r.Bytes, r.Iterations, r.MessageRate, r.Gbps, r.CPU)
}
