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

var report = template.Must(template.New("report").Parse(page))

// HTML writes a page with plots: one file, which needs nothing else.
func HTML(w io.Writer, all []simulate.Labelled) error {
	data, err := json.Marshal(all) // which escapes what would end the element
	if err != nil {
		return err
	}
	return report.Execute(w, struct {
		Title        string
		Data, Script template.JS
	}{all[0].Result.Name, template.JS(data), template.JS(script)})
}
