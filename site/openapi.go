package main

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// description is what the reference shows of an OpenAPI description.
type description struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	Summary     string `json:"summary"`
	Description string `json:"description"`
	Parameters  []struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	} `json:"parameters"`
	Body struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Description string `json:"description"`
		Content     map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
}

type schema struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"` // a string, or a list of them
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Default     any               `json:"default"`
	Minimum     *float64          `json:"minimum"`
	Maximum     *float64          `json:"maximum"`
	Items       *schema           `json:"items"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
}

// reference returns the page of an OpenAPI description in Markdown.
func reference(text []byte) (string, error) {
	var d description
	if err := json.Unmarshal(text, &d); err != nil {
		return "", fmt.Errorf("the description of the management interface: %w", err)
	}
	if len(d.Paths) == 0 {
		return "", fmt.Errorf("the description of the management interface has no paths")
	}
	var b strings.Builder
	b.WriteString("# Requests of the management interface\n\nMade of the description that a driver serves as `/openapi.json`. " +
		"[The management interface](api.md) says who may do what, and names further requests that stream or take files.\n\n")
	for _, p := range sorted(d.Paths) {
		for _, method := range sorted(d.Paths[p]) {
			d.Paths[p][method].write(&b, strings.ToUpper(method)+" "+p)
		}
	}
	b.WriteString("## Types\n\n")
	for _, n := range sorted(d.Components.Schemas) {
		fmt.Fprintf(&b, "### %s\n\n", n)
		d.Components.Schemas[n].table(&b)
	}
	return b.String(), nil
}

func (o operation) write(b *strings.Builder, title string) {
	fmt.Fprintf(b, "## `%s`\n\n%s\n\n", title, cell(o.Summary))
	if o.Description != "" {
		fmt.Fprintf(b, "%s\n\n", cell(o.Description))
	}
	if len(o.Parameters) > 0 {
		b.WriteString("| parameter | in | type | |\n|---|---|---|---|\n")
		for _, p := range o.Parameters {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, p.In, p.Schema.kind(), cell(p.Description))
		}
		b.WriteString("\n")
	}
	for _, t := range sorted(o.Body.Content) {
		fmt.Fprintf(b, "Body: %s, %s.\n\n", o.Body.Content[t].Schema.kind(), t)
	}
	for _, status := range sorted(o.Responses) {
		r := o.Responses[status]
		if len(r.Content) == 0 {
			fmt.Fprintf(b, "- %s: %s\n", status, cell(r.Description))
		}
		for _, t := range sorted(r.Content) {
			fmt.Fprintf(b, "- %s: %s, %s\n", status, r.Content[t].Schema.kind(), t)
		}
	}
	b.WriteString("\n")
}

func (s schema) table(b *strings.Builder) {
	if s.Description != "" {
		fmt.Fprintf(b, "%s\n\n", cell(s.Description))
	}
	if len(s.Properties) == 0 {
		fmt.Fprintf(b, "%s\n\n", s.kind())
		return
	}
	required := map[string]bool{}
	for _, r := range s.Required {
		required[r] = true
	}
	b.WriteString("| field | type | |\n|---|---|---|\n")
	for _, n := range sorted(s.Properties) {
		text := cell(s.Properties[n].Description)
		if required[n] {
			text = strings.TrimSpace("Always there. " + text)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", n, s.Properties[n].kind(), text)
	}
	b.WriteString("\n")
}

// kind says what a value is, with a link to the type if it has a name.
func (s schema) kind() string {
	if s.Ref != "" {
		n := path.Base(s.Ref)
		return fmt.Sprintf("[%s](#%s)", n, strings.ToLower(n))
	}
	var of schema
	what := s.typeName()
	switch {
	case s.Items != nil:
		return "list of " + s.Items.kind()
	case what == "object" && json.Unmarshal(s.Additional, &of) == nil:
		return "object of " + of.kind()
	case len(s.Enum) > 0:
		return what + ": " + list(s.Enum)
	case s.Format != "":
		what += " (" + s.Format + ")"
	}
	if s.Minimum != nil && *s.Minimum != 0 || s.Maximum != nil {
		what += s.limits()
	}
	if s.Default != nil {
		what += fmt.Sprintf(", by default %v", s.Default)
	}
	return what
}

func (s schema) limits() string {
	switch {
	case s.Maximum == nil:
		return fmt.Sprintf(", at least %v", *s.Minimum)
	case s.Minimum == nil:
		return fmt.Sprintf(", at most %v", *s.Maximum)
	}
	return fmt.Sprintf(", %v to %v", *s.Minimum, *s.Maximum)
}

func (s schema) typeName() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any: // with null
		if len(t) > 0 {
			return fmt.Sprint(t[0])
		}
	}
	return "anything"
}

func list(values []any) string {
	var words []string
	for _, v := range values {
		words = append(words, fmt.Sprintf("`%v`", v))
	}
	return strings.Join(words, ", ")
}

// cell returns a text as one of a table or of a paragraph, which shows it as it is.
func cell(s string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "[", `\[`).Replace(s)
}
