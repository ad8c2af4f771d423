package server

import (
	"encoding/json"
	"net/http"
	"sync"
)

// OpenAPI returns the description of the interface in JSON.
func (s *Server) OpenAPI() ([]byte, error) {
	s.prepare()
	return json.MarshalIndent(s.api.OpenAPI(), "", "  ")
}

// describe serves the description of the interface, as JSON and as YAML. Each is made once, when it is first asked for: it is
// large, and takes a while. huma's own handlers keep it without a lock.
func (s *Server) describe() {
	for _, d := range []struct {
		path, kind string
		make       func() ([]byte, error)
	}{
		{"/openapi.json", "application/openapi+json", func() ([]byte, error) { return json.Marshal(s.api.OpenAPI()) }},
		{"/openapi.yaml", "application/openapi+yaml", func() ([]byte, error) { return s.api.OpenAPI().YAML() }},
	} {
		made := sync.OnceValues(d.make)
		s.mux.HandleFunc("GET "+d.path, func(w http.ResponseWriter, _ *http.Request) {
			b, err := made()
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", d.kind)
			_, _ = w.Write(b) // fails if the client has gone
		})
	}
}
