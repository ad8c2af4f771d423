// Package report writes results of simulations: as text, JSON, CSV, and a page with plots.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/softvpi/softvpi/internal/simulate"
)

// Text writes the summary of a run, or a table of several.
func Text(w io.Writer, all []simulate.Labelled) error {
	var b strings.Builder
	if len(all) == 1 {
		one(&b, all[0].Result)
	} else {
		several(&b, all)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func micros(us float64) string {
	return time.Duration(us * 1e3).Round(10 * time.Nanosecond).String()
}

func one(b *strings.Builder, x *simulate.Result) {
	s := &x.Summary
	kind := "RC queue pairs"
	if x.Lean {
		kind = "lean senders"
	}
	fmt.Fprintf(b, "%s: %d hosts, %d switches, %d links, %s, seed %d\n", x.Name, x.Hosts, x.Switches, x.Links, kind, x.Seed)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(b, "  %-12s "+format+"\n", append([]any{name}, args...)...)
	}
	row("time", "%s", micros(x.Duration))
	row("flows", "%d, %d complete, %d failed", s.Flows, s.Complete, s.Failed)
	if s.Complete > 0 {
		row("completion", "p50 %s, p95 %s, p99 %s, max %s", micros(s.FCT.P50), micros(s.FCT.P95), micros(s.FCT.P99), micros(s.FCT.Max))
		row("slowdown", "p50 %.2f, p95 %.2f, p99 %.2f, max %.2f", s.Slowdown.P50, s.Slowdown.P95, s.Slowdown.P99, s.Slowdown.Max)
	}
	row("goodput", "%.2f Gb/s, %.2f in the second half", s.Goodput, s.Late)
	row("fairness", "Jain %.4f", s.Jain)
	row("queue", "p50 %.1f KB, p99 %.1f KB, max %.1f KB at %s", s.Queue.P50, s.Queue.P99, s.Queue.Max, s.QueuePort)
	row("packets", "%d sent, %d of them again, %d frames over links", s.Packets, s.Again, s.Crossed)
	row("congestion", "%d marks, %d CNPs", s.Marks, s.CNPs)
	row("pauses", "%d, %s altogether", s.Pauses, micros(s.PauseTime))
	row("dropped", "%d", s.Drops)
	for _, f := range x.Faults {
		until := ""
		if f.Until != nil {
			until = " to " + micros(*f.Until)
		}
		row("fault", "%s, from %s%s", f.What, micros(f.At), until)
	}
	for state, n := range agreed(x) {
		row("DCBX", "%s at %d adapters", state, n)
	}
	for _, line := range links(x) {
		row("LACP", "%s", line)
	}
	for _, d := range x.Deadlocks {
		row("deadlock", "at %s: %s", micros(d.At), strings.Join(d.Queues, ", "))
	}
	for _, t := range x.Storms {
		row("storm", "%s>%s priority %d, paused since %s", t.Node, t.Peer, t.Priority, micros(t.Since))
	}
}

// agreed counts adapters by what DCBX has given them, in the order of their first.
func agreed(x *simulate.Result) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		var states []string
		for _, a := range x.DCBX {
			states = append(states, fmt.Sprintf("%s, PFC %v of the %s, ETS of the %s,", a.State, a.PFC, a.PFCFrom, a.ETSFrom))
		}
		for i, s := range states {
			if slices.Index(states, s) < i {
				continue
			}
			n := 0
			for _, other := range states {
				if other == s {
					n++
				}
			}
			if !yield(s, n) {
				return
			}
		}
	}
}

// mostLinks is how many ports a summary names whose place in a bundle has changed.
const mostLinks = 8

// links says how the ports are that follow LACP, and what has changed at some of them.
func links(x *simulate.Result) (lines []string) {
	var states []string
	count, changed := map[string]int{}, 0
	for i := range x.LACP {
		a := &x.LACP[i]
		if count[a.State]++; count[a.State] == 1 {
			states = append(states, a.State)
		}
		if len(a.Changes) == 0 {
			continue
		}
		if changed++; changed <= mostLinks {
			lines = append(lines, changes(a))
		}
	}
	if states == nil {
		return nil
	}
	for i, s := range states {
		states[i] = fmt.Sprintf("%s at %d", s, count[s])
	}
	if changed > mostLinks {
		lines = append(lines, fmt.Sprintf("%d ports more have changed", changed-mostLinks))
	}
	return append([]string{strings.Join(states, ", ") + " ports"}, lines...)
}

// changes says when a port has begun or ceased to send, of which it does one last.
func changes(a *simulate.Aggregated) string {
	var times []string
	sends := !a.Changes[0].Sends // some changes are of what it takes alone
	for _, c := range a.Changes {
		if c.Sends == sends {
			continue
		}
		word := "leaves"
		if sends = c.Sends; sends {
			word = "joins"
		}
		times = append(times, word+" at "+micros(c.At))
	}
	if n := len(times); n > 4 {
		times = append(times[:4:4], fmt.Sprintf("%d times more", n-4))
	}
	return fmt.Sprintf("%s[%d]>%s %s", a.Node, a.Port+1, a.Peer, strings.Join(times, ", "))
}

func several(b *strings.Builder, all []simulate.Labelled) {
	fmt.Fprintf(b, "%s: %d runs\n", all[0].Result.Name, len(all))
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "run\tcomplete\tFCT p50 us\tp99 us\tslowdown p99\tGb/s\tlate\tJain\tqueue p50 KB\tp99\tmarks\tCNPs\tpauses\tdrops\t")
	for _, r := range all {
		s := &r.Result.Summary
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%.2f\t%.2f\t%.2f\t%.4f\t%.1f\t%.1f\t%d\t%d\t%d\t%d\t\n", r.Label, s.Complete, s.FCT.P50, s.FCT.P99,
			s.Slowdown.P99, s.Goodput, s.Late, s.Jain, s.Queue.P50, s.Queue.P99, s.Marks, s.CNPs, s.Pauses, s.Drops)
	}
	t.Flush()
}

// JSON writes the result of a run, or an array of several with their labels.
func JSON(w io.Writer, all []simulate.Labelled) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	if len(all) == 1 && all[0].Label == "" {
		return e.Encode(all[0].Result)
	}
	return e.Encode(all)
}
