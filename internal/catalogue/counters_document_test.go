package catalogue

import (
	"fmt"
	"strings"
	"testing"
)

// The tables in docs/counters.md are the catalogue's counters.
func TestDocumentOfTheCounters(t *testing.T) {
	var b strings.Builder
	all, have := 0, 0
	for i := range CounterSets() {
		for j := range CounterSets()[i].Counters {
			all++
			if CounterSets()[i].Counters[j].Counted() {
				have++
			}
		}
	}
	fmt.Fprintf(&b, "\n%d sets with %d counters, of which %d are counted.\n", len(CounterSets()), all, have)
	for i := range CounterSets() {
		writeSet(&b, &CounterSets()[i])
	}
	b.WriteString("\n")
	stale(t, "../../docs/counters.md", b.String())
}

func writeSet(b *strings.Builder, s *CounterSet) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", s.Name, s.Description)
	about := []string{"short name " + code(s.Short), "one for each " + s.Instances}
	if len(s.Aliases) > 0 {
		names := make([]string, 0, len(s.Aliases))
		for _, a := range s.Aliases {
			names = append(names, "\""+a+"\"")
		}
		about = append(about, "also "+strings.Join(names, ", "))
	}
	switch s.Generations {
	case MLX5:
		about = append(about, "mlx5 only")
	case MLX4:
		about = append(about, "mlx4 only")
	}
	if s.Reset == ResetOnDemand {
		about = append(about, "can be reset")
	}
	fmt.Fprintf(b, "*%s*\n", strings.Join(about, "; "))
	if text := sourcesText(s.Sources); text != "" {
		fmt.Fprintf(b, "\n*%s*\n", text)
	}
	b.WriteString("\n| counter | short name | kind, unit | counts here |\n|---|---|---|---|\n")
	for i := range s.Counters {
		writeCounter(b, &s.Counters[i])
	}
}

func writeCounter(b *strings.Builder, c *Counter) {
	kind := map[CounterKind]string{Total: "total", Rate: "rate", Level: "level", Ratio: "ratio"}[c.Kind]
	if c.Unit != "" {
		kind += ", " + c.Unit
	}
	about := c.Description
	switch c.Generations {
	case MLX5:
		about += "; mlx5 only"
	case MLX4:
		about += "; mlx4 only"
	}
	if !c.Counted() {
		about = "**not counted:** " + about
	}
	if text := sourcesText(c.Sources); text != "" {
		about += "<br>*" + text + "*"
	}
	row(b, c.Name, code(c.Short), kind, about)
}

func sourcesText(sources []Source) string {
	all := make([]string, 0, len(sources))
	for _, s := range sources {
		all = append(all, s.Manual+", "+s.Section)
	}
	return strings.Join(all, "; ")
}
