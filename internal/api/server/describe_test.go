package server

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

// TestDescriptions: clients that ask at once for the description of the interface all get the whole of it.
func TestDescriptions(t *testing.T) {
	b := serve(t, Config{})
	for path, begins := range map[string]string{"/openapi.json": "{", "/openapi.yaml": "components:"} {
		var all sync.WaitGroup
		var texts [8]string
		for i := range texts {
			all.Go(func() {
				status := 0
				if status, texts[i] = b.request(t, "GET", path, ""); status != 200 {
					t.Errorf("%s: status %d", path, status)
				}
			})
		}
		all.Wait()
		for _, text := range texts {
			if text != texts[0] || !strings.HasPrefix(text, begins) || !strings.Contains(text, "/adapters") {
				t.Errorf("%s: %.60q, the first %.60q", path, text, texts[0])
			}
		}
	}
	var spec struct{ OpenAPI string }
	if _, text := b.request(t, "GET", "/openapi.json", ""); json.Unmarshal([]byte(text), &spec) != nil || spec.OpenAPI == "" {
		t.Errorf("no OpenAPI version in %.60q", text)
	}
}
