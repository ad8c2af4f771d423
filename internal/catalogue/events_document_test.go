package catalogue

import (
	"fmt"
	"strings"
	"testing"
)

// The tables in docs/events.md are the catalogue's events.
func TestDocumentOfTheEvents(t *testing.T) {
	var b strings.Builder
	built := 0
	var sources []string
	of := map[string][]*Event{}
	for i := range Events() {
		e := &Events()[i]
		if of[e.Source] == nil {
			sources = append(sources, e.Source)
		}
		of[e.Source] = append(of[e.Source], e)
		if e.Status == Built {
			built++
		}
	}
	fmt.Fprintf(&b, "\n%d events, of which %d are raised.\n", len(Events()), built)
	for _, s := range sources {
		fmt.Fprintf(&b, "\n## %s\n\n| ID | symbol | severity | text | |\n|---|---|---|---|---|\n", s)
		for _, e := range of[s] {
			writeEvent(&b, e)
		}
	}
	b.WriteString("\n")
	stale(t, "../../docs/events.md", b.String())
}

func writeEvent(b *strings.Builder, e *Event) {
	id := fmt.Sprintf("0x%04x<br>%d", e.ID, e.ID)
	if e.OwnID {
		id += "<br>ours"
	}
	var about []string
	if e.Status != Built {
		about = append(about, "**not raised yet**")
	}
	if e.Source == sourceSoftVPI && e.Generations == MLX5 {
		about = append(about, "of mlx5 adapters")
	}
	if text := sourcesText(e.Sources); text != "" {
		about = append(about, "*"+text+"*")
	}
	row(b, id, e.Symbol, e.Severity.String(), e.Text, strings.Join(about, "<br>"))
}
