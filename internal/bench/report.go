package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Report is a complete run, the JSON that --json writes. docs/performance.md describes it.
type Report struct {
	Machine string  `json:"machine"`
	Command string  `json:"command"`
	Started string  `json:"started"` // RFC 3339
	Rounds  int     `json:"rounds"`  // interleaved runs, whose median counts
	Seconds float64 `json:"seconds"` // per run
	Rows    []Row   `json:"rows"`
	// Skipped says why a part, or something that a row is compared with, was not measured.
	Skipped []Skip `json:"skipped"`
}

// Row is one figure.
type Row struct {
	Part  string  `json:"part"`
	Name  string  `json:"name"`
	Value float64 `json:"value"` // median of the runs
	Unit  string  `json:"unit"`
	Low   float64 `json:"low"` // of the runs
	High  float64 `json:"high"`
	// Peer is what the value is compared with, measured in the same run in the same unit; empty: nothing.
	Peer      string  `json:"peer,omitempty"`
	PeerValue float64 `json:"peer_value,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"` // value / peer_value, or the median of such ratios of pairs
	// RatioLow and RatioHigh are the interval in which that median lies with 95 %; 0: it is none.
	RatioLow  float64 `json:"ratio_low,omitempty"`
	RatioHigh float64 `json:"ratio_high,omitempty"`
	Target    *Target `json:"target,omitempty"`
	Met       *bool   `json:"met,omitempty"` // absent without a target
}

// Target is what a figure should reach.
type Target struct {
	Of    string  `json:"of"`    // "value" or "ratio"
	Bound string  `json:"bound"` // "at least" or "at most"
	Limit float64 `json:"limit"`
}

func (t *Target) met(r *Row) bool {
	v := r.Value
	if t.Of == "ratio" {
		v = r.Ratio
	}
	if t.Bound == "at most" {
		return v <= t.Limit
	}
	return v >= t.Limit
}

func (t *Target) String() string {
	s := map[string]string{"at least": "≥ ", "at most": "≤ "}[t.Bound] + number(t.Limit)
	if t.Of == "ratio" {
		s += " times"
	}
	return s
}

func timesAtLeast(v float64) *Target { return &Target{"ratio", "at least", v} }
func timesAtMost(v float64) *Target  { return &Target{"ratio", "at most", v} }
func atLeast(v float64) *Target      { return &Target{"value", "at least", v} }
func atMost(v float64) *Target       { return &Target{"value", "at most", v} }

// Skip is something that could not be measured.
type Skip struct {
	Part string `json:"part"`
	Why  string `json:"why"`
}

// samples are measurements by name.
type samples map[string][]float64

func (s samples) add(name string, v float64) { s[name] = append(s[name], v) }

// median returns the median of a name's samples; 0 if nothing was measured.
func (s samples) median(name string) float64 {
	v := slices.Sorted(slices.Values(s[name]))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// figure says how a row is made from samples.
type figure struct {
	name, unit string
	sample     string // the name of the value's samples
	peer       string // empty: nothing to compare with
	peerSample string
	target     *Target
}

// add adds a row for each figure that was measured. A target that is a ratio is omitted if the peer was
// not measured: it can be neither met nor missed.
func (r *Report) add(part string, s samples, figures ...figure) {
	for _, f := range figures {
		all := s[f.sample]
		if len(all) == 0 {
			continue
		}
		row := Row{Part: part, Name: f.name, Unit: f.unit, Value: s.median(f.sample), Low: slices.Min(all), High: slices.Max(all)}
		if peer := s.median(f.peerSample); f.peer != "" && peer > 0 {
			row.Peer, row.PeerValue, row.Ratio = f.peer, peer, row.Value/peer
		}
		if t := f.target; t != nil && (t.Of == "value" || row.Ratio > 0) {
			met := t.met(&row)
			row.Target, row.Met = t, &met
		}
		r.Rows = append(r.Rows, row)
	}
}

func (r *Report) skip(part, why string) { r.Skipped = append(r.Skipped, Skip{part, why}) }

// WriteMarkdown prints a table for each part.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n`%s`, %s: medians of %d interleaved rounds of %g s. Gb/s = 2^30 bits of payload a second.\n", r.Machine,
		r.Command, r.Started, r.Rounds, r.Seconds)
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "\n%s: not measured, %s.\n", s.Part, s.Why)
	}
	part := ""
	for _, row := range r.Rows {
		if row.Part != part {
			part = row.Part
			fmt.Fprintf(&b, "\n### %s\n\n| what | | lowest - highest | next to | | ratio | aim | |\n|---|---|---|---|---|---|---|---|\n",
				part)
		}
		row.write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (row *Row) write(b *strings.Builder) {
	fmt.Fprintf(b, "| %s | %s %s | %s - %s |", row.Name, number(row.Value), row.Unit, number(row.Low), number(row.High))
	if row.Ratio > 0 {
		fmt.Fprintf(b, " %s | %s | %.2f", row.Peer, number(row.PeerValue), row.Ratio)
		if row.RatioHigh > 0 {
			fmt.Fprintf(b, " (%.3f - %.3f)", row.RatioLow, row.RatioHigh)
		}
		b.WriteString(" |")
	} else {
		b.WriteString(" | | |")
	}
	if row.Met == nil {
		b.WriteString(" | |\n")
		return
	}
	fmt.Fprintf(b, " %s | %s |\n", row.Target, map[bool]string{true: "met", false: "not met"}[*row.Met])
}

// WriteJSON writes the report as one indented object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// number formats a number with about three significant digits.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.1:
		return fmt.Sprintf("%.3g", v)
	case v < 100:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
