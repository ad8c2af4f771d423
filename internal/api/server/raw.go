package server

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// raw adds a route whose answer is not JSON: it is documented like the others, and served by h.
func (s *Server) raw(op huma.Operation, content string, h http.HandlerFunc) {
	doc := s.api.OpenAPI()
	answer := &huma.Schema{Type: huma.TypeString}
	if !strings.HasPrefix(content, "text/") {
		answer.Format = "binary"
	}
	problem := doc.Components.Schemas.Schema(reflect.TypeFor[huma.ErrorModel](), true, "")
	op.Responses = map[string]*huma.Response{
		"200":     {Description: http.StatusText(http.StatusOK), Content: map[string]*huma.MediaType{content: {Schema: answer}}},
		"default": {Description: "Error", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: problem}}},
	}
	doc.AddOperation(&op)
	s.mux.HandleFunc(op.Method+" "+op.Path, h)
}

// parameters describes the query fields of a route that parses them itself, except some.
func (s *Server) parameters(query any, without ...string) []*huma.Param {
	var out []*huma.Param
	t := reflect.TypeOf(query)
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("query"), ",")
		if name == "" || slices.Contains(without, name) {
			continue
		}
		p := &huma.Param{
			Name: name, In: "query", Description: f.Tag.Get("doc"), Required: f.Tag.Get("required") == "true",
			Schema: huma.SchemaFromField(s.api.OpenAPI().Components.Schemas, f, ""),
		}
		if option == "explode" {
			explode := true
			p.Explode = &explode
		}
		out = append(out, p)
	}
	return out
}
