package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// panicking is a driver whose requests end in panics.
type panicking struct{ *fake }

func (panicking) Overview() api.Status { panic("no overview") }

func (panicking) SetAdapter(api.AdapterRequest) error { panic("no state") }

// TestPanics: a request that ends in a panic is told with its traceback and answered with status 500, whoever asks; the server goes on. A
// panic of whoever is told changes nothing.
func TestPanics(t *testing.T) {
	var mu sync.Mutex
	var told []Panic
	s := New(Config{Driver: panicking{newFake()}, Panicked: func(p Panic) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, p)
		panic("nobody wants to know")
	}})
	defer s.Close()
	l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Handler().ServeHTTP(w, r.WithContext(WithAccess(r.Context(), ChangeAccess)))
	}))
	defer l.Close()
	for n, c := range []struct{ method, path, body, value string }{
		{"GET", "/adapters", "", "no overview"}, {"PUT", "/adapters/a%0Ab/state", `{"enable": true}`, "no state"},
		{"GET", "/adapters", "", "no overview"},
	} {
		r, err := http.NewRequest(c.method, l.URL+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := l.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusInternalServerError || !strings.Contains(string(text), "ended in a panic") ||
			resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %s, %v", c.method, c.path, resp.StatusCode, text, err)
		}
		mu.Lock()
		if len(told) != n+1 || told[n].Request != c.method+" "+c.path || told[n].Value != c.value ||
			!strings.Contains(string(told[n].Stack), "server.panicking.") {
			t.Errorf("%s %s: told %+v", c.method, c.path, told)
		}
		mu.Unlock()
	}
}

// TestPanics_AnswerBegun: an answer that has begun when its handler panics is cut off, so that nobody takes it for a whole one. What ends
// a connection on purpose is no panic.
func TestPanics_AnswerBegun(t *testing.T) {
	var mu sync.Mutex
	told := 0
	s := New(Config{Driver: newFake(), Panicked: func(Panic) {
		mu.Lock()
		defer mu.Unlock()
		told++
	}})
	defer s.Close()
	for _, c := range []struct {
		value any
		told  int
	}{{"half an answer", 1}, {http.ErrAbortHandler, 1}} {
		l := httptest.NewServer(s.recover(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			panic(c.value)
		})))
		resp, err := l.Client().Get(l.URL)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		l.Close()
		mu.Lock()
		if string(text) != "half" || err == nil || told != c.told {
			t.Errorf("%v: %q, %v, told %d times, want half an answer, an error and %d", c.value, text, err, told, c.told)
		}
		mu.Unlock()
	}
}
