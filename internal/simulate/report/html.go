package report

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"

	"github.com/softvpi/softvpi/internal/simulate"
)

//go:embed report.html
var page string

//go:embed report.js
var script string

//go:embed agreements.js
var agreements string

var report = template.Must(template.New("report").Parse(page))

// Of more flows than mostFlows a page has the first, whose rates it draws, and some of the others, evenly.
const (
	mostFlows  = 6_000
	drawnFlows = 256
)

// HTML writes a page with plots: one file, which needs nothing else.
func HTML(w io.Writer, all []simulate.Labelled) error {
	shown := make([]simulate.Labelled, len(all))
	for i, r := range all {
		x := *r.Result
		x.Flows = fewer(x.Flows, mostFlows/len(all))
		shown[i] = simulate.Labelled{Label: r.Label, Result: &x}
	}
	data, err := json.Marshal(shown) // which escapes what would end the element
	if err != nil {
		return err
	}
	return report.Execute(w, struct {
		Title        string
		Data, Script template.JS
	}{all[0].Result.Name, template.JS(data), template.JS(script + agreements)})
}

// fewer leaves about n of the flows, at least those that are drawn.
func fewer(all []simulate.Flow, n int) []simulate.Flow {
	if n = max(n, 2*drawnFlows); len(all) <= n {
		return all
	}
	few := append([]simulate.Flow(nil), all[:drawnFlows]...)
	rest := all[drawnFlows:]
	for i := range n - drawnFlows {
		few = append(few, rest[i*len(rest)/(n-drawnFlows)])
	}
	return few
}
