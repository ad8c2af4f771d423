package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/registry"
)

// fake is a driver without adapters.
type fake struct {
	mu     sync.Mutex
	reg    *registry.Registry
	status api.Status
	did    []string
	fail   error

	fabrics fabrics
}

func newFake() *fake {
	f := &fake{reg: registry.NewVolatile("test")}
	f.status = api.Status{Version: "test", Adapters: []api.AdapterStatus{
		{Name: "Ethernet 1", Generation: "mlx5", Device: "Ethernet 1", Port: 1, Protocols: []string{"eth"}, Enabled: true, Up: true,
			Objects: map[string]int{"qp": 1}},
		{Name: hostile, Index: 1, Number: 1, Generation: "mlx4", Device: hostile, Port: 1, Protocols: []string{"eth"}, Enabled: true,
			Objects: map[string]int{}},
	}, Programs: []api.ProgramStatus{{Name: hostile, PID: 7}}}
	for _, a := range f.status.Adapters {
		g := catalogue.MLX5
		if a.Generation == "mlx4" {
			g = catalogue.MLX4
		}
		if _, err := f.reg.AddAdapter(a.Name, g); err != nil {
			panic(err)
		}
	}
	return f
}

func (f *fake) do(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, fmt.Sprintf(format, args...))
	return f.fail
}

func (f *fake) Status() api.Status { return f.status }

func (f *fake) Overview() api.Status {
	s := f.status
	s.Adapters = slices.Clone(s.Adapters)
	for i := range s.Adapters {
		s.Adapters[i].QPs = []api.QPStatus{}
	}
	return s
}

func (f *fake) OpenCapture(q api.CaptureRequest) (server.Capture, error) {
	return nil, f.do("capture %s", q.Adapter)
}

func (f *fake) CaptureToFile(q api.CaptureRequest, path string) (api.CaptureStatus, error) {
	return api.CaptureStatus{}, f.do("capture %s to %s", q.Adapter, path)
}

func (f *fake) Captures() []api.CaptureStatus {
	return []api.CaptureStatus{{ID: "1", Adapter: hostile, File: "/" + hostile, Running: true, Packets: 12345, Missed: 6},
		{ID: "2", Adapter: hostile, Problem: hostile}}
}

func (f *fake) EndCapture(_ context.Context, id string) (api.CaptureStatus, error) {
	return api.CaptureStatus{ID: id, Problem: map[string]string{"2": "the disk is full"}[id]}, f.do("end %s", id)
}

func (f *fake) SetAdapter(q api.AdapterRequest) error {
	return f.do("set %s %v", q.Adapter, q.Enable)
}

func (f *fake) RestartAdapter(name string) error { return f.do("restart %s", name) }

func (f *fake) SleepAdapter(q api.SleepRequest) error { return f.do("sleep %s", q.Adapter) }

func (f *fake) SetLink(q api.LinkRequest) error { return f.do("link %s", q.Adapter) }

func (f *fake) Registry() *registry.Registry { return f.reg }

func (f *fake) ChangeRegistry(c []registry.Change, unchecked bool) ([]registry.Notice, error) {
	if _, err := f.reg.Check(c); err != nil {
		return nil, err
	}
	return nil, f.reg.Apply(c...)
}

// Settings returns the registry's settings as if none had been taken up yet.
func (f *fake) Settings(adapter string) (out []api.Setting, err error) {
	a, _ := f.reg.Adapter(adapter)
	for _, s := range f.reg.Settings(a) {
		k := s.Key
		out = append(out, api.Setting{
			Name: k.Name, Title: k.Title, Group: string(k.Group), Path: s.Path.String(), Type: k.Type.String(), Value: s.Text(),
			Default: api.DefaultText(k, a.Generation),
			Allowed: k.Allowed(), Choices: api.Choices(k), Effect: api.EffectName(k), Status: api.StatusName(k), UI: k.UI,
			Description: k.Description,
		})
	}
	return out, nil
}

func (f *fake) Set(adapter, key string, value *string) ([]registry.Notice, error) {
	text := "default"
	if value != nil {
		text = *value
	}
	if text == "wrong" {
		return nil, &catalogue.ValueError{Key: key, Value: "wrong", Allowed: "0, 1"}
	}
	return nil, f.do("key %s %s %s", adapter, key, text)
}

// bench is the pages of a fake driver with a browser that is signed in.
type bench struct {
	*fake
	pages  *Server
	now    time.Time
	cookie *http.Cookie
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{fake: newFake(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	log := events.Open(events.Config{})
	log.Raise(0, events.AdapterEnabled{Adapter: hostile})
	c := collector.New(collector.Config{Read: func() []collector.Adapter {
		return []collector.Adapter{{Counters: device.Counters{Name: hostile}}}
	}})
	s := server.New(server.Config{Driver: b.fake, Version: "test", Events: log, Counters: c})
	t.Cleanup(func() { s.Close(); log.Close() })
	b.pages = New(Config{API: s, Machine: "machine", Version: "test", Now: func() time.Time { return b.now }})
	b.cookie = b.signIn(t)
	return b
}

func (b *bench) signIn(t testing.TB) *http.Cookie {
	t.Helper()
	path, _ := b.pages.Link()
	w := b.ask(httptest.NewRequest("GET", "http://127.0.0.1:80"+path, nil))
	if w.Code != http.StatusOK || len(w.Result().Cookies()) != 1 {
		t.Fatalf("sign in: %d %v", w.Code, w.Result().Cookies())
	}
	return w.Result().Cookies()[0]
}

func (b *bench) ask(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.pages.ServeHTTP(w, r)
	return w
}

// get requests a page within the session.
func (b *bench) get(path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "http://127.0.0.1:80"+path, nil)
	r.AddCookie(b.cookie)
	return b.ask(r)
}

func (b *bench) secret() string {
	return secretField.FindStringSubmatch(b.get("/web/").Body.String())[1]
}

// post sends a form within the session, with its secret.
func (b *bench) post(path string, form url.Values) *httptest.ResponseRecorder {
	form.Set("csrf", b.secret())
	return b.send(path, form)
}

func (b *bench) send(path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "http://127.0.0.1:80"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(b.cookie)
	return b.ask(r)
}
