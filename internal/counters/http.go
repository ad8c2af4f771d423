package counters

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxBody bounds a request.
const maxBody = 1 << 16

// Mount serves the collector: GET /counters/sets, GET /counters?path=..., POST /counters/reset and GET /metrics.
func (c *Collector) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /counters/sets", func(w http.ResponseWriter, r *http.Request) { reply(w, c.Sets(), nil) })
	mux.HandleFunc("GET /counters", func(w http.ResponseWriter, r *http.Request) {
		s, err := c.Snapshot(r.URL.Query()["path"]...)
		reply(w, s, err)
	})
	mux.HandleFunc("POST /counters/reset", func(w http.ResponseWriter, r *http.Request) {
		var q ResetRequest
		d := json.NewDecoder(io.LimitReader(r.Body, maxBody))
		d.DisallowUnknownFields()
		err := d.Decode(&q)
		if err == nil {
			err = c.Reset(q)
		}
		reply(w, struct{}{}, err)
	})
	mux.Handle("GET /metrics", c.Metrics())
}

// reply writes v, or the error with the path that it is about.
func reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		e := map[string]any{"error": err.Error()}
		var path *PathError
		if errors.As(err, &path) {
			e["path"] = path.Path
		}
		v = e
	}
	_ = json.NewEncoder(w).Encode(v) // a reader that went away
}
